"""Whether an output is right: norm(out - reference) / norm(reference) against a tolerance.

An exact comparison, or fixed tolerances, call right answers wrong: the notebooks' `allclose` did, on
a sum of 1000 fp32 terms in another order. The tolerance here grows with the square root of the sum's
length, as the error of a sum of independent roundings does (Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 4.2), with a factor of four to spare.
"""

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.model import Accuracy, Shape
from gpuexplore.operations.contract import Operation

SPARE = 4.0


def tolerance(operation: Operation, shape: Shape, dtype: DType) -> float:
    """Return the largest relative error that rounding can explain for this case."""
    rounding_the_output = 2 * dtype.unit_roundoff
    summing = SPARE * DTYPES[dtype.accumulate].unit_roundoff * sqrt(operation.reduction_length(shape))
    return rounding_the_output + summing


def check(
    out: npt.NDArray[np.float64], parts: tuple[tuple[Any, npt.NDArray[np.float64]], ...], allowed: float
) -> Accuracy:
    """Return how far `out` is from the reference `parts`, the worst part counting."""
    errors = [_relative_error(out[index], right) for index, right in parts]
    known = [error for error in errors if error is not None]
    return Accuracy(max(known) if len(known) == len(errors) and _all_finite(out) else None, allowed)


def describe(accuracy: Accuracy) -> str:
    """Return the reason an output was refused."""
    if accuracy.relative_error is None:
        return "the output holds NaN or infinity: elements were never written, or overflowed"
    return f"relative error {accuracy.relative_error:.2g}, rounding explains at most {accuracy.tolerance:.2g}"


def _all_finite(out: npt.NDArray[np.float64]) -> bool:
    return bool(np.isfinite(out).all())


def _relative_error(out: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> float | None:
    scale = float(np.linalg.norm(right))
    with np.errstate(all="ignore"):  # a wrong output may overflow; the answer is then "no norm"
        error = float(np.linalg.norm(out - right)) / (scale or 1.0)
    return error if np.isfinite(error) else None
