"""Every operation gpuexplore measures: one folder each, listed here in the order users see.

An operation's `__init__.py` declares its formula, inputs, reference, FLOPs and bytes, and the implementations; each
implementation is a file beside it, loaded when it is measured. `contract.py` is what a declaration holds,
`implementation.py` what a line of `implementations=` holds; `of_users.py` makes the same of a user's functions.

It imports kernels, backends, devices and values. An operation is a folder and a line of `NAMES`; an implementation a
file and a line in its operation. CONTRIBUTING.md has both recipes; tests compare lines and folders.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.own_functions.sources import Build, build_of_user, operation_of_user
from gpuexplore.operations.benchmark import BENCHMARK
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation

NAMES = (
    "matmul",
    "batched_matmul",
    "linear",
    "matvec",
    "attention",
    "conv2d",
    "vector_add",
    "multiply",
    "triad",
    "copy",
    "reduce_sum",
    "softmax",
    "layer_norm",
    "mlp_step",
    "cnn_step",
    "transformer_step",
    "optimizer_step",
)


def _contract_of(name: str) -> Operation:
    module: Any = import_module(f"gpuexplore.operations.{name}")
    operation: Operation = module.OPERATION
    return operation


OPERATIONS: Mapping[str, Operation] = MappingProxyType({name: _contract_of(name) for name in NAMES})


def operation_named(name: str) -> Operation:
    """Return the operation called `name`: one of `OPERATIONS`, one that a user declared in this process, or BENCHMARK.

    Raises:
        InvalidInput: no such operation.
    """
    if name not in OPERATIONS:
        if found := BENCHMARK if name == BENCHMARK.name else operation_of_user(name):
            return found
        raise InvalidInput.of("operation", name, OPERATIONS)
    return OPERATIONS[name]


def implementation_names() -> tuple[str, ...]:
    """Return the name of every implementation of any operation, each once, baselines first."""
    return tuple(
        dict.fromkeys(implementation.name for op in OPERATIONS.values() for implementation in op.implementations)
    )


def load_build(operation: Operation, implementation: Implementation) -> Build:
    """Return `build(inputs, out, dtype) -> run` of one implementation; this imports its library.

    `run()` computes into `out`; it neither allocates nor copies nor waits for a device.

    Raises:
        Unsupported: it is a user's, and nobody told this process where it is.
    """
    if implementation.of_a_user:
        return build_of_user(implementation.name)
    module: Any = import_module(f"gpuexplore.operations.{operation.name}.{implementation.module}")
    build: Build = module.build
    return build
