"""MFU against size: the share of the peak that each case reached; unknown peaks are left out."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.run.derived import Figures, figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.analysis.utilization.utilization import PEAK_KINDS
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.left_out import left_out
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Span, at_rate, points
from gpuexplore.charts.reference_lines import rule
from gpuexplore.model import Measurement
from gpuexplore.units import format_percent

NEAR_FULL = 0.7  # from here up the line at 100 % says something and costs little room


def mfu(source: Source, against: Against = USUAL) -> alt.LayerChart:
    """Return achieved / peak FLOP/s against size, with the kinds of peak in the axis title."""
    drawn = _points(source, against)
    highest = max(drawn["high"], default=1.0)
    full = highest >= NEAR_FULL
    scale = alt.Scale(domain=[0, max(highest * 1.08, 1.08 if full else 0)], nice=False)
    axis = alt.Axis(format=".2~%", tickCount=6)
    y = alt.Y("value:Q", title=f"MFU, % of {_kinds(source, against)}", axis=axis, scale=scale)
    rules = [rule(1.0)] if full else []
    return lines(drawn, results_of(source), y=y, description=describe_mfu(source, against), rules=rules)


def describe_mfu(source: Source, against: Against = USUAL) -> str:
    """Return the alternative text of the chart of MFU."""
    return alt_text("MFU", _points(source, against), results_of(source), format_percent)


def mfu_left_out(source: Source, against: Against = USUAL) -> str | None:
    """Return what the chart of MFU does not show."""
    counted = any(figure.flop_count for figure in figures(results_of(source)))
    return left_out(source, _points(source, against), "without a known peak" if counted else "without FLOPs")


def _points(source: Source, against: Against) -> pd.DataFrame:
    return points(source, _share, against=against)


def _share(measurement: Measurement, derived: Figures) -> Span | None:
    return at_rate(derived.mfu, measurement)


def _kinds(source: Source, against: Against) -> str:
    derived = figures(results_of(source), against=against)
    kinds = dict.fromkeys(PEAK_KINDS[one.peak.kind] for one in derived if one.peak and one.mfu is not None)
    return next(iter(kinds)) if len(kinds) == 1 else "peak"
