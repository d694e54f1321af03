"""The correctness of each element of an output: a norm hides a few wrong ones among millions.

An element that is rounded once is off by u of its own size at most. What is rounded on the way to it, partial sums
above all, is of the size of its terms, which cancel: errors are then relative to √Σt² (`Operation.scale`), and k of
them add up as independent ones do, by √k (N. J. Higham, T. Mary, "A New Approach to Probabilistic Rounding Error
Analysis", 2019, https://doi.org/10.1137/18M1226312). With c = 4, as for the norm, an element x may be off by

    2 u(dtype) |x| + c (u(accumulate) √k + 2 u(dtype) √(roundings - 1)) (|x| + √Σt²),

roundings to the dtype on the way counted twice, for what follows amplifies those of some elements.

Where only parts of an output are compared one by one, sums along an axis in which it is linear check the others
(R. Freivalds, "Probabilistic machines can use less running time", 1977): with signs that the implementation cannot
know, Σ±x is expected from Σ± of the last input, for a fraction of the FLOPs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import Accuracy, Shape, WorstElement
from gpuexplore.measure.arrays.large import TOGETHER, Sums
from gpuexplore.measure.check.correctness import Output, check, rounded_error, row_blocks, summed_error, tolerance
from gpuexplore.measure.check.inputs import AnyReference, BlockedReference, DeviceReference, Index, Reference
from gpuexplore.operations import AS_SUMMED, Array, Growth, Operation

Compared = tuple[Array, Array, Array]  # found, expected and allowed difference


@dataclass(frozen=True, slots=True)
class _Bound:
    """The largest error of an element that rounding explains: shares of its own size and of its terms', and a least."""

    own: float
    terms: float
    least: float

    def allowed(self, size: Array, scale: Array | None) -> Array:
        """Return the largest errors of elements of these sizes; overwrites `size`."""
        size *= self.own
        if scale is not None:
            size += self.terms * scale
        size += self.least  # by itself: the scale is in float32, which holds nothing as small
        return size


def bound_of(operation: Operation, shape: Shape, dtype: DType, growth: Growth = AS_SUMMED) -> _Bound:
    """Return the largest error of an element that rounding explains for this case."""
    inner = 4 * rounded_error(dtype) * sqrt(operation.roundings(shape) - 1)
    terms = inner + growth.element * summed_error(dtype) * sqrt(operation.reduction_length(shape))
    return _Bound(rounded_error(dtype) + terms, terms, 2 * dtype.underflow)


def judge(out: Output, reference: AnyReference, shape: Shape, growth: Growth = AS_SUMMED) -> Accuracy:
    """Return the accuracy of an output by its norm and by its worst element, or those of its blocks.

    Args:
        out: the output.
        reference: what is expected of it.
        shape: of the case.
        growth: of roundings in the implementation that computed it.
    """
    if not isinstance(reference, BlockedReference):
        return _judged(out, reference, shape, growth)
    of_blocks = []
    for block, of_block, in_output, prove in reference.blocks(out):
        of_blocks.append(_judged(block, of_block, shape, growth, in_output=in_output))
        if not of_blocks[-1].within:
            prove()
            return of_blocks[-1]
    worst = max((found.worst for found in of_blocks if found.worst), key=lambda worst: worst.share, default=None)
    return replace(max(of_blocks, key=lambda found: found.share), worst=worst)


def _judged(
    out: Output,
    reference: Reference | DeviceReference,
    shape: Shape,
    growth: Growth,
    *,
    in_output: Callable[[Sequence[Any]], Index] = tuple,
) -> Accuracy:
    """Return the accuracy of an output, or of a block of it: `in_output` converts indices of its elements."""
    allowed = tolerance(reference.operation, shape, reference.dtype, growth)
    leeways = [
        leeway + _underflow(expected, reference.dtype)
        for (_, expected), leeway in zip(reference.parts, reference.leeways, strict=True)
    ]
    accuracy = check(out, reference.parts, allowed, leeways, scales=reference.scales)
    if accuracy.relative_error is None:
        return accuracy
    bound = bound_of(reference.operation, shape, reference.dtype, growth)
    found = [
        _worst(out, part, scale, replace(bound, least=bound.least + leeway), in_output=in_output)
        for part, scale, leeway in zip(reference.parts, reference.scales, reference.leeways, strict=True)
        if part[1].size
    ]
    if reference.sums:
        found.append(_worst_sum(out, reference.sums, bound, in_output))
    return replace(accuracy, worst=max(found, key=lambda worst: worst.share))


def widest_tolerance(reference: Reference, shape: Shape) -> float:
    """Return the largest relative error that any part of an output may have for these inputs, kinks included."""
    norms = [float(np.linalg.norm(expected)) for _, expected in reference.parts]
    besides = (
        (leeway + _underflow(expected, reference.dtype)) / (norm or hypot(*norms) or 1.0)
        for (_, expected), leeway, norm in zip(reference.parts, reference.leeways, norms, strict=True)
    )
    return tolerance(reference.operation, shape, reference.dtype) + max(besides, default=0.0)


def _underflow(expected: Array, dtype: DType) -> float:
    """Return the norm of the errors that numbers below the normal ones may have, where most are: else 0."""
    most = dtype.smallest_normal
    root = sqrt(expected.size)
    return dtype.underflow * root if float(np.linalg.norm(expected)) < most * root else 0.0


def _worst(
    out: Output, part: tuple[Any, Array], scale: Any, bound: _Bound, *, in_output: Callable[[Sequence[Any]], Index]
) -> WorstElement:
    """Return the worst element of a part of the output, whose expected values are given."""
    index, expected = part
    found = out[index]
    scales = np.broadcast_to(scale, expected.shape) if np.any(scale) else None

    def compare(rows: Any) -> Compared:
        wanted = expected[rows]
        return found[rows], wanted, bound.allowed(np.abs(wanted), None if scales is None else scales[rows])

    position, *figures = _largest(expected, compare)
    return WorstElement(f"element {_named(in_output(_in_output(index, position)))}", *figures)


def _worst_sum(out: Output, sums: Sums, bound: _Bound, in_output: Callable[[Sequence[Any]], Index]) -> WorstElement:
    """Return the worst sum of neighbours with random signs."""
    of_sums = 2.0  # times the root of the sum of squared bounds, which honest errors fill to a fifth: ten sigma
    tiny = float(np.finfo(np.float64).tiny)
    least = replace(bound, least=bound.least * sqrt(TOGETHER))
    found, squares = (None, None) if isinstance(out, np.ndarray) else out.folded(sums)

    def compare(rows: Any) -> Compared:
        with np.errstate(over="ignore"):  # a wrong output may overflow, which explains no error
            sizes = np.sqrt(sums.of_squares(out[rows]) if squares is None else squares[rows])
            allowed = of_sums * least.allowed(sizes, sums.scale[rows])
            of = sums.of(out[rows]) if found is None else found[rows]
            return np.nan_to_num(of), sums.expected[rows], np.where(allowed < np.inf, allowed, tiny)

    index, *figures = _largest(out if isinstance(out, np.ndarray) else sums.expected, compare)
    ranges: list[Any] = list(index)
    ranges[sums.axis] = f"{sums.starts[index[sums.axis]]} to {sums.ends[index[sums.axis]] - 1}"
    return WorstElement(f"the sum of elements {_named(in_output(ranges))} with random signs", *figures)


def _largest(whole: Array, compare: Callable[[Any], Compared]) -> tuple[tuple[int, ...], float, float, float]:
    """Return the index of the largest difference over its bound, and the three values there."""
    found = [(rows, _largest_of(*compare(rows))) for rows in row_blocks(whole)]
    rows, (_, index, value, expected, allowed) = max(found, key=lambda block: block[1][0])
    return index if rows is ... else (rows.start + index[0], *index[1:]), value, expected, allowed


def _largest_of(found: Array, expected: Array, allowed: Array) -> tuple[float, tuple[int, ...], float, float, float]:
    """Return a block's largest difference over its bound, its index, and the three values there."""
    with np.errstate(over="ignore"):  # of a number that is off by so much
        shares = np.abs(found - expected)
        shares /= allowed
    index = tuple(map(int, np.unravel_index(shares.argmax(), shares.shape)))
    return float(shares[index]), index, float(found[index]), float(expected[index]), float(allowed[index])


def _in_output(index: Any, position: Sequence[int]) -> tuple[int, ...]:
    """Return the index in an output of the element at `position` of the part that `index` took from it."""
    if index is ...:
        return tuple(position)
    axes = index if isinstance(index, tuple) else (index,)
    rest = iter(position)
    indexed = tuple(axis if isinstance(axis, int) else _along(axis, next(rest)) for axis in axes)
    return (*indexed, *rest)


def _along(axis: slice | Array, position: int) -> int:
    return (axis.start or 0) + position if isinstance(axis, slice) else int(np.ravel(axis)[position])


def _named(index: Iterable[Any]) -> str:
    return f"[{', '.join(map(str, index))}]"
