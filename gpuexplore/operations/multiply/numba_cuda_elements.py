"""A CUDA kernel in Numba: one thread an element, blocks of 256, bounds checked."""

from collections.abc import Callable, Sequence
from typing import Any

from numba import cuda

from gpuexplore.backends.formats.numba_cuda import narrow, widen
from gpuexplore.dtypes import DType

THREADS = 256


def kernel(a, b, out):
    """Write the element-wise product of (n) and (n) to `out` (n)."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = narrow(widen(a[i]) * widen(b[i]), out.dtype)


multiply = cuda.jit(kernel)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the element-wise product of two equal shapes into `out`."""
    a, b, flat = *(one.reshape(one.size) for one in inputs), out.reshape(out.size)
    launch = multiply[-(-flat.size // THREADS), THREADS]
    return lambda: launch(a, b, flat)
