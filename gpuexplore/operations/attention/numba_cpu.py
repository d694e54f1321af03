"""A parallel CPU loop in Numba over 16 rows of a head at a time: their scores stay in the cache."""

from collections.abc import Callable, Sequence
from math import exp
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import COLUMNS, ROWS, multiply_rows, widen


@njit(cache=True)
def _widened_transpose(rows, scale, like):
    """Return rows (n, d) times `scale` as (d, n) in the dtype of `like`."""
    transposed = np.empty((rows.shape[1], rows.shape[0]), like.dtype)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            transposed[j, i] = widen(rows[i, j]) * scale
    return transposed


@njit(fastmath={"contract", "reassoc"}, cache=True)
def _soften(scores):
    """Replace `scores` (s) by their softmax."""
    highest = scores.max()
    total = scores.dtype.type(0)
    for i in range(scores.size):
        scores[i] = exp(scores[i] - highest)
        total += scores[i]
    for i in range(scores.size):
        scores[i] /= total


@njit(parallel=True, cache=True)
def _attention(q, k, v, out, scale, causal):
    """Write the attention of three (heads, s, d) to `out` (heads, s, d); `scale` (1) has the dtype of the sums."""
    length = q.shape[1]
    zero = np.zeros_like(scale)
    strips = (length + ROWS - 1) // ROWS
    for task in prange(q.shape[0] * strips):
        head = task // strips
        top = task % strips * ROWS
        bottom = min(length, top + ROWS)
        end = bottom if causal else length
        scores = np.empty((bottom - top, end), scale.dtype)
        for left in range(0, end, COLUMNS):
            right = min(end, left + COLUMNS)
            keys = _widened_transpose(k[head, left:right], scale[0], scale)
            multiply_rows(q[head, top:bottom], keys, scores[:, left:right], zero)
        for row in range(bottom - top):
            seen = top + row + 1 if causal else length
            _soften(scores[row, :seen])
            scores[row, seen:] = 0
        multiply_rows(scores, v[head, :end], out[head, top:bottom], zero)


def build(inputs: Sequence[Any], out: Any, dtype: DType, *, causal: bool = False) -> Callable[[], object]:
    """Return softmax(q kᵀ / √d) v of three (b, h, s, d) into `out` (b, h, s, d)."""
    q, k, v, outs = (array.reshape(-1, *out.shape[-2:]) for array in (*inputs, out))
    scale = np.full(1, out.shape[-1] ** -0.5, DTYPES[dtype.accumulate].storage)
    return lambda: _attention(q, k, v, outs, scale, causal)
