"""The product in panels: each thread takes 16 rows and walks B in panels that stay in the L1 cache.

What is new to the ladder is in `gpuexplore.kernels.row_panels`: a panel of B is fetched once for 16 rows
of the output, and four terms are added at a time, so that a sum is loaded and stored once for four
multiply-adds. What is left: the sums still travel between the registers and the cache.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.row_panels import ROWS, multiply_rows


@njit(parallel=True, cache=True)
def matmul(a, b, out, zero):
    """Write (m, k) @ (k, n) to `out` (m, n); `zero` (1) has the dtype of the sums."""
    for block in prange((a.shape[0] + ROWS - 1) // ROWS):
        rows = slice(block * ROWS, min(a.shape[0], block * ROWS + ROWS))
        multiply_rows(a[rows], b, out[rows], zero)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    return lambda: matmul(a, b, out, zero)
