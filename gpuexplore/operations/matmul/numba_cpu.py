"""The first steps of the CPU ladder: three plain loops, the same in another order, and in panels."""

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import ROWS, multiply_rows, narrow, widen

Build = Callable[[Sequence[Any], Any, DType], Callable[[], object]]


@njit(parallel=True, fastmath={"contract"}, cache=True)
def naive(a, b, out, zero):
    """Write (m, k) @ (k, n) to `out` (m, n) as the formula reads: an element is a row of A times a column of B.

    Threads share the rows of the output. The innermost loop walks down a column of B: each term lies in another cache
    line, of which it uses one element, and in another page of memory once the rows are long. `zero` (1) has the dtype
    of the sums.
    """
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            total = zero[0]
            for p in range(a.shape[1]):
                total += widen(a[i, p]) * widen(b[p, j])
            out[i, j] = narrow(total, out.dtype)


@njit(parallel=True, fastmath={"contract"}, cache=True)
def reordered(a, b, out, sums):
    """Write the same product with the two inner loops exchanged: rows of B are added up, each times an element of A.

    The innermost loop runs along a row of B and a row of sums, element by element as they lie in memory: every element
    of a cache line is used, the next line is fetched ahead, and the compiler makes vectors of them. What is left: all
    of B passes through the cache for each row of the output. `sums` (threads, n) has a row for each thread.
    """
    for i in prange(a.shape[0]):
        row = sums[numba.get_thread_id()]
        source = a[i]
        row[:] = 0
        for p in range(a.shape[1]):
            factor = widen(source[p])
            terms = b[p]
            for j in range(b.shape[1]):
                row[j] += factor * widen(terms[j])
        for j in range(b.shape[1]):
            out[i, j] = narrow(row[j], out.dtype)


@njit(parallel=True, cache=True)
def blocked(a, b, out, zero):
    """Write the product in panels: each thread takes 16 rows and walks B in panels that stay in the L1 cache.

    New to the ladder is `gpuexplore.kernels.cpu_micro_kernel`: a panel of B is fetched once for 16 rows of the
    output, and four terms are added at a time, so that a sum is loaded and stored once for four multiply-adds. What is
    left: the sums still travel between the registers and the cache.
    """
    for block in prange((a.shape[0] + ROWS - 1) // ROWS):
        rows = slice(block * ROWS, min(a.shape[0], block * ROWS + ROWS))
        multiply_rows(a[rows], b, out[rows], zero)


def _with_zero(kernel: Any) -> Build:
    """Return the `build` of a kernel that takes a zero in the dtype of the sums."""

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
        a, b = inputs
        zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
        return lambda: kernel(a, b, out, zero)

    return build


def build_reordered(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    sums = np.empty((numba.config.NUMBA_NUM_THREADS, b.shape[1]), DTYPES[dtype.accumulate].storage)
    return lambda: reordered(a, b, out, sums)


build_naive = _with_zero(naive)
build_blocked = _with_zero(blocked)
