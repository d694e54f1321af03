"""Whether an output is correct: norm(out - reference) / norm(reference) against a tolerance.

An exact comparison, or a fixed tolerance, rejects correct outputs: the notebooks' `allclose` did, on
a sum of 1000 fp32 terms in another order. The tolerance here grows with the square root of the sum's
length, as the error of a sum of independent roundings does (Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 4.2), times a safety factor of four.
"""

from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.model import Accuracy, Shape
from gpuexplore.operations.contract import Operation

SAFETY_FACTOR = 4.0


def tolerance(operation: Operation, shape: Shape, dtype: DType) -> float:
    """Return the largest relative error that rounding can explain for this case."""
    rounding_the_output = 2 * dtype.unit_roundoff
    summing = SAFETY_FACTOR * DTYPES[dtype.accumulate].unit_roundoff * sqrt(operation.reduction_length(shape))
    return rounding_the_output + summing


def check(
    out: npt.NDArray[np.float64], parts: tuple[tuple[Any, npt.NDArray[np.float64]], ...], allowed: float
) -> Accuracy:
    """Return the largest relative error of `out` over the reference `parts`."""
    errors = [_relative_error(out[index], expected) for index, expected in parts]
    known = [error for error in errors if error is not None]
    return Accuracy(max(known) if len(known) == len(errors) and _all_finite(out) else None, allowed)


def describe(accuracy: Accuracy) -> str:
    """Return why an output is incorrect."""
    if accuracy.relative_error is None:
        return "the output holds NaN or infinity: elements were never written, or overflowed"
    return f"relative error {accuracy.relative_error:.2g}, rounding explains at most {accuracy.tolerance:.2g}"


def _all_finite(out: npt.NDArray[np.float64]) -> bool:
    return bool(np.isfinite(out).all())


def _relative_error(out: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> float | None:
    scale = float(np.linalg.norm(expected))
    with np.errstate(all="ignore"):  # a wrong output may overflow: its error is then unknown
        error = float(np.linalg.norm(out - expected)) / (scale or 1.0)
    return error if np.isfinite(error) else None
