"""The points that charts draw: a row per measured case, with the words that tooltips and axes show."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from gpuexplore.analysis.run.derived import CONDITIONS, Figures, figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.analysis.utilization.rates import shape_label, shapes_by_work, size_of
from gpuexplore.analysis.utilization.utilization import BANDWIDTH_KINDS, PEAK_KINDS, cache_resident_reason
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.series import series_name
from gpuexplore.model import Condition, Contrast, Measurement, Result
from gpuexplore.units import (
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_ratio,
    format_seconds,
)

Span = tuple[float, float | None, float | None]
Quantity = Callable[[Measurement, Figures], Span | None]
TOOLTIPS = {
    "case": "Case",
    "shape": "Shape",
    "time": "Median time",
    "interval": "95 % interval",
    "samples": "Samples",
    "rate": "Compute rate",
    "traffic": "Memory rate",
    "share": "MFU",
    "memory": "Memory use",
    "faster": "Speedup",
    "also": "Also",
    "flags": "Flags",
}
COLUMNS = ("series", "condition", "implementation", "dtype", "size", "order", "value", "low", "high", *TOOLTIPS)


def points(source: Source, quantity: Quantity, baseline: str | None = None, against: Against = USUAL) -> pd.DataFrame:
    """Return the cases that have a `quantity`, in columns COLUMNS; `value`, `low` and `high` are what it returns."""
    results = results_of(source)
    order = {shape: rank for rank, shape in enumerate(shapes_by_work(results))}
    drawn = []
    for result, its in zip(results, figures(results, baseline=baseline, against=against), strict=True):
        span = quantity(result.measurement, its) if result.measurement else None
        if result.measurement is None or span is None:
            continue
        numbers = {"order": order[result.case.shape], "value": span[0], "low": span[1], "high": span[2]}
        drawn.append(_names(result, results) | numbers | _words(result, result.measurement, its))
    return pd.DataFrame(drawn, columns=list(COLUMNS))


def contrast_points(source: Source) -> pd.DataFrame:
    """Return the medians under other conditions, in the same columns."""
    return pd.concat([_under(condition, source) for condition in CONDITIONS], ignore_index=True)


def _under(condition: Condition, source: Source) -> pd.DataFrame:
    found = points(source, lambda measurement, _: _contrast_span(measurement, condition))
    said = found["case"] + ", " + CONDITIONS[condition]
    return found.assign(condition=condition, case=said, time=found["value"].map(format_seconds))


def _contrast_span(measurement: Measurement, condition: Condition) -> Span | None:
    seconds = next((contrast.median_s for contrast in measurement.contrasts if contrast.condition == condition), None)
    return None if seconds is None else (seconds, None, None)


def at_rate(rate: float | None, measurement: Measurement) -> Span | None:
    """Return a rate that belongs to the median time, with those of the p80 and p20 times."""
    if rate is None:
        return None
    return rate, rate * measurement.median_s / measurement.p80_s, rate * measurement.median_s / measurement.p20_s


def _names(result: Result, results: Sequence[Result]) -> dict[str, Any]:
    case = result.case
    name = series_name(case, results)
    return {
        "series": name,
        "condition": "",
        "implementation": case.implementation,
        "dtype": case.dtype,
        "size": size_of(case),
        "case": f"{name} in {case.dtype}",
    }


def _words(result: Result, measurement: Measurement, derived: Figures) -> dict[str, str]:
    """Return the tooltip's text, a line each, in the order of TOOLTIPS."""
    low, high = measurement.ci95_s or (None, None)
    return {
        "shape": shape_label(result.case.shape),
        "time": format_seconds(measurement.median_s),
        "interval": f"{format_seconds(low)} to {format_seconds(high)}" if low else "too few samples",
        "samples": str(len(measurement.samples_s)),
        "rate": format_flop_per_s(derived.flop_per_s),
        "traffic": format_bytes_per_s(derived.bytes_per_s),
        "share": _share(derived),
        "memory": _memory(result, derived),
        "faster": _faster(derived),
        "also": contrasts_said(measurement) or "one condition",
        "flags": ", ".join(flag.name.replace("_", " ") for flag in result.flags) or "none",
    }


def contrasts_said(measurement: Measurement) -> str:
    """Return e.g. ``3.1 µs from warm caches, 2.0 µs replayed from a graph, without launches``, or an empty text."""
    return ", ".join(map(_contrast_said, measurement.contrasts))


def _contrast_said(contrast: Contrast) -> str:
    words = CONDITIONS[contrast.condition]
    return (
        f"not {words}: {contrast.reason}"
        if contrast.median_s is None
        else f"{format_seconds(contrast.median_s)} {words}"
    )


def _share(derived: Figures) -> str:
    if derived.peak is None or derived.mfu is None:
        return f"unknown: {derived.peak_unknown}" if derived.flop_count else "no FLOPs"
    return derived.above_peak or f"{format_percent(derived.mfu)} of {PEAK_KINDS[derived.peak.kind]}"


def _memory(result: Result, derived: Figures) -> str:
    if cache_resident_reason(result):
        return "in cache"
    if derived.bandwidth is None:
        return f"unknown: {derived.bandwidth_unknown}"
    return (
        derived.above_bandwidth
        or f"{format_percent(derived.bandwidth_utilization)} of {BANDWIDTH_KINDS[derived.bandwidth.kind]}"
    )


def _faster(derived: Figures) -> str:
    if derived.speedup is None:
        return "no baseline"
    return f"{format_ratio(derived.speedup.ratio)} over {derived.speedup.baseline}"
