"""Results as flat rows, one per case, for CSV, Parquet and data frames: plain columns, units in their names."""

from collections.abc import Sequence
from typing import Any, get_args

from gpuexplore.analysis.run.derived import Figures, figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.analysis.utilization.utilization import device_of
from gpuexplore.model import Condition, Measurement, Result

Row = dict[str, Any]


def rows(results: Sequence[Result], *, baseline: str | None = None, against: Against = USUAL) -> list[Row]:
    """Return one flat row per result, in order, all with the same columns; unknown is None.

    Args:
        baseline: an implementation or a dtype; None is the operation's first implementation here.
        against: what the results are held against.
    """
    derived = figures(results, baseline=baseline, against=against)
    axes = tuple(dict.fromkeys(name for result in results for name, _ in result.case.shape.axes))
    return [
        _case(result, axes) | _outcome(result) | _measurement(result.measurement) | _derived(its)
        for result, its in zip(results, derived, strict=True)
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


def _measurement(measurement: Measurement | None) -> Row:
    low, high = (measurement and measurement.ci95_s) or (None, None)
    return {
        "median_s": measurement and measurement.median_s,
        "p20_s": measurement and measurement.p20_s,
        "p80_s": measurement and measurement.p80_s,
        "iqr_s": measurement and measurement.iqr_s,
        "ci95_low_s": low,
        "ci95_high_s": high,
        "min_s": measurement and measurement.min_s,
        "sample_count": len(measurement.samples_s) if measurement else None,
        "first_call_s": measurement and measurement.first_call_s,
    } | {f"contrast_{name}_s": _contrast_s(measurement, name) for name in get_args(Condition)}


def _contrast_s(measurement: Measurement | None, condition: Condition) -> float | None:
    return (
        next((other.median_s for other in measurement.contrasts if other.condition == condition), None)
        if measurement
        else None
    )


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
