"""A parallel CPU loop in Numba: each thread sums whole rows, which LLVM vectorises."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import narrow, widen


@njit(parallel=True, fastmath={"contract", "reassoc"}, cache=True)
def _matvec(a, x, out, zero):
    """Write (m, n) @ (n) to `out` (m); `zero` has the dtype of the sums."""
    for row in prange(out.size):
        total = zero[0]
        for j in range(x.size):
            total += widen(a[row, j]) * widen(x[j])
        out[row] = narrow(total, out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, n) @ (n) into `out` (m)."""
    a, x = inputs
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    return lambda: _matvec(a, x, out, zero)
