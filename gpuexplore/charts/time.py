"""Time per call against size, both on log scales, with the middle 60 % of the samples."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.run.derived import CONDITIONS, Figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.left_out import left_out
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Span, contrast_points, points
from gpuexplore.model import Contrast, Measurement, Result
from gpuexplore.units import format_seconds


def time(source: Source, against: Against = USUAL) -> alt.LayerChart:
    """Return median seconds per call against size; bars span p20 to p80, short strokes are other conditions."""
    drawn = _points(source, against)
    contrasts = contrast_points(source)
    y = log_axis("Time per call", [*drawn["low"], *drawn["high"], *contrasts["value"]], "s")
    shown = drawn if contrasts.empty else pd.concat([drawn, contrasts], ignore_index=True)
    return lines(shown, results_of(source), y=y, description=describe_time(source))


def time_notes(source: Source) -> str | None:
    """Return what the chart leaves out, and what its short strokes are; None when neither is there."""
    conditions = dict.fromkeys(contrast.condition for result in results_of(source) for contrast in _contrasts(result))
    strokes = (
        f"Short strokes: {', or '.join(CONDITIONS[condition] for condition in conditions)}." if conditions else None
    )
    return " ".join(filter(None, (left_out(source), strokes))) or None


def _contrasts(result: Result) -> tuple[Contrast, ...]:
    return result.measurement.contrasts if result.measurement else ()


def describe_time(source: Source) -> str:
    """Return the alternative text of the chart of times."""
    return alt_text("Time per call", _points(source), results_of(source), format_seconds, low_is_best=True)


def _points(source: Source, against: Against = USUAL) -> pd.DataFrame:
    return points(source, _seconds, against=against)


def _seconds(measurement: Measurement, _: Figures) -> Span:
    return measurement.median_s, measurement.p20_s, measurement.p80_s
