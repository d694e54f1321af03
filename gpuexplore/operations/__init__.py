"""Every operation gpuexplore measures: one folder each, listed here in the order users see.

An operation's `__init__.py` declares its formula, inputs, reference, FLOPs and bytes, and the implementations; those of
a library are in a file next to it, loaded when they are measured. `contract.py` is what a declaration contains,
`implementation.py` what a row of `implementations=` contains; `own_code.py` makes the same of a user's function.
Features may add implementations and operations.

It imports kernels, backends, devices and values. An operation is a folder and a line of `NAMES`; an implementation a
row in its operation, and code in its library's file. CONTRIBUTING.md has both recipes; tests compare rows and files.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import product
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any

from gpuexplore.core import Device, InvalidInput, Unsupported
from gpuexplore.hardware.discovery import USUAL_DTYPES, first_dtypes
from gpuexplore.operations.contract import (
    AWKWARD,
    NEGLIGIBLE,
    Array,
    Operation,
    Phased,
    Product,
    awkward_shapes,
    shapes_of,
)
from gpuexplore.operations.families import BENCHMARK
from gpuexplore.operations.implementation import AS_SUMMED, BACKEND_OF_USERS, OF_USERS, Growth, Implementation
from gpuexplore.registry import features

__all__ = [
    "AS_SUMMED",
    "AWKWARD",
    "BACKEND_OF_USERS",
    "BENCHMARK",
    "NEGLIGIBLE",
    "OF_USERS",
    "Array",
    "Growth",
    "Implementation",
    "Operation",
    "Phased",
    "Product",
    "awkward_shapes",
    "operation_named",
    "shapes_of",
]

Build = Callable[..., Callable[[], object]]

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
    return module.OPERATION


OPERATIONS: Mapping[str, Operation] = MappingProxyType({name: _contract_of(name) for name in NAMES})


def additions() -> Iterator[Any]:
    """Yield the modules by which features add implementations and operations, `Feature.implementations` of each.

    Each has
        operation_of(name): an operation; None where it has none of this name.
        build_of(name): the `build` of an implementation; raises Unsupported where there is none.
        named(given): names of whatever was given as implementations; `ACCEPTED` says what `--impl` takes beyond names.
        offered(): names that the form offers.
        add_app_arguments(parser), check_app_arguments(arguments): options of `gpuexplore app` that add to these.
    """
    return (import_module(feature.implementations) for feature in features() if feature.implementations)


def operation_named(name: str) -> Operation:
    """Return the operation called `name`: one of `OPERATIONS`, BENCHMARK, or one that a feature adds.

    Raises:
        InvalidInput: no such operation.
    """
    if name in OPERATIONS:
        return OPERATIONS[name]
    if name == BENCHMARK.name:
        return BENCHMARK
    for module in additions():
        found: Operation | None = module.operation_of(name)
        if found:
            return found
    raise InvalidInput.of("operation", name, OPERATIONS)


def first_kernels(device: Device) -> Iterator[tuple[Operation, Implementation, str]]:
    """Yield operation, implementation and dtype of what the form has chosen on a first visit, for one device.

    Then those of the same operation in the other usual dtypes, whether the device computes in them or not. Workers
    compile and load all of it before it is asked for. Kernels of other operations are compiled when they are first
    asked for, which takes seconds each on a new installation and is reported as their first call.
    """
    operation = next(iter(OPERATIONS.values()))
    dtypes = dict.fromkeys((*first_dtypes([device]).split(","), *USUAL_DTYPES))
    for dtype, implementation in product(dtypes, operation.usual):
        yield operation, implementation, dtype


def load_build(operation: Operation, implementation: Implementation) -> Build:
    """Return `build(inputs, out, dtype) -> run` of one implementation; this imports its library.

    `run()` computes into `out`; it neither allocates nor copies nor waits for a device.

    Raises:
        Unsupported: it is a user's, and this process does not know its file.
    """
    if implementation.of_a_user:
        return _build_of_user(implementation.name)
    if implementation.calls:  # a library's function that writes to `out=`
        function = resolve_name(implementation.calls)
        return lambda inputs, out, _: partial(function, *inputs, out=out)
    found = getattr(import_module(implementation.module_in(operation.name)), implementation.export)
    if implementation.technique:
        found = getattr(import_module("gpuexplore.operations.torch_steps"), implementation.technique)(found)
    return found.build if implementation.geometry else found


def _build_of_user(name: str) -> Build:
    """Return the `build` that the first of `additions` has under this name, else raise what the last one said."""
    refusal = Unsupported(f"{name} is a user's, and nothing here runs code of users")
    for module in additions():
        try:
            build: Build = module.build_of(name)
        except Unsupported as error:
            refusal = error
        else:
            return build
    raise refusal
