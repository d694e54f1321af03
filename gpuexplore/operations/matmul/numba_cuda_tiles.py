"""A CUDA kernel in Numba: each block of 16 x 16 threads computes a 16 x 16 tile of the product.

Both tiles of a step are loaded into shared memory once and used 16 times; sums are kept in fp32
(fp64 for fp64). Threads outside the matrices load zeros and store nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.backends.formats.numba_cuda import narrow, widen
from gpuexplore.dtypes import DTYPES, DType

TILE = 16


def kernel_for(sum_dtype: np.dtype) -> Any:
    """Return the kernel that keeps its sums in `sum_dtype`."""
    kind = sum_dtype.type

    def matmul(a, b, out):
        tile_a = cuda.shared.array((TILE, TILE), kind)
        tile_b = cuda.shared.array((TILE, TILE), kind)  # a line of its own: the simulator names arrays by their line
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        total = kind(0)
        for step in range((a.shape[1] + TILE - 1) // TILE):
            p, q = step * TILE + x, step * TILE + y
            tile_a[y, x] = widen(a[row, p]) if row < a.shape[0] and p < a.shape[1] else kind(0)
            tile_b[y, x] = widen(b[q, column]) if q < b.shape[0] and column < b.shape[1] else kind(0)
            cuda.syncthreads()
            for term in range(TILE):
                total += tile_a[y, term] * tile_b[term, x]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = narrow(total, out.dtype)

    return matmul


KERNELS = {name: cuda.jit(kernel_for(np.dtype(name)), fastmath={"contract"}) for name in ("float32", "float64")}


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    blocks = (-(-out.shape[1] // TILE), -(-out.shape[0] // TILE))
    launch = KERNELS[DTYPES[dtype.accumulate].storage.name][blocks, (TILE, TILE)]
    return lambda: launch(a, b, out)
