"""Time per call against size, both on log scales, with the 95 % interval of each median."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.summary_rules import CONDITIONS
from gpuexplore.charts.alt_text import alt_text, left_out
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Lines, contrast_points, ends_of, in_panel, points, time_spread
from gpuexplore.core.units import format_seconds

ONE_SAMPLE = "Hollow points without a bar: a single sample, no interval."


def time(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return median seconds per call against size; bars are 95 % intervals, short strokes other conditions.

    Points of a first pass are hollow.

    Args:
        panel: a dtype, or lines: only their points are drawn, on the axes of all.
    """
    analysis = analysis_of(source)
    drawn, contrasts = _points(analysis), contrast_points(analysis)
    y = log_axis("Time per call", [*ends_of(drawn), *contrasts["value"]], "s")
    shown = drawn if contrasts.empty else pd.concat([drawn, contrasts], ignore_index=True)
    return lines(in_panel(shown, panel), analysis, y=y, description=_describe(drawn, analysis))


def time_notes(source: Source) -> str | None:
    """Return what the chart leaves out, and what its bars, short strokes and hollow points are; None without points."""
    results = analysis_of(source).results
    measured = [analyzed.measurement for analyzed in results if analyzed.measurement]
    conditions = dict.fromkeys(contrast.condition for measurement in measured for contrast in measurement.contrasts)
    listed = ", or ".join(CONDITIONS[condition] for condition in conditions)
    strokes = f"Short lines: {listed}." if listed else None
    hollow = (
        "Hollow points of this run: first pass, being refined."
        if any(analyzed.result.provisional for analyzed in results)
        else None
    )
    single = ONE_SAMPLE if any(analyzed.flag("one_sample") for analyzed in results) else None
    bars = "Bars: 95 % interval of the median." if any(measurement.ci95_s for measurement in measured) else None
    return " ".join(filter(None, (left_out(results), bars, strokes, hollow, single))) or None


def describe_time(source: Source) -> str:
    """Return the alternative text of the chart of times."""
    analysis = analysis_of(source)
    return _describe(_points(analysis), analysis)


def _describe(drawn: pd.DataFrame, analysis: RunAnalysis) -> str:
    return alt_text("Time per call", drawn, analysis, format_seconds, low_is_best=True)


def _points(analysis: RunAnalysis) -> pd.DataFrame:
    return points(analysis, time_spread)
