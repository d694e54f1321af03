"""Share of the limit against size: MFU, or where memory bounds the operation the fraction of the bandwidth."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.charts.alt_text import alt_text, left_out
from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Lines, Spread, at_rate, drawn_in, ends_of, in_panel, points
from gpuexplore.charts.reference_lines import NEAR, rule
from gpuexplore.core.model import Measurement
from gpuexplore.core.statistics import median
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_percent

NEAR_FULL = 0.7  # from here up the line at 100 % says something and takes little space


def share(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return the fraction of the limit that each case reached, with the kinds of peak in the axis title."""
    analysis = analysis_of(source)
    return share_of(analysis, panel, by_memory=is_memory_bound(analysis))


def share_of(analysis: RunAnalysis, panel: str | Lines | None = None, *, by_memory: bool) -> alt.LayerChart:
    """Return the chart of one limit, that of memory or of computing.

    Cases whose peak is unknown, or that a cache served, are left out.
    """
    drawn = _share_points(analysis, by_memory=by_memory)
    highest = max(ends_of(drawn), default=1.0)
    full = highest >= NEAR_FULL
    scale = alt.Scale(domain=[0, max(highest * 1.08, 1.08 if full else 0)], nice=False)
    axis = alt.Axis(format=".2~%", tickCount=6)
    y = alt.Y(
        "value:Q",
        title=f"{_title(by_memory)}, % of the {_kinds(analysis, by_memory)}",
        axis=axis,
        scale=scale,
    )
    description = _describe_share_of(analysis, by_memory=by_memory)
    rules = [rule(1.0)] if full else []
    return lines(in_panel(drawn, panel), analysis, y=y, description=description, rules=rules)


def has_share(source: Source) -> bool:
    """Return whether a share of the limit is known of any result."""
    analysis = analysis_of(source)
    by_memory = is_memory_bound(analysis)
    return any(_fraction(analyzed, by_memory) is not None for analyzed in analysis.shown)


def describe_share(source: Source) -> str:
    """Return the alternative text of the chart of shares."""
    analysis = analysis_of(source)
    return _describe_share_of(analysis, by_memory=is_memory_bound(analysis))


def _describe_share_of(analysis: RunAnalysis, *, by_memory: bool) -> str:
    """Return the alternative text of the chart of one limit."""
    return alt_text(_title(by_memory), _share_points(analysis, by_memory=by_memory), analysis, format_percent)


def share_left_out(source: Source) -> str | None:
    """Return what the chart of shares does not show."""
    analysis = analysis_of(source)
    return _share_of_left_out(analysis, by_memory=is_memory_bound(analysis))


def _share_of_left_out(analysis: RunAnalysis, *, by_memory: bool) -> str | None:
    """Return what the chart of one limit does not show."""
    drawn = _share_points(analysis, by_memory=by_memory)
    why = "without a known peak" if any(analyzed.flop_count for analyzed in analysis.results) else "without FLOPs"
    if by_memory:
        why = "served by a cache, or without a known bandwidth"
    return left_out(analysis.results, drawn[drawn["origin"] == analysis.context.origin.value], why)


def _share_points(analysis: RunAnalysis, *, by_memory: bool) -> pd.DataFrame:
    """Return the points of the chart of one limit."""

    def fraction(analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
        return at_rate(_fraction(analyzed, by_memory), analyzed, measurement)

    found = points(analysis, fraction)
    peaks = [_peak(each, by_memory) for each in drawn_in(None, analysis) if _fraction(each, by_memory) is not None]
    return found.assign(denominator=_denominators(found.assign(peak=peaks), by_memory))


def _denominators(found: pd.DataFrame, by_memory: bool) -> list[str]:
    """Return what each point's line is a share of, for its label; nothing where all lines of its dtype share it."""
    words = format_bytes_per_s if by_memory else format_flop_per_s
    peaks: dict[tuple[str, str], list[float]] = {}
    for series, dtype, peak in zip(found["series"], found["dtype"], found["peak"], strict=True):
        peaks.setdefault((series, dtype), []).append(peak)
    by_line = {line: median(values) for line, values in peaks.items()}
    of_dtype: dict[str, list[float]] = {}
    for line, value in by_line.items():
        of_dtype.setdefault(line[1], []).append(value)
    differ = {dtype for dtype, values in of_dtype.items() if max(values) > NEAR * min(values)}
    return [
        f", of {words(by_line[series, dtype])}" if dtype in differ else ""
        for series, dtype in zip(found["series"], found["dtype"], strict=True)
    ]


def _kinds(analysis: RunAnalysis, by_memory: bool) -> str:
    labels = {_label(analyzed, by_memory) for analyzed in analysis.shown if _fraction(analyzed, by_memory) is not None}
    return next(iter(labels)) if len(labels) == 1 else "peak"


def _title(by_memory: bool) -> str:
    return "Memory rate" if by_memory else "MFU"


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


def mfu(source: Source) -> alt.LayerChart:
    """Return achieved / peak FLOP/s against size, with the kinds of peak in the axis title."""
    return share_of(analysis_of(source), by_memory=False)


def describe_mfu(source: Source) -> str:
    """Return the alternative text of the chart of MFU."""
    return _describe_share_of(analysis_of(source), by_memory=False)


def mfu_left_out(source: Source) -> str | None:
    """Return what the chart of MFU does not show."""
    return _share_of_left_out(analysis_of(source), by_memory=False)
