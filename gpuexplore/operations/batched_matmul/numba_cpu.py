"""A parallel CPU loop in Numba over all matrices, 16 rows of a product at a time."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import ROWS, multiply_rows


@njit(parallel=True, cache=True)
def _batched_matmul(a, b, out, zero):
    """Write (batch, m, k) @ (batch or 1, k, n) to `out` (batch, m, n); `zero` (1) has the dtype of the sums."""
    strips = (a.shape[1] + ROWS - 1) // ROWS
    for task in prange(a.shape[0] * strips):
        matrix = task // strips
        top = task % strips * ROWS
        bottom = min(a.shape[1], top + ROWS)
        multiply_rows(a[matrix, top:bottom], b[min(matrix, b.shape[0] - 1)], out[matrix, top:bottom], zero)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return (outer, inner, m, k) @ (k, n) or (outer, inner, k, n) into `out` (outer, inner, m, n)."""
    a, b, products = (array.reshape(-1, *array.shape[-2:]) for array in (*inputs, out))
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    return lambda: _batched_matmul(a, b, products, zero)
