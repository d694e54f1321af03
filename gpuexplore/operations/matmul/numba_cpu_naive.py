"""The product as its formula reads: each element is a dot product of a row of A and a column of B.

The first step of the ladder. Threads share the rows of the output. The innermost loop walks down a column
of B: each term lies in another cache line, of which it uses one element, and in another page of memory
once the rows are long.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_formats import narrow, widen


@njit(parallel=True, fastmath={"contract"}, cache=True)
def matmul(a, b, out, zero):
    """Write (m, k) @ (k, n) to `out` (m, n); `zero` (1) has the dtype of the sums."""
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            total = zero[0]
            for p in range(a.shape[1]):
                total += widen(a[i, p]) * widen(b[p, j])
            out[i, j] = narrow(total, out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    return lambda: matmul(a, b, out, zero)
