"""Diagnoses of number formats: emulated dtypes, TF32 instead of fp32, and faster results in other dtypes."""

from collections.abc import Sequence
from dataclasses import replace

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.verdict import Estimate, compare, ratio_of
from gpuexplore.core import Device, Result, format_flop_per_s, format_percent, format_ratio, format_seconds
from gpuexplore.core.dtypes import DTYPES, DType, dtype_named

WORTH_A_SENTENCE = 1.2

CLOSE_TO_A_LIMIT = 0.75


def emulated(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report an emulated dtype, its cost, and the dtype to try instead."""
    flag = analyzed.flag("emulated")
    device = analyzed.device
    case = analyzed.case
    if flag is None or device is None:
        return None
    instead = _native_instead(analyzed, device)
    why = flag.evidence.rstrip(".") + (f"; try {instead.name}, which has native units here" if instead else "")
    units = f"{device.name} has units for {', '.join(device.native) or 'none of the supported dtypes'}"
    slower = slower_than_native(analyzed)
    if slower is None:
        costs = _faster_than_native(analyzed) or (", and converting limits it" if is_far_from_limits(analyzed) else "")
        return Diagnosis(
            "emulated", f"{analyzed.label} is emulated{costs}: {why}.", f"{_time(analyzed.result)}; {units}"
        )
    times, fast = slower
    sentence = (
        f"{case.implementation} takes {format_ratio(times.value)} as long in {case.dtype} as in {fast.case.dtype}"
    )
    figures = f"{_time(analyzed.result)} in {case.dtype}, {_time(fast)} in {fast.case.dtype}"
    return Diagnosis("emulated", f"{sentence}: {why}.", f"{figures}; {units}")


def is_far_from_limits(analyzed: AnalyzedResult) -> bool:
    """Return whether neither call overhead nor a nearby limit can explain its time."""
    known = [share for share in (analyzed.compute_fraction, analyzed.serving_fraction) if share]
    far = all(compare(share, CLOSE_TO_A_LIMIT).relation == "below" for share in known)
    return analyzed.bound != "overhead" and bool(known) and far


def slower_than_native(analyzed: AnalyzedResult) -> tuple[Estimate, Result] | None:
    """Return how many times longer an emulated result takes than the fastest native one of its kind, and that one.

    None when it surely takes not much longer, or nothing native was measured with it.
    """
    worst = _worst_against_native(analyzed)
    if worst is None or worst[0].value < WORTH_A_SENTENCE or compare(worst[0], 1.0).relation != "above":
        return None
    return worst


def _faster_than_native(analyzed: AnalyzedResult) -> str | None:
    """Return how it compares with the fastest native one of its kind where it is no slower; None where it may be."""
    worst = _worst_against_native(analyzed)
    if worst is None or compare(worst[0], WORTH_A_SENTENCE).relation != "below":
        return None
    if compare(worst[0], 1.0).relation == "below":
        return f", yet {format_ratio(1 / worst[0].value)} as fast as in {worst[1].case.dtype}"
    return f", yet about as fast as in {worst[1].case.dtype}"


def _worst_against_native(analyzed: AnalyzedResult) -> tuple[Estimate, Result] | None:
    """Return the largest of how many times longer an emulated result takes than native ones of its kind."""
    if not _is_emulated(analyzed.result):
        return None
    native = [pair for pair in _in_other_dtypes(analyzed) if not _is_emulated(pair[1])]
    return max(native, key=lambda pair: pair[0].value, default=None)


def tf32(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report the use of TF32 by a matmul on tensor cores that support it, and its effect on accuracy."""
    device = analyzed.device
    dtype = dtype_named(analyzed.result.case.dtype)
    if device is None or not analyzed.operation.is_matrix_product or analyzed.median_s is None:
        return None
    if dtype.matrix_only and dtype.cut_from_fp32:
        wide = dtype_named(dtype.accumulate)
        kept = f"inputs keep {dtype.significand_bits} of the {wide.significand_bits} significand bits of {wide.name}"
        accuracy = analyzed.result.accuracy
        error = accuracy.relative_error if accuracy else None
        measured = f"; the result is off by {error:.1e} of its norm" if error is not None else ""
        return Diagnosis(
            "tf32",
            f"{dtype.name} was on: {kept}, accumulation keeps all. Choose {wide.name} if that is too few.",
            f"rounding an input changes it by up to {format_percent(dtype.unit_roundoff)}{measured}",
        )
    rows = (row for row in DTYPES.values() if row.name in device.native)
    short = next(
        (row for row in rows if row.matrix_only and row.array_name == dtype.array_name and row is not dtype), None
    )
    if short is None or analyzed.bound in ("memory", "cache", "overhead"):
        return None
    own = analyzed.default_peak
    other = device.peak(short.name, "matrix")
    gain = "may be faster"
    evidence = f"{device.name} has {short.name} units"
    if own and other:
        gain = f"allows up to {format_ratio(other.flop_per_s / own.flop_per_s)} as much"
        evidence = (
            f"peaks: {format_flop_per_s(own.flop_per_s)} in {own.dtype}, "
            f"{format_flop_per_s(other.flop_per_s)} in {short.name}"
        )
    return Diagnosis(
        "tf32",
        f"{short.name} was off, as it always is in {dtype.name} here: where {short.significand_bits} significand bits "
        f"are enough, {short.name} {gain}.",
        evidence,
    )


def _native_instead(analyzed: AnalyzedResult, device: Device) -> DType | None:
    """Return the dtype nearest in size, not above that of sums, that is computed in its own units; None: there is none.

    One that was measured with it and is no faster is no advice.
    """
    dtype = dtype_named(analyzed.result.case.dtype)
    widest = dtype_named(dtype.accumulate).bits
    rows = (row for row in DTYPES.values() if row.name in device.native and not row.matrix_only)
    fitting = [row for row in rows if dtype.bits <= row.bits <= widest and not analyzed.operation.unsupported(row)]
    return min((row for row in fitting if _helps(analyzed, row)), key=lambda row: row.bits, default=None)


def _helps(analyzed: AnalyzedResult, dtype: DType) -> bool:
    case = analyzed.result.case
    this = analyzed.result.measurement
    other = next((sibling for sibling in analyzed.siblings if sibling.case == replace(case, dtype=dtype.name)), None)
    if this and other and other.measurement and this.median_s < WORTH_A_SENTENCE * other.measurement.median_s:
        return False
    return analyzed.implementation.computes_in(dtype.name, analyzed.device)[0] == dtype.name


def _is_emulated(result: Result) -> bool:
    return any(flag.name == "emulated" for flag in result.flags)


def _time(result: Result) -> str:
    return format_seconds(result.measurement.median_s if result.measurement else None)


# Comparison with the other results of a run: faster implementations of the same work, and faster dtypes.


def format_share(share: Estimate | None) -> str:
    """Return a value, or the interval it lies in where that is wide; of a fraction no more than the whole."""
    if share is None or share.low is None or share.high is None:
        return share.range if share else "an unknown share"
    surely_known = 1.1  # ends of an interval that are nearer to each other are shown as one figure
    if share.high <= surely_known * share.low:
        return share.words(share.value)
    most = max(1.0, share.value) if share.unit == "fraction" else share.high
    return replace(share, high=min(share.high, most)).range


def faster_in_group(analyzed: AnalyzedResult) -> tuple[str, Result] | None:
    """Return a result that is certainly much faster at the same work in the same rounds, and the factor in words."""
    group = [other for other in analyzed.siblings if other.case.group == analyzed.case.group]
    ratios = [(found, other) for other in group if (found := ratio_of(analyzed.result, other))]
    best = max(ratios, key=lambda pair: pair[0].value, default=None)
    if best is None or compare(best[0], 1.4).relation != "above":
        return None
    return format_ratio(best[0].value), best[1]


def _in_other_dtypes(analyzed: AnalyzedResult) -> Sequence[tuple[Estimate, Result]]:
    """Return the same work of its implementation in other dtypes, and how many times as long this one takes."""
    others = [other for other in analyzed.siblings if replace(analyzed.case, dtype=other.case.dtype) == other.case]
    return [
        (found, other)
        for other in others
        if other.case != analyzed.case and (found := ratio_of(analyzed.result, other))
    ]


def narrower_dtype(analyzed: AnalyzedResult) -> str | None:
    """Return the advice of a narrower dtype; None where this run or this device contradicts it.

    One that was measured with it counts by its time. Of the others one that the device and the implementation compute
    in units of their own.
    """
    own = dtype_named(analyzed.case.dtype)
    measured = {
        other.case.dtype: found
        for found, other in _in_other_dtypes(analyzed)
        if _is_narrower(dtype_named(other.case.dtype), own)
    }
    faster = {name: found for name, found in measured.items() if compare(found, WORTH_A_SENTENCE).relation == "above"}
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
