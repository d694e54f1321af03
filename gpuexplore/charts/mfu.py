"""MFU against size: the share of the peak that each case reached; unknown peaks are left out."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.left_out import left_out
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Spread, at_rate, points
from gpuexplore.charts.reference_lines import rule
from gpuexplore.model import Measurement
from gpuexplore.units import format_percent

NEAR_FULL = 0.7  # from here up the line at 100 % says something and costs little room


def mfu(source: Source) -> alt.LayerChart:
    """Return achieved / peak FLOP/s against size, with the kinds of peak in the axis title."""
    analysis = analysis_of(source)
    drawn = _points(analysis)
    highest = max(drawn["high"], default=1.0)
    full = highest >= NEAR_FULL
    scale = alt.Scale(domain=[0, max(highest * 1.08, 1.08 if full else 0)], nice=False)
    axis = alt.Axis(format=".2~%", tickCount=6)
    y = alt.Y("value:Q", title=f"MFU, % of the {_kinds(analysis)}", axis=axis, scale=scale)
    return lines(drawn, analysis, y=y, description=_describe(drawn, analysis), rules=[rule(1.0)] if full else [])


def describe_mfu(source: Source) -> str:
    """Return the alternative text of the chart of MFU."""
    analysis = analysis_of(source)
    return _describe(_points(analysis), analysis)


def _describe(drawn: pd.DataFrame, analysis: RunAnalysis) -> str:
    return alt_text("MFU", drawn, analysis, format_percent)


def mfu_left_out(source: Source) -> str | None:
    """Return what the chart of MFU does not show."""
    analysis = analysis_of(source)
    drawn = _points(analysis)
    why = "without a known peak" if any(analyzed.flop_count for analyzed in analysis.results) else "without FLOPs"
    return left_out(analysis.results, drawn[drawn["origin"] == analysis.context.origin.value], why)


def _points(analysis: RunAnalysis) -> pd.DataFrame:
    return points(analysis, _fraction)


def _fraction(analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
    return at_rate(analyzed.mfu, measurement)


def _kinds(analysis: RunAnalysis) -> str:
    labels = {PEAK_SOURCES[analyzed.peak.kind].label for analyzed in analysis.shown if analyzed.mfu is not None}
    return next(iter(labels)) if len(labels) == 1 else "peak"
