"""The charts of a run against size: time, speedup, compute and memory rate, and the share of the limit.

Bars are 95 % intervals. Each takes a `panel`: a dtype, or lines; only their points are drawn, on the axes of all.
"""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.run.summary_rules import CONDITIONS, missing_counts
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import (
    COLUMNS,
    NEAR,
    Lines,
    PeakLine,
    Spread,
    drawn_in,
    ends_of,
    in_panel,
    peak_labels,
    peak_rules,
    points,
    rule,
    time_spread,
)
from gpuexplore.charts.series import Source, analysis_of, log_axis, number, owners_of, ratio_axis, series_of
from gpuexplore.core import (
    Condition,
    Measurement,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_ratio,
    format_seconds,
    median,
)


def _alt_text(
    what: str,
    points: pd.DataFrame,
    analysis: RunAnalysis,
    words: Callable[[float], str],
    *,
    low_is_best: bool = False,
) -> str:
    """Return ``Time per call of Matrix multiplication over 4 sizes; at 512 × 512 × 512: torch in bf16 310 µs, ...``.

    Args:
        words: formats a value, e.g. `format_seconds`.
    """
    if not analysis.shown:
        return f"{what}: no results yet."
    title = analysis.shown[0].operation.title
    if points.empty:
        return f"{what} of {title.lower()}: nothing to draw yet."
    largest = points[points["order"] == points["order"].max()].sort_values("value", ascending=low_is_best)
    figures = [f"{case} {words(value)}" for case, value in zip(largest["case"], largest["value"], strict=True)]
    most = 4
    rest = len(figures) - most
    more = f", and {rest} more" if rest > 0 else ""
    count = points["order"].nunique()
    sizes = "one size" if count == 1 else f"{count} sizes"
    shape = largest["shape"].iloc[0]
    return f"{what} of {title.lower()}, {sizes}; at {shape}: {', '.join(figures[:most])}{more}."


def left_out(
    results: Sequence[AnalyzedResult], drawn: pd.DataFrame | None = None, without: str = "without a value"
) -> str | None:
    """Return ``3 of 12 cases are not drawn: 2 skipped, 1 incorrect.``, or None when all are.

    Args:
        drawn: the points of the chart, where measured cases can be missing too.
        without: what those lack, e.g. ``without a known peak``.
    """
    counts = missing_counts([analyzed.result for analyzed in results])
    measured = len(results) - counts.total()
    if drawn is not None and len(drawn) < measured:
        counts[without] = measured - len(drawn)
    if not counts:
        return None
    listed = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    verb = "is" if counts.total() == 1 else "are"
    return f"{counts.total()} of {len(results)} case{'s'[: len(results) > 1]} {verb} not drawn: {listed}."


def time(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return median seconds per call on log scales; short strokes are other conditions, hollow points a first pass."""
    analysis = analysis_of(source)
    drawn = points(analysis, time_spread)
    measurements = [analyzed.measurement for analyzed in analysis.shown if analyzed.measurement]
    known = {contrast.condition for measurement in measurements for contrast in measurement.contrasts}
    found = [_contrast_frame(condition, analysis) for condition in CONDITIONS if condition in known]
    contrasts = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(COLUMNS))
    y = log_axis("Time per call", [*ends_of(drawn), *contrasts["value"]], "s")
    shown = drawn if contrasts.empty else pd.concat([drawn, contrasts], ignore_index=True)
    description = _alt_text("Time per call", drawn, analysis, format_seconds, low_is_best=True)
    return lines(in_panel(shown, panel), analysis, y=y, description=description)


def _contrast_frame(condition: Condition, analysis: RunAnalysis) -> pd.DataFrame:
    def spread(_: AnalyzedResult, measurement: Measurement) -> Spread | None:
        seconds = next((other.median_s for other in measurement.contrasts if other.condition == condition), None)
        return None if seconds is None else (seconds, None, None)

    found = points(analysis, spread)
    case = found["case"] + ", " + CONDITIONS[condition]
    return found.assign(condition=condition, case=case, time=found["value"].map(format_seconds))


def time_notes(source: Source) -> str | None:
    """Return what the chart leaves out, and what its bars, short strokes and hollow points are; None without points."""
    results = analysis_of(source).results
    measured = [analyzed.measurement for analyzed in results if analyzed.measurement]
    conditions = dict.fromkeys(contrast.condition for measurement in measured for contrast in measurement.contrasts)
    notes = [left_out(results)]
    if any(measurement.ci95_s for measurement in measured):
        notes.append("Bars: 95 % interval of the median.")
    if conditions:
        notes.append(f"Short lines: {', or '.join(CONDITIONS[condition] for condition in conditions)}.")
    if any(analyzed.result.provisional for analyzed in results):
        notes.append("Hollow points of this run: first pass, being refined.")
    if any(analyzed.flag("one_sample") for analyzed in results):
        notes.append("Hollow points without a bar: a single sample, no interval.")
    return " ".join(filter(None, notes)) or None


def speedup(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return the speedup over the baseline of the comparison: above the rule at 1× is faster."""
    analysis = analysis_of(source)
    baseline = analysis.comparison.baseline
    found = points(analysis, _ratio)
    drawn = found[(found["implementation"] != baseline) & (found["dtype"] != baseline)]  # its own ratio is always 1
    title = f"Speedup over {baseline or 'the baseline'}"
    y = ratio_axis(title, [1.0, *drawn["value"], *drawn["low"].dropna(), *drawn["high"].dropna()])
    description = _alt_text(title, drawn, analysis, format_ratio)
    return lines(in_panel(drawn, panel), analysis, y=y, description=description, rules=[rule(1.0)])


def speedup_left_out(source: Source) -> str | None:
    """Return what the chart of speedups does not show; the baseline itself is the rule at 1×."""
    analysis = analysis_of(source)
    return _left_out(analysis, points(analysis, _ratio), "without a baseline")


def _ratio(analyzed: AnalyzedResult, _: Measurement) -> Spread | None:
    if analyzed.speedup is None:
        return None
    return analyzed.speedup.ratio, *(analyzed.speedup.ci95 or (None, None))


def _left_out(analysis: RunAnalysis, drawn: pd.DataFrame, why: str) -> str | None:
    return left_out(analysis.results, drawn[drawn["origin"] == analysis.context.origin.value], why)


def throughput(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return achieved FLOP/s on log scales, with a line for each peak that applies."""
    return _rate(source, panel, by_memory=False)


def bandwidth(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return achieved bytes/s on log scales, with a line for each device's bandwidth; caches can lift points above."""
    return _rate(source, panel, by_memory=True)


def _rate(source: Source, panel: str | Lines | None, *, by_memory: bool) -> alt.LayerChart:
    def rate(analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
        return _at_rate((analyzed.bytes_per_s if by_memory else analyzed.flop_per_s) or None, analyzed, measurement)

    analysis = analysis_of(source)
    title = "Memory rate" if by_memory else "Compute rate"
    words = _words(by_memory)
    peaks_of = _memory_peaks if by_memory else _compute_peaks
    drawn = points(analysis, rate)
    shown = in_panel(drawn, panel)
    own = shown[~shown["elsewhere"]] if panel else shown  # peaks of dtypes differ: each panel has an axis of its own
    peaks = peak_labels(peaks_of(analysis, panel), words)
    on_axis = [*peaks.values(), *peak_labels(_memory_peaks(analysis, None) if by_memory else (), words).values()]
    on_axis += [1.2 * rate for rate in on_axis]  # space for a label above
    y = log_axis(title, [*ends_of(shown if by_memory else own), *on_axis], "B/s" if by_memory else "FLOP/s")
    domain: Any = y["scale"]["domain"]
    rules = peak_rules(peaks, domain, _drawn_at(own, domain))
    return lines(shown, analysis, y=y, description=_alt_text(title, drawn, analysis, words), rules=rules)


def _drawn_at(points: pd.DataFrame, domain: tuple[float, float]) -> list[tuple[float, float]]:
    """Return where about the lines of a panel run on a log axis, as shares of its width and height."""
    names_from = 0.7  # of the width: names stand right of the last size
    across = [step / 40 for step in range(41)]
    found: list[tuple[float, float]] = []
    for _, line in points.sort_values("order").groupby(["series", "dtype"]):
        x = names_from * line["order"] / (points["order"].max() or 1)
        y = np.interp(across, x, np.log(line["value"] / domain[0]) / np.log(domain[1] / domain[0]))
        found += zip(across, map(float, y), strict=True)
    return found


def _at_rate(rate: float | None, analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
    """Return a rate that belongs to the median time, with those of the ends of its interval."""
    if rate is None:
        return None
    median_s, low_s, high_s = time_spread(analyzed, measurement)
    return rate, high_s and rate * median_s / high_s, low_s and rate * median_s / low_s


def _words(by_memory: bool) -> Callable[[float], str]:
    return format_bytes_per_s if by_memory else format_flop_per_s


def _memory_peaks(analysis: RunAnalysis, panel: str | Lines | None) -> list[PeakLine]:
    """Return the bandwidths that the cases of a panel are compared with."""
    owners = owners_of(analysis.shown)
    return [
        PeakLine(owners[series_of(analyzed)], "", PEAK_SOURCES[peak.kind].bandwidth_label, peak.bytes_per_s)
        for analyzed in drawn_in(panel, analysis)
        if (peak := analyzed.bandwidth.peak) and analyzed.bytes_per_s
    ]


def _compute_peaks(analysis: RunAnalysis, panel: str | Lines | None) -> list[PeakLine]:
    """Return the peaks that the cases of a panel are compared with."""
    owners = owners_of(analysis.shown)
    drawn = drawn_in(panel, analysis)
    of_panel = {analyzed.case.dtype for analyzed in drawn} if panel else set()
    return [
        PeakLine(
            owners[series_of(analyzed)],
            "" if of_panel == {peak.dtype} else peak.dtype,
            PEAK_SOURCES[peak.kind].label,
            peak.flop_per_s,
        )
        for analyzed in drawn
        if (peak := analyzed.peak.peak) and analyzed.flop_per_s
    ]


def peak_notes(source: Source) -> str | None:
    """Return which lines each peak belongs to; None where each dtype of a device has its own."""
    analysis = analysis_of(source)
    known = [(analyzed, peak) for analyzed in drawn_in(None, analysis) if (peak := analyzed.peak.peak)]
    names: dict[tuple[str, float], dict[str, None]] = {}
    for analyzed, peak in known:
        names.setdefault((analyzed.device_label, peak.flop_per_s), {})[analyzed.label] = None
    of_dtype = {(analyzed.device_label, analyzed.case.dtype, peak.flop_per_s) for analyzed, peak in known}
    if len(of_dtype) == len({key[:2] for key in of_dtype}):
        return None
    listed = (f"{format_flop_per_s(rate)} is the peak of {', '.join(lines)}" for (_, rate), lines in names.items())
    return f"{'; '.join(listed)}."


def share(source: Source, panel: str | Lines | None = None, *, by_memory: bool | None = None) -> alt.LayerChart:
    """Return the fraction of the limit that each case reached, with the kinds of peak in the axis title.

    Cases whose peak is unknown, or that a cache served, are left out.

    Args:
        source: of the results.
        panel: what is drawn.
        by_memory: whether the limit is the memory bandwidth, and not the compute peak; None: what bounds the operation.
    """
    analysis = analysis_of(source)
    by_memory = is_memory_bound(analysis) if by_memory is None else by_memory
    drawn = _share_points(analysis, by_memory)
    title = "Memory rate" if by_memory else "MFU"
    labels = {_label(analyzed, by_memory) for analyzed in analysis.shown if _fraction(analyzed, by_memory) is not None}
    kind = next(iter(labels)) if len(labels) == 1 else "peak"
    highest = max(ends_of(drawn), default=1.0)
    full = highest >= 0.7  # from here up the line at 100 % says something and takes little space
    y = number(
        "value",
        title=f"{title}, % of the {kind}",
        axis={"format": ".2~%", "tickCount": 6},
        scale={"domain": [0, max(highest * 1.08, 1.08 if full else 0)], "nice": False},
    )
    description = _alt_text(title, drawn, analysis, format_percent)
    rules = [rule(1.0)] if full else []
    return lines(in_panel(drawn, panel), analysis, y=y, description=description, rules=rules)


def has_share(source: Source) -> bool:
    """Return whether a share of the limit is known of any result."""
    analysis = analysis_of(source)
    by_memory = is_memory_bound(analysis)
    return any(_fraction(analyzed, by_memory) is not None for analyzed in analysis.shown)


def share_left_out(source: Source, *, by_memory: bool | None = None) -> str | None:
    """Return what the chart of shares does not show."""
    analysis = analysis_of(source)
    by_memory = is_memory_bound(analysis) if by_memory is None else by_memory
    why = "without a known peak" if any(analyzed.flop_count for analyzed in analysis.results) else "without FLOPs"
    if by_memory:
        why = "served by a cache, or without a known bandwidth"
    return _left_out(analysis, _share_points(analysis, by_memory), why)


def _share_points(analysis: RunAnalysis, by_memory: bool) -> pd.DataFrame:
    """Return the points of the chart of one limit, with what each line is a share of where lines of a dtype differ."""

    def fraction(analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
        return _at_rate(_fraction(analyzed, by_memory), analyzed, measurement)

    found = points(analysis, fraction)
    peaks = [_peak(each, by_memory) for each in drawn_in(None, analysis) if _fraction(each, by_memory) is not None]
    points_of = list(zip(found["series"], found["dtype"], strict=True))
    by_line: dict[tuple[str, str], list[float]] = {}
    for line, peak in zip(points_of, peaks, strict=True):
        by_line.setdefault(line, []).append(peak)
    typical = {line: median(values) for line, values in by_line.items()}
    of_dtype: dict[str, list[float]] = {}
    for (_, dtype), value in typical.items():
        of_dtype.setdefault(dtype, []).append(value)
    differ = {dtype for dtype, values in of_dtype.items() if max(values) > NEAR * min(values)}
    words = _words(by_memory)
    return found.assign(denominator=[f", of {words(typical[line])}" if line[1] in differ else "" for line in points_of])


def _fraction(analyzed: AnalyzedResult, by_memory: bool) -> float | None:
    """Return what fraction of the limit a result reached; None is unknown."""
    return analyzed.bandwidth_utilization if by_memory else analyzed.mfu


def _peak(analyzed: AnalyzedResult, by_memory: bool) -> float:
    """Return the rate that the fraction of a result is of; 0 is unknown."""
    if by_memory:
        return analyzed.bandwidth.peak.bytes_per_s if analyzed.bandwidth.peak else 0.0
    return analyzed.peak.peak.flop_per_s if analyzed.peak.peak else 0.0


def _label(analyzed: AnalyzedResult, by_memory: bool) -> str:
    """Return what the limit of a result is called."""
    if by_memory:
        return PEAK_SOURCES[analyzed.bandwidth.kind].bandwidth_label
    return PEAK_SOURCES[analyzed.peak.kind].label
