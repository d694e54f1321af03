"""Implementations of `vector_add` that break, in the worker of a self-test only: does the next case survive them?"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType, ModuleType
from typing import Any

import gpuexplore.operations
from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DType
from gpuexplore.operations.implementation import Implementation

OPERATION = "vector_add"
OUT_OF_BOUNDS = "selftest-out-of-bounds"
OUT_OF_MEMORY = "selftest-out-of-memory"


def _build_out_of_bounds(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return a call that writes far behind its output: CUDA ends the context for it."""
    from numba import cuda

    def write_far(array: Any, far: int) -> None:
        array[far] = array[0]

    kernel: Any = cuda.jit(write_far)
    return lambda: kernel[1, 1](out, 2**44)  # 64 TiB behind the array: no GPU has that much


def _build_out_of_memory(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return a call that asks for more memory than there is."""
    device = f"cuda:{getattr(getattr(out, 'device', None), 'index', None) or 0}"
    library = load_backend("torch" if type(out).__module__.startswith("torch") else "numba_cuda")
    return lambda: library.empty((2**47,), dtype, device)  # 512 TiB


def out_of_memory_of(library: str) -> str:
    """Return the name of the implementation that takes too much memory by a library."""
    return f"{OUT_OF_MEMORY}-{library.replace('_', '-')}"


def add_breaking() -> None:
    """Add them to the operations of this process."""
    rows = [Implementation(OUT_OF_BOUNDS, "selftest_out_of_bounds", "numba_cuda", "vector", "breaks on purpose")]
    _make_module("selftest_out_of_bounds", _build_out_of_bounds)
    _make_module("selftest_out_of_memory", _build_out_of_memory)
    rows += [
        Implementation(out_of_memory_of(library), "selftest_out_of_memory", library, "vector", "breaks on purpose")
        for library in ("numba_cuda", "torch")
    ]
    known = dict(gpuexplore.operations.OPERATIONS)
    operation = known[OPERATION]
    known[OPERATION] = replace(operation, implementations=(*operation.implementations, *rows))
    gpuexplore.operations.OPERATIONS = MappingProxyType(known)


def _make_module(name: str, build: Callable[..., Any]) -> None:
    module: Any = ModuleType(f"gpuexplore.operations.{OPERATION}.{name}")
    module.build = build
    sys.modules[module.__name__] = module
