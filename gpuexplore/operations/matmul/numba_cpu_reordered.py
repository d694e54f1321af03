"""The same product with the two inner loops exchanged: rows of B are added up, each times an element of A.

The innermost loop runs along a row of B and a row of sums, element by element as they lie in memory: every
element of a cache line is used, the next line is fetched ahead, and the compiler makes vectors of them. What
is left: all of B passes through the cache for each row of the output.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_formats import narrow, widen


@njit(parallel=True, fastmath={"contract"}, cache=True)
def matmul(a, b, out, sums):
    """Write (m, k) @ (k, n) to `out` (m, n); `sums` (threads, n) has a row for each thread."""
    for i in prange(a.shape[0]):
        row, source = sums[numba.get_thread_id()], a[i]
        row[:] = 0
        for p in range(a.shape[1]):
            factor, terms = widen(source[p]), b[p]
            for j in range(b.shape[1]):
                row[j] += factor * widen(terms[j])
        for j in range(b.shape[1]):
            out[i, j] = narrow(row[j], out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    sums = np.empty((numba.config.NUMBA_NUM_THREADS, b.shape[1]), DTYPES[dtype.accumulate].storage)
    return lambda: matmul(a, b, out, sums)
