"""One pass of a grid on a GPU: neighbouring threads read elements that are neighbours in row order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import cuda

from gpuexplore.backends import load_backend
from gpuexplore.dtypes import dtype_named

THREADS, MOST_BLOCKS = 256, 2048  # enough to fill any GPU


@cuda.jit
def strided_sum_kernel(storage: Any, lengths: Any, strides: Any, out: Any) -> None:
    """Write the sum of each thread's elements to `out` (threads)."""
    thread = cuda.grid(1)
    found = out[thread] - out[thread]
    for number in range(thread, lengths[0] * lengths[1] * lengths[2] * lengths[3], cuda.gridsize(1)):
        rest, m = number // lengths[3], number % lengths[3]
        rest, k = rest // lengths[2], rest % lengths[2]
        i, j = rest // lengths[1], rest % lengths[1]
        found += storage[i * strides[0] + j * strides[1] + k * strides[2] + m * strides[3]]
    out[thread] = found


def build(
    storage: npt.NDArray[np.uint32], lengths: npt.NDArray[np.uint64], strides: npt.NDArray[np.uint64], device: str
) -> tuple[Callable[[], object], Callable[[], npt.NDArray[np.uint64]]]:
    """Return a call that reads every element, and what returns their sum (1) afterwards."""
    blocks = min(MOST_BLOCKS, -(-int(lengths.prod()) // THREADS))
    moved = load_backend("numba_cuda").to_device(storage.view(np.float32), dtype_named("fp32"), device).view(np.uint32)
    arrays = [cuda.to_device(values.astype(np.int64)) for values in (lengths, strides)]
    out = cuda.to_device(np.zeros(blocks * THREADS, np.int64))
    configured = strided_sum_kernel[blocks, THREADS]
    return (
        lambda: configured(moved, *arrays, out),
        lambda: out.copy_to_host().view(np.uint64).sum(keepdims=True),
    )
