"""A kernel whose neighbouring threads read elements that are neighbours along the last axis, as a contiguous read does.

A block takes a stretch of a row at a time: it finds the row by divisions, which take longer than a load, once for up to
eight elements of each thread.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import dtype_named

THREADS = 256
STRETCH = 8 * THREADS


@cuda.jit
def _strided_sum_kernel(storage: Any, lengths: Any, strides: Any, out: Any) -> None:
    """Write the sum of each thread's elements to `out` (threads).

    Args:
        storage: unsigned integers of 32 bits.
        lengths: of four axes.
        strides: of four axes, in elements.
        out: integers of 64 bits.
    """
    found = out[cuda.grid(1)] - out[cuda.grid(1)]
    stretches = (lengths[3] + STRETCH - 1) // STRETCH
    for item in range(cuda.blockIdx.x, lengths[0] * lengths[1] * lengths[2] * stretches, cuda.gridDim.x):
        row = item // stretches
        stretch = item % stretches
        rest = row // lengths[2]
        k = row % lengths[2]
        start = rest // lengths[1] * strides[0] + rest % lengths[1] * strides[1] + k * strides[2]
        first = stretch * STRETCH
        for m in range(first + cuda.threadIdx.x, min(first + STRETCH, lengths[3]), THREADS):
            found += storage[start + m * strides[3]]
    out[cuda.grid(1)] = found


def build(
    storage: np.typing.NDArray[np.uint32],
    lengths: np.typing.NDArray[np.uint64],
    strides: np.typing.NDArray[np.uint64],
    device: str,
) -> tuple[Callable[[], object], Callable[[], np.typing.NDArray[np.uint64]]]:
    """Return a call that reads every element, and what returns their sum (1) afterwards."""
    blocks = min(2048, int(lengths[:3].prod()) * -(-int(lengths[3]) // STRETCH))  # 2048 fill any GPU
    moved = load_backend("numba_cuda").to_device(storage, dtype_named("fp32"), device)
    extents, steps = (cuda.to_device(values.astype(np.int64)) for values in (lengths, strides))
    out = cuda.to_device(np.zeros(blocks * THREADS, np.int64))
    configured = _strided_sum_kernel[blocks, THREADS]
    return (
        lambda: configured(moved, extents, steps, out),
        lambda: out.copy_to_host().view(np.uint64).sum(keepdims=True),
    )
