"""Copies by Numba's CUDA: those that are asked for, and those that it makes when a kernel is called with host arrays.

A kernel's host arrays go to the device before it, all of them, and come back after it, all of them: three arrays of a
vector addition are six transfers, of which two in and one out are needed.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import config

from gpuexplore.backends import load_backend
from gpuexplore.backends.cuda_kernels import cuda

config.CUDA_WARN_ON_IMPLICIT_COPY = 0  # implicit copies are made on purpose here, and their time is the answer
THREADS = 256
Floats = np.typing.NDArray[np.float32]


def _add_kernel(a: Any, b: Any, out: Any) -> None:
    """Write (n) + (n) to `out` (n), one thread per element."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


ADD: Any = cuda.jit(_add_kernel)


def copies_by_numba(values: Floats, device: str) -> Iterator[tuple[str, int, Callable[[], object], Callable[[], bool]]]:
    """Yield name, arrays moved by a call, the call and whether it was right, of every way."""
    load_backend("numba_cuda").synchronize(device)  # selects the device
    there = cuda.to_device(np.zeros_like(values))
    back = np.zeros_like(values)
    full = cuda.to_device(values)

    def to_device() -> None:
        there.copy_to_device(values)
        cuda.synchronize()

    yield "to_device", 1, to_device, lambda: bool(np.array_equal(there.copy_to_host(), values))
    yield "copy_to_host", 1, lambda: full.copy_to_host(back), lambda: bool(np.array_equal(back, values))
    yield "kernel with host arrays", 2 * 3, *_launch(values, values, np.zeros_like(values))
    yield "kernel with device arrays", 0, *_launch(full, full, cuda.to_device(np.zeros_like(values)))


def _launch(a: Any, b: Any, out: Any) -> tuple[Callable[[], object], Callable[[], bool]]:
    configured = ADD[-(-out.size // THREADS), THREADS]

    def run() -> None:
        configured(a, b, out)
        cuda.synchronize()

    return run, lambda: bool(np.array_equal(_host(out), _host(a) + _host(b)))


def _host(array: Any) -> Floats:
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array
