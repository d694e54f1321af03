"""Results as flat rows, one per case, for CSV, Parquet and data frames: plain columns, units in their names."""

from collections.abc import Sequence
from typing import Any, get_args

from gpuexplore.analysis.denominators import USUAL, Against
from gpuexplore.analysis.figures import Figures, figures
from gpuexplore.analysis.mfu import device_of
from gpuexplore.analysis.rates import shape_label
from gpuexplore.model import Condition, Measurement, Result

Row = dict[str, Any]


def rows(results: Sequence[Result], *, baseline: str | None = None, against: Against = USUAL) -> list[Row]:
    """Return one flat row per result, in order, all with the same columns; unknown is None.

    Args:
        baseline: an implementation or a dtype; None is the operation's first implementation here.
        against: what the results are held against.
    """
    derived = figures(results, baseline=baseline, against=against)
    axes = tuple(dict.fromkeys(name for one in results for name, _ in one.case.shape.axes))
    return [
        _case(one, axes) | _outcome(one) | _measurement(one.measurement) | _derived(its)
        for one, its in zip(results, derived, strict=True)
    ]


def _case(result: Result, axes: Sequence[str]) -> Row:
    case, device, lengths = result.case, device_of(result), dict(result.case.shape.axes)
    return {
        "operation": case.operation,
        **{axis: lengths.get(axis) for axis in axes},
        "size": shape_label(case.shape),
        "dtype": case.dtype,
        "implementation": case.implementation,
        "device": case.device,
        "device_name": device and device.name,
        "cache": case.options.cache,
        "data": case.options.data,
        "threads": case.options.threads or (result.environment and result.environment.threads),
    }


def _outcome(result: Result) -> Row:
    accuracy, environment = result.accuracy, result.environment
    return {
        "status": result.status.value,
        "reason": result.reason,
        "flags": " ".join(flag.name for flag in result.flags),
        "relative_error": accuracy and accuracy.relative_error,
        "tolerance": accuracy and accuracy.tolerance,
        "started_utc": environment and environment.started_utc,
    }


def _measurement(one: Measurement | None) -> Row:
    low, high = (one and one.ci95_s) or (None, None)
    return {
        "median_s": one and one.median_s,
        "p20_s": one and one.p20_s,
        "p80_s": one and one.p80_s,
        "iqr_s": one and one.iqr_s,
        "ci95_low_s": low,
        "ci95_high_s": high,
        "min_s": one and one.min_s,
        "sample_count": len(one.samples_s) if one else None,
        "first_call_s": one and one.first_call_s,
    } | {f"contrast_{name}_s": _contrast_s(one, name) for name in get_args(Condition)}


def _contrast_s(one: Measurement | None, condition: Condition) -> float | None:
    return next((other.median_s for other in one.contrasts if other.condition == condition), None) if one else None


def _derived(one: Figures) -> Row:
    speedup = one.speedup
    low, high = (speedup and speedup.ci95) or (None, None)
    return {
        "flop_count": one.flop_count,
        "byte_count": one.byte_count,
        "flop_per_s": one.flop_per_s,
        "bytes_per_s": one.bytes_per_s,
        "peak_flop_per_s": one.peak and one.peak.flop_per_s,
        "peak_kind": one.peak and one.peak.kind,
        "peak_source": one.peak and one.peak.source,
        "peak_unknown": one.peak_unknown,
        "mfu": one.mfu,
        "above_peak": one.above_peak,
        "peak_bytes_per_s": one.bandwidth and one.bandwidth.bytes_per_s,
        "bandwidth_kind": one.bandwidth and one.bandwidth.kind,
        "bandwidth_source": one.bandwidth and one.bandwidth.source,
        "bandwidth_unknown": one.bandwidth_unknown,
        "bandwidth_utilization": one.bandwidth_utilization,
        "above_bandwidth": one.above_bandwidth,
        "baseline": speedup and speedup.baseline,
        "speedup": speedup and speedup.ratio,
        "speedup_low": low,
        "speedup_high": high,
    }
