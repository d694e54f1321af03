"""Speedup over a baseline against size: above the rule at 1× is faster, bars are 95 % intervals."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.run.derived import Figures
from gpuexplore.analysis.run.speedup import default_baseline
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import ratio_axis
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.left_out import left_out
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Span, points
from gpuexplore.charts.reference_lines import rule
from gpuexplore.model import Measurement
from gpuexplore.units import format_ratio


def speedup(source: Source, baseline: str | None = None, against: Against = USUAL) -> alt.LayerChart:
    """Return the speedup over `baseline` (an implementation or a dtype) against size."""
    name = _baseline(source, baseline)
    drawn = _points(source, name, against)
    values = [1.0, *drawn["value"], *drawn["low"].dropna(), *drawn["high"].dropna()]
    y = ratio_axis(f"Speedup over {name}", values)
    return lines(drawn, results_of(source), y=y, description=describe_speedup(source, name), rules=[rule(1.0)])


def describe_speedup(source: Source, baseline: str | None = None) -> str:
    """Return the alternative text of the chart of speedups."""
    name = _baseline(source, baseline)
    return alt_text(f"Speedup over {name}", _points(source, name), results_of(source), format_ratio)


def speedup_left_out(source: Source, baseline: str | None = None) -> str | None:
    """Return what the chart of speedups does not show; the baseline itself is the rule at 1×."""
    return left_out(source, points(source, _ratio, baseline), "without a baseline")


def _baseline(source: Source, asked: str | None) -> str:
    return asked or default_baseline(results_of(source)) or "the baseline"


def _points(source: Source, baseline: str, against: Against = USUAL) -> pd.DataFrame:
    """Return the points without those of the baseline, whose ratio to itself is always 1."""
    found = points(source, _ratio, baseline, against)
    return found[(found["implementation"] != baseline) & (found["dtype"] != baseline)]


def _ratio(_: Measurement, derived: Figures) -> Span | None:
    if derived.speedup is None:
        return None
    low, high = derived.speedup.ci95 or (None, None)
    return derived.speedup.ratio, low, high
