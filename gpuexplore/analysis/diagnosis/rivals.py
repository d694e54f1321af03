"""What the other results of a run say about one: who is faster with the same work, and which dtype is."""

from collections.abc import Sequence
from dataclasses import replace

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.verdict import Estimate, compare, ratio_of
from gpuexplore.dtypes import DTYPES, DType, dtype_named
from gpuexplore.model import Result
from gpuexplore.units import format_ratio

MUCH_FASTER = 1.4
WORTH_A_SENTENCE = 1.2
SURELY_KNOWN = 1.1  # ends of an interval that are nearer to each other are told as one figure


def share_said(share: Estimate | None) -> str:
    """Return a value, or the interval it lies in where that is wide; of a fraction no more than the whole."""
    if share is None or share.low is None or share.high is None:
        return share.range if share else "an unknown share"
    if share.high <= SURELY_KNOWN * share.low:
        return share.words(share.value)
    most = max(1.0, share.value) if share.unit == "fraction" else share.high
    return replace(share, high=min(share.high, most)).range


def faster_in_group(analyzed: AnalyzedResult) -> tuple[str, Result] | None:
    """Return who is surely much faster with the same work in the same rounds, and how many times, in words."""
    group = [other for other in analyzed.siblings if other.case.group == analyzed.case.group]
    ratios = [(found, other) for other in group if (found := ratio_of(analyzed.result, other))]
    best = max(ratios, key=lambda pair: pair[0].value, default=None)
    if best is None or compare(best[0], MUCH_FASTER).told != "above":
        return None
    return format_ratio(best[0].value), best[1]


def in_other_dtypes(analyzed: AnalyzedResult) -> Sequence[tuple[Estimate, Result]]:
    """Return the same work of its implementation in other dtypes, and how many times as long this one takes."""
    others = [other for other in analyzed.siblings if replace(analyzed.case, dtype=other.case.dtype) == other.case]
    return [
        (found, other)
        for other in others
        if other.case != analyzed.case and (found := ratio_of(analyzed.result, other))
    ]


def narrower_dtype(analyzed: AnalyzedResult) -> str | None:
    """Return the advice of a narrower dtype; None where this run or this device contradicts it.

    One that was measured beside it counts by its time. Of the others one that the device and the implementation compute
    in units of their own.
    """
    own = dtype_named(analyzed.case.dtype)
    measured = {
        other.case.dtype: found
        for found, other in in_other_dtypes(analyzed)
        if _is_narrower(dtype_named(other.case.dtype), own)
    }
    faster = {name: found for name, found in measured.items() if compare(found, WORTH_A_SENTENCE).told == "above"}
    if faster:
        name = max(faster, key=lambda name: faster[name].value)
        return f"{name} is {format_ratio(faster[name].value)} as fast here"
    rows = (row for row in DTYPES.values() if row.name not in measured and _is_narrower(row, own))
    fitting = next((row.name for row in rows if _is_native(analyzed, row)), None)
    return f"a narrower dtype, {fitting}, would help" if fitting else None


def _is_narrower(row: DType, own: DType) -> bool:
    return row.itemsize_bytes < own.itemsize_bytes and not row.matrix_only


def _is_native(analyzed: AnalyzedResult, dtype: DType) -> bool:
    device = analyzed.device
    if device is None or dtype.name not in device.native or analyzed.operation.unsupported(dtype):
        return False
    return analyzed.implementation.computes_in(dtype.name, device)[0] == dtype.name
