"""Time per call against size, both on log scales, with the middle 60 % of the samples."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.figures import Figures
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Span, points
from gpuexplore.model import Measurement
from gpuexplore.units import format_seconds


def time(source: Source) -> alt.LayerChart:
    """Return median seconds per call against size; bars span p20 to p80."""
    drawn = _points(source)
    y = log_axis("Time per call", [*drawn["low"], *drawn["high"]], "s")
    return lines(drawn, results_of(source), y=y, description=describe_time(source))


def describe_time(source: Source) -> str:
    """Return the alternative text of the chart of times."""
    return alt_text("Time per call", _points(source), results_of(source), format_seconds, low_is_best=True)


def _points(source: Source) -> pd.DataFrame:
    return points(source, _seconds)


def _seconds(measurement: Measurement, _: Figures) -> Span:
    return measurement.median_s, measurement.p20_s, measurement.p80_s
