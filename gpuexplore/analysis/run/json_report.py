"""A run as JSON, which `gpuexplore run --json` prints, and as flat rows for CSV, Parquet and data frames.

JSON is strict, unknown is null; both are in SI base units, which names of columns end with.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, get_args

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core import (
    SCHEMA_VERSION,
    Condition,
    Environment,
    Experiment,
    Measurement,
    Phase,
    PhaseName,
    Run,
    encode,
)


def run_report(experiment: Experiment, analysis: RunAnalysis, run: Run | None = None) -> dict[str, Any]:
    """Return the report of the results of `experiment`; recorded ones are not in it.

    Args:
        experiment: what was asked for.
        analysis: of the results.
        run: the run of the store that they are of; None for none.
    """
    report = {
        "schema_version": SCHEMA_VERSION,
        "run": _fields(run, "id", "title", "note", "tags", "created_utc", "origin") if run else None,
        "experiment": encode(experiment) | {"shapes": [dict(shape.axes) for shape in experiment.shapes]},
        "environment": _environment([analyzed.result.environment for analyzed in analysis.results]),
        "comparison": encode(analysis.comparison),
        "machines": [
            {"device": note.device, "sentence": note.sentence, "details": [*note.details]} for note in analysis.machines
        ],
        "summary": encode(analysis.summary),
        "results": [_result(analyzed) for analyzed in analysis.results],
    }
    return strict(report)


def strict(value: Any) -> Any:
    """Return `value` with infinities and NaN, which JSON does not know, as None."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: strict(member) for key, member in value.items()}
    return [strict(member) for member in value] if isinstance(value, list) else value


def _environment(found: Sequence[Environment | None]) -> dict[str, Any] | None:
    """Return what all environments share, null where they differ, and the devices one by one."""
    known = [encode(environment) for environment in found if environment is not None]
    if not known:
        return None
    shared = {
        key: _shared(key, [environment[key] for environment in known])
        for key in known[0]
        if key not in ("device", "before", "after")
    }
    devices = {environment["device"]["id"]: environment["device"] for environment in known}
    return shared | {
        "started_utc": min(environment["started_utc"] for environment in known),
        "devices": list(devices.values()),
    }


def _shared(key: str, values: Sequence[Any]) -> Any:
    if key in ("libraries", "settings"):
        return {name: member for value in reversed(values) for name, member in value.items()}
    return values[0] if all(value == values[0] for value in values) else None


def _fields(value: object, *names: str) -> dict[str, Any]:
    return {name: encode(getattr(value, name)) for name in names}


def _result(analyzed: AnalyzedResult) -> dict[str, Any]:
    result = analyzed.result
    environment = analyzed.result.environment
    peak = analyzed.peak.peak
    bandwidth = analyzed.bandwidth.peak
    return {
        "case": encode(result.case) | {"shape": dict(result.case.shape.axes)},
        "status": result.status.value,
        "reason": result.reason,
        "flags": encode(result.flags),
        "measurement": _measurement(result.measurement, analyzed),
        "accuracy": encode(result.accuracy) | {"within": result.accuracy.within} if result.accuracy else None,
        "seed": result.seed,
        "flop_count": analyzed.flop_count if analyzed.byte_count else None,  # a benchmark of others has neither
        "byte_count": analyzed.byte_count or None,
        "flop_per_s": analyzed.flop_per_s,
        "bytes_per_s": analyzed.bytes_per_s,
        "peak": {
            "flop_per_s": peak and peak.flop_per_s,
            "bytes_per_s": bandwidth and bandwidth.bytes_per_s,
            "kind": peak and peak.kind,
            "source": peak and peak.source,
            "dtype": peak and peak.dtype,
            "unit": peak and peak.unit,
            "bandwidth_kind": bandwidth and bandwidth.kind,
            "bandwidth_source": bandwidth and bandwidth.source,
            "unknown": analyzed.peak.reason,
            "above": analyzed.above_peak,
            "bandwidth_unknown": analyzed.bandwidth.reason,
            "bandwidth_above": analyzed.above_bandwidth,
        },
        "mfu": analyzed.mfu,
        "bandwidth_utilization": analyzed.bandwidth_utilization,
        "energy_j": analyzed.energy_j,
        "bound": analyzed.bound,
        "speedup": _fields(analyzed.speedup, "baseline", "ratio", "ci95", "paired", "covers_processes", "by_round")
        if analyzed.speedup
        else None,
        "diagnosis": encode(analyzed.diagnoses),
        "telemetry": environment and {"before": encode(environment.before), "after": encode(environment.after)},
    }


def _measurement(measurement: Measurement | None, analyzed: AnalyzedResult) -> dict[str, Any] | None:
    if measurement is None:
        return None
    times = ("median_s", "p20_s", "p80_s", "iqr_s", "min_s", "first_call_s", "samples_s")
    return {
        **_fields(measurement, *times, "batch", "per_round", "processes"),
        "ci95_s": encode(analyzed.ci95_s),
        "covers_processes": measurement.covers_processes,
        "process_medians_s": list(measurement.process_medians_s),
        "between_processes": measurement.between_processes,
        "between_ratios": measurement.between_ratios,
        "n": len(measurement.samples_s),
        "contrasts": [
            _fields(other, "condition", "median_s", "ci95_s", "samples_s", "reason") | {"n": len(other.samples_s)}
            for other in measurement.contrasts
        ],
        "phases": [_phase(phase, analyzed) for phase in measurement.phases],
    }


def _phase(phase: Phase, analyzed: AnalyzedResult) -> dict[str, Any]:
    counted = analyzed.operation.phases.get(phase.name)  # of a newer version, which has more: unknown
    flop_count = counted(analyzed.case.shape) if counted else None
    return {
        **_fields(phase, "name", "median_s", "ci95_s", "samples_s", "reason"),
        "n": len(phase.samples_s),
        "flop_count": flop_count,
        "flop_per_s": flop_count / phase.median_s if flop_count and phase.median_s else None,
    }


FlatRow = dict[str, Any]


# Results as flat rows, one per case, for CSV, Parquet and data frames: plain columns, units in their names.


def rows(analysis: RunAnalysis, run: Run | None = None) -> list[FlatRow]:
    """Return one flat row per result of the run, in order, all with the same columns; unknown is None.

    Args:
        analysis: of the results.
        run: the run of the store that they are of, whose id and title stand in each row; None for none.
    """
    about = {"run_id": run.id, "title": run.title} if run else {"run_id": None, "title": None}
    axes = tuple(dict.fromkeys(name for analyzed in analysis.results for name, _ in analyzed.case.shape.axes))
    return [
        _case_columns(analyzed, axes) | _time_columns(analyzed) | _derived(analyzed) | about
        for analyzed in analysis.results
    ]


def _case_columns(analyzed: AnalyzedResult, axes: Sequence[str]) -> FlatRow:
    case = analyzed.case
    result = analyzed.result
    accuracy = result.accuracy
    environment = result.environment
    lengths = dict(case.shape.axes)
    return {
        "operation": case.operation,
        **{axis: lengths.get(axis) for axis in axes},
        "size": shape_label(case.shape),
        "dtype": case.dtype,
        "implementation": case.implementation,
        "device": case.device,
        "device_name": environment and environment.device.title,
        "cache": case.options.cache,
        "data": case.options.data,
        "layout": case.options.layout,
        "align": case.options.align,
        "threads": case.options.threads or (environment and environment.threads),
        "status": result.status.value,
        "reason": result.reason,
        "flags": " ".join(flag.name for flag in result.flags),
        "relative_error": accuracy and accuracy.relative_error,
        "tolerance": accuracy and accuracy.tolerance,
        "started_utc": environment and environment.started_utc,
        "app_version": environment and environment.app_version,
    }


def _time_columns(analyzed: AnalyzedResult) -> FlatRow:
    measurement = analyzed.measurement
    low, high = analyzed.ci95_s or (None, None)
    contrasts = {other.condition: other.median_s for other in measurement.contrasts} if measurement else {}
    phases = {phase.name: phase.median_s for phase in measurement.phases} if measurement else {}
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
        **{f"contrast_{name}_s": contrasts.get(name) for name in get_args(Condition)},
        **{f"phase_{name}_s": phases.get(name) for name in get_args(PhaseName)},
    }


def _derived(analyzed: AnalyzedResult) -> FlatRow:
    peak = analyzed.peak.peak
    bandwidth = analyzed.bandwidth.peak
    speedup = analyzed.speedup
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
