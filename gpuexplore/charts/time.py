"""Time per call against size, both on log scales, with the middle 60 % of the samples."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary_rules import CONDITIONS
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.left_out import left_out
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Lines, Spread, contrast_points, ends_of, in_panel, points
from gpuexplore.model import Measurement
from gpuexplore.units import format_seconds

FIRST_PASS = "Hollow points of this run: a first pass, being refined; their bars span the interval of the median."

ONE_SAMPLE = "Hollow points without a bar: one sample, which is no measurement."


def time(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return median seconds per call against size; bars span p20 to p80, short strokes are other conditions.

    Points of a first pass are hollow, and their bars span what is known of the median so far.

    Args:
        panel: a dtype, or lines: only their points are drawn, on the axes of all.
    """
    analysis = analysis_of(source)
    drawn, contrasts = _points(analysis), contrast_points(analysis)
    y = log_axis("Time per call", [*ends_of(drawn), *contrasts["value"]], "s")
    shown = drawn if contrasts.empty else pd.concat([drawn, contrasts], ignore_index=True)
    return lines(in_panel(shown, panel), analysis, y=y, description=_describe(drawn, analysis))


def time_notes(source: Source) -> str | None:
    """Return what the chart leaves out, and what its short strokes and hollow points are; None for nothing of that."""
    results = analysis_of(source).results
    measured = [analyzed.measurement for analyzed in results if analyzed.measurement]
    conditions = dict.fromkeys(contrast.condition for measurement in measured for contrast in measurement.contrasts)
    listed = ", or ".join(CONDITIONS[condition] for condition in conditions)
    strokes = f"Short strokes: {listed}." if listed else None
    hollow = FIRST_PASS if any(analyzed.result.provisional for analyzed in results) else None
    single = ONE_SAMPLE if any(analyzed.flag("one_sample") for analyzed in results) else None
    return " ".join(filter(None, (left_out(results), strokes, hollow, single))) or None


def describe_time(source: Source) -> str:
    """Return the alternative text of the chart of times."""
    analysis = analysis_of(source)
    return _describe(_points(analysis), analysis)


def _describe(drawn: pd.DataFrame, analysis: RunAnalysis) -> str:
    return alt_text("Time per call", drawn, analysis, format_seconds, low_is_best=True)


def _points(analysis: RunAnalysis) -> pd.DataFrame:
    return points(analysis, _seconds)


def _seconds(analyzed: AnalyzedResult, measurement: Measurement) -> Spread:
    if analyzed.result.provisional and analyzed.time:
        return measurement.median_s, analyzed.time.low, analyzed.time.high
    if measurement.is_single:
        return measurement.median_s, None, None
    return measurement.median_s, measurement.p20_s, measurement.p80_s
