"""The correctness of an output: norm(out - reference) / norm(reference) against a tolerance.

An exact comparison, or a fixed tolerance, rejects correct outputs: the notebooks' `allclose` did, on
a sum of 1000 fp32 terms in another order. The tolerance here grows with the square root of the sum's
length, as the error of a sum of independent roundings does (Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 4.2), times a safety factor of four. It grows in the same way with the
roundings that follow one another, as those of a network's layers do.

A network with ReLU has kinks: a unit within rounding of zero passes its gradient on, or not, and either is right. What
such units make of each quantity is computed, not estimated, and allowed on top of its tolerance.
"""

from collections.abc import Iterator, Sequence
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.model import Accuracy, Shape
from gpuexplore.operations import AS_SUMMED, NEGLIGIBLE, Array, Growth, Operation

if TYPE_CHECKING:  # it loads torch
    from gpuexplore.measure.arrays.device_arrays import DeviceOutput

Output: TypeAlias = "Array | DeviceOutput"  # the latter on its device, only parts are copied, in float64

BLOCK_ELEMENTS = 1 << 15  # 256 KB in float64: a core's cache holds what is compared and the differences


def tolerance(operation: Operation, shape: Shape, dtype: DType, growth: Growth = AS_SUMMED) -> float:
    """Return the largest relative error that rounding can explain for this case."""
    rounding = rounded_error(dtype) * sqrt(operation.roundings(shape))
    return rounding + growth.norm * summed_error(dtype) * sqrt(operation.reduction_length(shape))


def rounded_error(dtype: DType) -> float:
    """Return the largest relative error of numbers that were rounded to `dtype` once."""
    return 2 * dtype.unit_roundoff


def summed_error(dtype: DType) -> float:
    """Return the largest relative error of sums in `dtype`, for each term's square root."""
    return 4.0 * DTYPES[dtype.accumulate].unit_roundoff  # a safety factor of four


def check(
    out: Output,
    parts: tuple[tuple[Any, Array], ...],
    allowed: float,
    leeways: Sequence[float] = (),
    *,
    scales: Sequence[Any] = (),
) -> Accuracy:
    """Return the relative error of `out` over the one of the reference `parts` that it is least within.

    Args:
        out: the output.
        parts: pairs of an index into it and the expected values there.
        allowed: the largest relative error of any part.
        leeways: norms of the error that each part may have besides; empty: none.
        scales: the sizes of the terms of each part's elements, which broadcast against it. Where they cancel, which a
            few elements may by chance, its error is relative to them. Empty: nothing cancels.
    """
    norms = [hypot(*(_norm(expected[rows]) for rows in row_blocks(expected))) for _, expected in parts]
    sizes = [_scale(norm, hypot(*norms)) for norm in norms]
    sizes = [
        _cancelled(size, expected.size, scale)
        for size, (_, expected), scale in zip(sizes, parts, scales or [np.zeros(())] * len(parts), strict=True)
    ]
    errors = [_relative_error(out[index], expected, size) for (index, expected), size in zip(parts, sizes, strict=True)]
    known = [error for error in errors if error is not None]
    limits = [allowed + leeway / size for leeway, size in zip(leeways or [0.0] * len(parts), sizes, strict=True)]
    if len(known) < len(errors) or not _all_finite(out, parts):
        return Accuracy(None, max(limits))
    return Accuracy(*max(zip(known, limits, strict=True), key=lambda pair: pair[0] / pair[1]))


def describe(accuracy: Accuracy) -> str:
    """Return why an output is incorrect."""
    if accuracy.relative_error is None:
        return "the output contains NaN or infinity: elements were never written, or overflowed"
    worst = accuracy.worst
    if accuracy.relative_error <= accuracy.tolerance and worst and worst.share > 1:
        difference = abs(worst.value - worst.expected)
        return (
            f"{worst.where} is {worst.value:.6g} where {worst.expected:.6g} is expected: off by {difference:.2g}, "
            f"rounding explains at most {worst.allowed:.2g}"
        )
    return f"relative error {accuracy.relative_error:.2g}, rounding explains at most {accuracy.tolerance:.2g}"


def row_blocks(array: Array) -> Iterator[Any]:
    """Yield indices of successive rows: differences of a gigabyte would cost more to allocate than to compute."""
    if array.size <= BLOCK_ELEMENTS or not array.ndim or not isinstance(array, np.ndarray):  # of a device: one block
        yield ...
        return
    step = max(1, BLOCK_ELEMENTS * len(array) // array.size)
    yield from (slice(start, start + step) for start in range(0, len(array), step))


def _all_finite(out: Output, parts: Sequence[tuple[Any, Array]]) -> bool:
    """Return whether the elements are finite that `parts`, whose norms say so of their own, leave out."""
    if sum(expected.size for _, expected in parts) == out.size:
        return True
    if isinstance(out, np.ndarray):
        return all(bool(np.isfinite(out[rows]).all()) for rows in row_blocks(out))
    return out.all_finite()


def _scale(norm: float, whole: float) -> float:
    """Return the reference scale of a part's error: its norm, or that of the whole output where it is zero."""
    return (norm if norm > NEGLIGIBLE * whole else whole) or 1.0


def _cancelled(size: float, elements: int, scale: Array) -> float:
    """Return the reference scale of a part's error: its size, or that of its terms where they cancelled."""
    few = 256  # elements: the norm of more differs from that of their terms by a few percent
    terms = _norm(scale) * (elements / max(1, scale.size)) ** 0.5
    has_cancelled = terms > 4.0 * size  # the terms of no operation are as large otherwise
    return max(size, terms) if elements <= few or has_cancelled else size


def _relative_error(out: Array, expected: Array, scale: float) -> float | None:
    with np.errstate(all="ignore"):  # a wrong output may overflow: its error is then unknown
        error = hypot(*(_norm(out[rows] - expected[rows]) for rows in row_blocks(expected))) / scale
    return error if np.isfinite(error) else None


def _norm(array: Array) -> float:
    """Return the norm, without the threads of BLAS: waking them takes longer than the sum of a block."""
    flat = np.ravel(array)
    return float(np.sqrt(np.einsum("i,i->", flat, flat)))
