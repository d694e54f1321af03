"""A parallel CPU loop in Numba: each thread takes rows, whose exponentials wait in a buffer of its own."""

from collections.abc import Callable, Mapping, Sequence
from math import factorial, log
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange, types
from numba.extending import overload

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import narrow, widen

FORMATS: Mapping[Any, tuple[Any, ...]] = {  # number, integer, bias and offset of the exponent, terms, least of exp > 0
    types.float32: (np.float32, np.int32, 127, 23, 7, -87),
    types.float64: (np.float64, np.int64, 1023, 52, 13, -708),
}


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
def _softmax(x, out, weights):
    """Write the softmax of the rows of (m, n) to `out` (m, n); `weights` (threads, n) is for intermediate results."""
    m = x.shape[0]
    parts = weights.shape[0]
    for part in prange(parts):
        for row in range(part * m // parts, (part + 1) * m // parts):
            _weigh(x[row], weights[part])
            _share(weights[part], out[row])


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the softmax of the rows of (m, n) into `out` (m, n)."""
    (x,) = inputs
    weights = np.empty((get_num_threads(), x.shape[1]), DTYPES[dtype.accumulate].storage)
    return lambda: _softmax(x, out, weights)


# An exponential that vectorises, for CPU kernels in Numba.
#
# The C library's exp is a call for every element, and no loop with a call in it vectorises; this one is a polynomial,
# five times as fast. Only modules that load Numba import this.


def exponential(x: Any) -> Any:
    """Return exp of an fp32 or fp64 that is not above 0, in a kernel: 2**k · exp(r) with r within ±ln 2 / 2."""


@overload(exponential, inline="always")
def _exponential(x: Any) -> Any:
    """W. Cody, W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 6."""
    kind, whole, bias, shift, degree, least = FORMATS[x]
    first, *rest = (kind(1 / factorial(i)) for i in range(degree, -1, -1))
    terms = tuple(rest)
    upper = kind(355 / 512)  # ln 2 to nine bits: its products with small whole numbers are exact
    lower = kind(-2.121944400546905827679e-4)  # the rest of ln 2, to more digits than a double of ln 2 has
    per = kind(1 / log(2))
    half = kind(0.5)
    least = kind(least)
    zero = kind(0)
    bias = whole(bias)
    shift = whole(shift)

    def evaluate(x: Any) -> Any:
        clamped = max(x, least)
        k = np.floor(clamped * per + half)
        r = (clamped - k * upper) - k * lower
        power = first
        for term in terms:
            power = power * r + term
        scaled = power * whole((whole(k) + bias) << shift).view(kind)
        return scaled if x > least else zero

    return evaluate
