"""A parallel CPU loop in Numba: each thread takes 16 rows and walks B in panels that stay in the L1 cache.

The sums of 16 rows and 256 columns are kept while panels of 32 rows of B pass by; four terms are added
at a time, so that a sum is loaded and stored once for four multiply-adds.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.backends.formats.numba_cpu import narrow, widen
from gpuexplore.dtypes import DTYPES, DType

ROWS = 16
COLUMNS = 256
TERMS = 32  # 32 x 256 fp32 are 32 KiB: the L1 cache of one core


@njit(fastmath={"contract"}, cache=True)
def _add_terms(sums, a_row, panel, left):
    """Add a_row (terms) @ panel (terms, n), from column `left` on, to `sums` (columns)."""
    right = left + sums.size
    whole = a_row.size // 4 * 4
    for p in range(0, whole, 4):
        a0, a1, a2, a3 = widen(a_row[p]), widen(a_row[p + 1]), widen(a_row[p + 2]), widen(a_row[p + 3])
        b0, b1 = panel[p][left:right], panel[p + 1][left:right]
        b2, b3 = panel[p + 2][left:right], panel[p + 3][left:right]
        for j in range(sums.size):
            sums[j] += a0 * widen(b0[j]) + a1 * widen(b1[j]) + a2 * widen(b2[j]) + a3 * widen(b3[j])
    for p in range(whole, a_row.size):
        a0, b0 = widen(a_row[p]), panel[p][left:right]
        for j in range(sums.size):
            sums[j] += a0 * widen(b0[j])


@njit(parallel=True, cache=True)
def matmul(a, b, out, zero):
    """Write (m, k) @ (k, n) to `out` (m, n); `zero` (1) has the dtype of the sums."""
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    for block in prange((m + ROWS - 1) // ROWS):
        first, last = block * ROWS, min(m, block * ROWS + ROWS)
        sums = np.empty((ROWS, COLUMNS), zero.dtype)
        for left in range(0, n, COLUMNS):
            width = min(COLUMNS, n - left)
            sums[:] = zero[0]
            for top in range(0, k, TERMS):
                bottom = min(k, top + TERMS)
                for row in range(first, last):
                    _add_terms(sums[row - first][:width], a[row][top:bottom], b[top:bottom], left)
            for row in range(first, last):
                for j in range(width):
                    out[row, left + j] = narrow(sums[row - first, j], out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    return lambda: matmul(a, b, out, zero)
