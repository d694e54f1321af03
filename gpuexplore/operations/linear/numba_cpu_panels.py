"""A parallel CPU loop in Numba: each thread takes 16 rows of the batch at a time through all weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.row_panels import ROWS, multiply_rows


@njit(parallel=True, cache=True)
def linear(x, weights, out, zero):
    """Write (b, d) @ (d, k) to `out` (b, k); `zero` (1) has the dtype of the sums."""
    for strip in prange((x.shape[0] + ROWS - 1) // ROWS):
        top = strip * ROWS
        bottom = min(x.shape[0], top + ROWS)
        multiply_rows(x[top:bottom], weights, out[top:bottom], zero)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the layer (b, d) @ (d, k) into `out` (b, k)."""
    x, weights = inputs
    zero = np.zeros(1, DTYPES[dtype.accumulate].storage)
    return lambda: linear(x, weights, out, zero)
