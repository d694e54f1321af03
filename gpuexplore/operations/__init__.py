"""Every operation gpuexplore measures: a folder each, listed here in the order users see."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from gpuexplore.errors import InvalidInput
from gpuexplore.operations.attention import OPERATION as ATTENTION
from gpuexplore.operations.batched_matmul import OPERATION as BATCHED_MATMUL
from gpuexplore.operations.contract import Implementation, Operation
from gpuexplore.operations.conv2d import OPERATION as CONV2D
from gpuexplore.operations.copy import OPERATION as COPY
from gpuexplore.operations.layer_norm import OPERATION as LAYER_NORM
from gpuexplore.operations.linear import OPERATION as LINEAR
from gpuexplore.operations.matmul import OPERATION as MATMUL
from gpuexplore.operations.matvec import OPERATION as MATVEC
from gpuexplore.operations.multiply import OPERATION as MULTIPLY
from gpuexplore.operations.reduce_sum import OPERATION as REDUCE_SUM
from gpuexplore.operations.softmax import OPERATION as SOFTMAX
from gpuexplore.operations.triad import OPERATION as TRIAD
from gpuexplore.operations.vector_add import OPERATION as VECTOR_ADD

_LISTED = (
    MATMUL,
    BATCHED_MATMUL,
    LINEAR,
    MATVEC,
    ATTENTION,
    CONV2D,
    VECTOR_ADD,
    MULTIPLY,
    TRIAD,
    COPY,
    REDUCE_SUM,
    SOFTMAX,
    LAYER_NORM,
)
OPERATIONS: Mapping[str, Operation] = MappingProxyType({one.name: one for one in _LISTED})

Build = Callable[..., Callable[[], object]]


def operation_named(name: str) -> Operation:
    """Return the operation called `name`.

    Raises:
        InvalidInput: no such operation.
    """
    if name not in OPERATIONS:
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
    """
    module: Any = import_module(f"gpuexplore.operations.{operation.name}.{implementation.module}")
    build: Build = module.build
    return build
