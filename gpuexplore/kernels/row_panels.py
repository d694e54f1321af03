"""A product of a few rows on one thread, in Numba: what our parallel CPU loops are made of.

The sums of up to 16 rows and 256 columns stay in the L1 cache while panels of 32 rows of B pass by; four
terms are added at a time, so that a sum is loaded and stored once for four multiply-adds.
Only modules that load Numba import this.
"""

from typing import Any

import numpy as np
from numba import njit

from gpuexplore.kernels.cpu_formats import narrow, widen

ROWS = 16  # what a caller should hand over at a time
COLUMNS = 256
TERMS = 32  # 32 x 256 fp32 are 32 KiB: the L1 cache of one core


@njit(fastmath={"contract"}, cache=True)
def _add_terms(sums: Any, a_row: Any, panel: Any, left: int) -> None:
    """Add a_row (terms) @ panel (terms, n), from column `left` on, to `sums` (columns)."""
    right = left + sums.size
    whole = a_row.size // 4 * 4
    for p in range(0, whole, 4):
        a0 = widen(a_row[p])
        a1 = widen(a_row[p + 1])
        a2 = widen(a_row[p + 2])
        a3 = widen(a_row[p + 3])
        b0 = panel[p][left:right]
        b1 = panel[p + 1][left:right]
        b2 = panel[p + 2][left:right]
        b3 = panel[p + 3][left:right]
        for j in range(sums.size):
            sums[j] += a0 * widen(b0[j]) + a1 * widen(b1[j]) + a2 * widen(b2[j]) + a3 * widen(b3[j])
    for p in range(whole, a_row.size):
        a0 = widen(a_row[p])
        b0 = panel[p][left:right]
        for j in range(sums.size):
            sums[j] += a0 * widen(b0[j])


@njit(cache=True)
def multiply_rows(a: Any, b: Any, out: Any, zero: Any) -> None:
    """Write (rows, k) @ (k, n) to `out` (rows, n); `zero` (1) has the dtype of the sums."""
    rows, k = a.shape
    n = b.shape[1]
    sums = np.empty((rows, min(n, COLUMNS)), zero.dtype)
    for left in range(0, n, COLUMNS):
        width = min(COLUMNS, n - left)
        sums[:] = zero[0]
        for top in range(0, k, TERMS):
            bottom = min(k, top + TERMS)
            for row in range(rows):
                _add_terms(sums[row][:width], a[row][top:bottom], b[top:bottom], left)
        for row in range(rows):
            for j in range(width):
                out[row, left + j] = narrow(sums[row, j], out.dtype)
