"""A parallel CPU loop in Numba: each thread takes rows, whose exponentials wait in a buffer of its own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu.exponential import exponential
from gpuexplore.kernels.formats.numba_cpu import narrow, widen


@njit(fastmath={"contract"}, cache=True)  # with "reassoc" r would lose its lower half
def _weigh(values, weights):
    """Write exp(value - largest value) to `weights`."""
    for j in range(values.size):
        weights[j] = widen(values[j])
    top = weights[0]
    for j in range(1, values.size):
        top = max(top, weights[j])
    for j in range(values.size):
        weights[j] = exponential(weights[j] - top)


@njit(fastmath={"contract", "reassoc"}, cache=True)
def _share(weights, out):
    """Write each weight's share of their sum to `out`."""
    total = weights[0]
    for j in range(1, weights.size):
        total += weights[j]
    for j in range(weights.size):
        out[j] = narrow(weights[j] / total, out.dtype)


@njit(parallel=True, cache=True)
def softmax(x, out, weights):
    """Write the softmax of the rows of (m, n) to `out` (m, n); `weights` (threads, n) is for intermediate results."""
    m, parts = x.shape[0], weights.shape[0]
    for part in prange(parts):
        for row in range(part * m // parts, (part + 1) * m // parts):
            _weigh(x[row], weights[part])
            _share(weights[part], out[row])


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the softmax of the rows of (m, n) into `out` (m, n)."""
    (x,) = inputs
    weights = np.empty((get_num_threads(), x.shape[1]), DTYPES[dtype.accumulate].storage)
    return lambda: softmax(x, out, weights)
