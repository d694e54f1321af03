"""An exponential that vectorises, for CPU kernels in Numba.

The C library's exp is a call for every element, and no loop with a call in it vectorises; this one is a polynomial,
five times as fast. Only modules that load Numba import this.
"""

from collections.abc import Mapping
from math import factorial, log
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

UPPER = 355 / 512  # ln 2 to nine bits: its products with small whole numbers are exact
LOWER = -2.121944400546905827679e-4  # the rest of ln 2, to more digits than a double of ln 2 has
FORMATS: Mapping[Any, tuple[Any, ...]] = {  # number, integer, bias and place of the exponent, terms, least of exp > 0
    types.float32: (np.float32, np.int32, 127, 23, 7, -87),
    types.float64: (np.float64, np.int64, 1023, 52, 13, -708),
}


def exponential(x: Any) -> Any:
    """Return exp of an fp32 or fp64 that is not above 0, in a kernel: 2**k · exp(r) with r within ±ln 2 / 2."""


@overload(exponential, inline="always")
def _exponential(x: Any) -> Any:
    """W. Cody, W. Waite, "Software Manual for the Elementary Functions", 1980, chapter 6."""
    kind, whole, bias, shift, degree, least = FORMATS[x]
    first, *rest = (kind(1 / factorial(i)) for i in range(degree, -1, -1))
    terms, upper, lower, per, half = tuple(rest), kind(UPPER), kind(LOWER), kind(1 / log(2)), kind(0.5)
    least, zero, bias, shift = kind(least), kind(0), whole(bias), whole(shift)

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
