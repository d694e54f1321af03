"""Results as flat rows, one per case, for CSV, Parquet and data frames: plain columns, units in their names."""

from collections.abc import Sequence
from typing import Any, get_args

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.model import Measurement, Result, Run
from gpuexplore.timed import Condition, PhaseName

FlatRow = dict[str, Any]


def rows(analysis: RunAnalysis, run: Run | None = None) -> list[FlatRow]:
    """Return one flat row per result of the run, in order, all with the same columns; unknown is None.

    Args:
        analysis: of the results.
        run: the run of the store that they are of, whose id and title stand in each row; None for none.
    """
    about = {"run_id": run.id, "title": run.title} if run else {"run_id": None, "title": None}
    axes = tuple(dict.fromkeys(name for analyzed in analysis.results for name, _ in analyzed.case.shape.axes))
    return [
        _case(analyzed, axes) | _outcome(analyzed.result) | _measurement(analyzed) | _derived(analyzed) | about
        for analyzed in analysis.results
    ]


def _case(analyzed: AnalyzedResult, axes: Sequence[str]) -> FlatRow:
    case, device, environment = analyzed.case, analyzed.device, analyzed.result.environment
    lengths = dict(case.shape.axes)
    return {
        "operation": case.operation,
        **{axis: lengths.get(axis) for axis in axes},
        "size": shape_label(case.shape),
        "dtype": case.dtype,
        "implementation": case.implementation,
        "device": case.device,
        "device_name": device and device.title,
        "cache": case.options.cache,
        "data": case.options.data,
        "layout": case.options.layout,
        "align": case.options.align,
        "threads": case.options.threads or (environment and environment.threads),
    }


def _outcome(result: Result) -> FlatRow:
    accuracy, environment = result.accuracy, result.environment
    return {
        "status": result.status.value,
        "reason": result.reason,
        "flags": " ".join(flag.name for flag in result.flags),
        "relative_error": accuracy and accuracy.relative_error,
        "tolerance": accuracy and accuracy.tolerance,
        "started_utc": environment and environment.started_utc,
        "app_version": environment and environment.app_version,
    }


def _measurement(analyzed: AnalyzedResult) -> FlatRow:
    measurement, (low, high) = analyzed.measurement, analyzed.ci95_s or (None, None)
    return {
        "median_s": measurement and measurement.median_s,
        "p20_s": measurement and measurement.p20_s,
        "p80_s": measurement and measurement.p80_s,
        "iqr_s": measurement and measurement.iqr_s,
        "ci95_low_s": low,
        "ci95_high_s": high,
        "ci95_covers_processes": measurement and measurement.covers_processes,
        "between_processes": measurement and measurement.between_processes,
        "between_ratios": measurement and measurement.between_ratios,
        "process_count": measurement and len(measurement.process_medians_s),
        "min_s": measurement and measurement.min_s,
        "sample_count": len(measurement.samples_s) if measurement else None,
        "first_call_s": measurement and measurement.first_call_s,
        **{f"contrast_{name}_s": _contrast_s(measurement, name) for name in get_args(Condition)},
        **{f"phase_{name}_s": _phase_s(measurement, name) for name in get_args(PhaseName)},
    }


def _contrast_s(measurement: Measurement | None, condition: Condition) -> float | None:
    return (
        next((other.median_s for other in measurement.contrasts if other.condition == condition), None)
        if measurement
        else None
    )


def _phase_s(measurement: Measurement | None, name: PhaseName) -> float | None:
    phases = measurement.phases if measurement else ()
    return next((phase.median_s for phase in phases if phase.name == name), None)


def _derived(analyzed: AnalyzedResult) -> FlatRow:
    peak, bandwidth, speedup = analyzed.peak.peak, analyzed.bandwidth.peak, analyzed.speedup
    low, high = (speedup and speedup.ci95) or (None, None)
    return {
        "flop_count": analyzed.flop_count if analyzed.byte_count else None,
        "byte_count": analyzed.byte_count or None,
        "flop_per_s": analyzed.flop_per_s,
        "bytes_per_s": analyzed.bytes_per_s,
        "peak_flop_per_s": peak and peak.flop_per_s,
        "peak_kind": peak and peak.kind,
        "peak_source": peak and peak.source,
        "peak_unknown": analyzed.peak.reason,
        "mfu": analyzed.mfu,
        "above_peak": analyzed.above_peak,
        "peak_bytes_per_s": bandwidth and bandwidth.bytes_per_s,
        "bandwidth_kind": bandwidth and bandwidth.kind,
        "bandwidth_source": bandwidth and bandwidth.source,
        "bandwidth_unknown": analyzed.bandwidth.reason,
        "bandwidth_utilization": analyzed.bandwidth_utilization,
        "above_bandwidth": analyzed.above_bandwidth,
        "energy_j": analyzed.energy_j,
        "bound": analyzed.bound,
        "diagnosis": " ".join(diagnosis.kind for diagnosis in analyzed.diagnoses),
        "baseline": speedup and speedup.baseline,
        "speedup": speedup and speedup.ratio,
        "speedup_low": low,
        "speedup_high": high,
    }
