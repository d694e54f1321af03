"""Speedup over a baseline against size: above the rule at 1× is faster, bars are 95 % intervals."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.charts.alt_text import alt_text, left_out
from gpuexplore.charts.axes import ratio_axis
from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Lines, Spread, in_panel, points
from gpuexplore.charts.reference_lines import rule
from gpuexplore.core.model import Measurement
from gpuexplore.core.units import format_ratio


def speedup(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return the speedup over the baseline of the comparison against size, of one dtype as a `panel` of several."""
    analysis = analysis_of(source)
    drawn = _points(analysis)
    values = [1.0, *drawn["value"], *drawn["low"].dropna(), *drawn["high"].dropna()]
    y = ratio_axis(_title(analysis), values)
    return lines(in_panel(drawn, panel), analysis, y=y, description=_describe(drawn, analysis), rules=[rule(1.0)])


def describe_speedup(source: Source) -> str:
    """Return the alternative text of the chart of speedups."""
    analysis = analysis_of(source)
    return _describe(_points(analysis), analysis)


def _describe(drawn: pd.DataFrame, analysis: RunAnalysis) -> str:
    return alt_text(_title(analysis), drawn, analysis, format_ratio)


def speedup_left_out(source: Source) -> str | None:
    """Return what the chart of speedups does not show; the baseline itself is the rule at 1×."""
    analysis = analysis_of(source)
    drawn = points(analysis, _ratio)
    return left_out(analysis.results, drawn[drawn["origin"] == analysis.context.origin.value], "without a baseline")


def _title(analysis: RunAnalysis) -> str:
    return f"Speedup over {analysis.comparison.baseline or 'the baseline'}"


def _points(analysis: RunAnalysis) -> pd.DataFrame:
    """Return the points without those of the baseline, whose ratio to itself is always 1."""
    found, baseline = points(analysis, _ratio), analysis.comparison.baseline
    return found[(found["implementation"] != baseline) & (found["dtype"] != baseline)]


def _ratio(analyzed: AnalyzedResult, _: Measurement) -> Spread | None:
    if analyzed.speedup is None:
        return None
    low, high = analyzed.speedup.ci95 or (None, None)
    return analyzed.speedup.ratio, low, high
