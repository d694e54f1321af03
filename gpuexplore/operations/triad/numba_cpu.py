"""A parallel loop over the elements in Numba, which LLVM vectorises."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import narrow, widen
from gpuexplore.operations.triad import FACTOR


@njit(parallel=True, fastmath={"contract"}, cache=True)
def _triad(a, b, out, factor):
    """Write (n) + factor·(n) to `out` (n); `factor` (1) has the dtype of the arithmetic."""
    for i in prange(out.size):
        out[i] = narrow(widen(a[i]) + factor[0] * widen(b[i]), out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return (n) + 3·(n) into `out` (n)."""
    a, b = inputs
    factor = np.full(1, FACTOR, DTYPES[dtype.accumulate].storage)
    return lambda: _triad(a, b, out, factor)
