"""The JSON object that `gpuexplore run --json` prints: strict JSON, unknown is null, SI base units."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from gpuexplore.analysis.diagnosis import diagnose
from gpuexplore.analysis.run.derived import Figures, figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against, knowing
from gpuexplore.model import (
    SCHEMA_VERSION,
    Accuracy,
    Case,
    Contrast,
    Environment,
    Experiment,
    Measurement,
    Result,
    Shape,
)
from gpuexplore.serialization import encode

_OF_ONE_CASE = ("device", "before", "after")
_MERGED = ("libraries", "settings")


def run_report(
    experiment: Experiment,
    results: Sequence[Result],
    environment: Environment | None = None,
    *,
    baseline: str | None = None,
    against: Against = USUAL,
) -> dict[str, Any]:
    """Return the report of a run.

    Args:
        environment: of the host, where the results carry none.
        baseline: an implementation or a dtype; None is the operation's first implementation here.
        against: what the results are held against.
    """
    against = knowing(against, results)
    derived = figures(results, baseline=baseline, against=against)
    report = {
        "schema_version": SCHEMA_VERSION,
        "experiment": encode(experiment) | {"shapes": [_shape(shape) for shape in experiment.shapes]},
        "environment": _environment([result.environment for result in results], environment),
        "results": [
            _result(result, its) | {"diagnosis": encode(diagnose(result, results, against))}
            for result, its in zip(results, derived, strict=True)
        ],
    }
    return strict(report)  # type: ignore[no-any-return]


def strict(value: Any) -> Any:
    """Return `value` with infinities and NaN, which JSON does not know, as None."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: strict(one) for key, one in value.items()}
    return [strict(one) for one in value] if isinstance(value, list) else value


def _environment(found: Sequence[Environment | None], given: Environment | None) -> dict[str, Any] | None:
    """Return what all environments share, null where they differ, and the devices one by one."""
    known = [encode(one) for one in (*found, given) if one is not None]
    if not known:
        return None
    shared = {key: _shared(key, [one[key] for one in known]) for key in known[0] if key not in _OF_ONE_CASE}
    devices = {one["device"]["id"]: one["device"] for one in known}
    return shared | {"started_utc": min(one["started_utc"] for one in known), "devices": list(devices.values())}


def _shared(key: str, values: Sequence[Any]) -> Any:
    if key in _MERGED:
        return {name: one for value in reversed(values) for name, one in value.items()}
    return values[0] if all(value == values[0] for value in values) else None


def _result(result: Result, derived: Figures) -> dict[str, Any]:
    environment = result.environment
    return {
        "case": _case(result.case),
        "status": result.status.value,
        "reason": result.reason,
        "flags": encode(result.flags),
        "measurement": _measurement(result.measurement),
        "accuracy": _accuracy(result.accuracy),
        "flop_count": derived.flop_count,
        "byte_count": derived.byte_count,
        "flop_per_s": derived.flop_per_s,
        "bytes_per_s": derived.bytes_per_s,
        "peak": _peak(derived),
        "mfu": derived.mfu,
        "bandwidth_utilization": derived.bandwidth_utilization,
        "speedup": encode(derived.speedup),
        "telemetry": environment and {"before": encode(environment.before), "after": encode(environment.after)},
    }


def _case(case: Case) -> dict[str, Any]:
    encoded: dict[str, Any] = encode(case)
    return encoded | {"shape": _shape(case.shape)}


def _shape(shape: Shape) -> Mapping[str, int]:
    return dict(shape.axes)


def _measurement(measurement: Measurement | None) -> dict[str, Any] | None:
    if measurement is None:
        return None
    names = ("median_s", "p20_s", "p80_s", "iqr_s", "ci95_s", "min_s", "first_call_s", "samples_s", "batch")
    contrasts = [_contrast(other) for other in measurement.contrasts]
    return {name: encode(getattr(measurement, name)) for name in names} | {
        "n": len(measurement.samples_s),
        "contrasts": contrasts,
    }


def _contrast(contrast: Contrast) -> dict[str, Any]:
    names = ("condition", "median_s", "ci95_s", "samples_s", "reason")
    return {name: encode(getattr(contrast, name)) for name in names} | {"n": len(contrast.samples_s)}


def _accuracy(one: Accuracy | None) -> dict[str, Any] | None:
    return None if one is None else encode(one) | {"within": one.within}


def _peak(derived: Figures) -> dict[str, Any]:
    """Return both peaks; `kind`, `source`, `unknown` and `above` are those of the compute peak."""
    peak, bandwidth = derived.peak, derived.bandwidth
    return {
        "flop_per_s": peak and peak.flop_per_s,
        "bytes_per_s": bandwidth and bandwidth.bytes_per_s,
        "kind": peak and peak.kind,
        "source": peak and peak.source,
        "dtype": peak and peak.dtype,
        "unit": peak and peak.unit,
        "bandwidth_kind": bandwidth and bandwidth.kind,
        "bandwidth_source": bandwidth and bandwidth.source,
        "unknown": derived.peak_unknown,
        "above": derived.above_peak,
        "bandwidth_unknown": derived.bandwidth_unknown,
        "bandwidth_above": derived.above_bandwidth,
    }
