"""The rungs of a ladder by the rate that their machine code allows at most, hollow, for nothing of it is measured."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.kernels.rung_bounds import RungBound
from gpuexplore.charts.axes import si_label
from gpuexplore.charts.palette import scale_of
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.units import format_flop_per_s, format_percent

ROW_HEIGHT = 40
LABEL_ROOM = 1.25  # beside the longest bar
TOOLTIPS = {"rung": "Kernel", "said": "At most", "percent": "Of its units' peak", "evidence": "First bottleneck"}


def rung_bounds_chart(rungs: Sequence[RungBound]) -> alt.LayerChart:
    """Return a hollow bar for each rung whose bound is known; in FLOP/s, for rungs use units of different peaks."""
    frame = pd.DataFrame([_row(rung) for rung in _known(rungs)], columns=["rate", *TOOLTIPS])
    names = list(frame["rung"])
    y = alt.Y("rung:N", sort=names, title=None, axis=alt.Axis(labelLimit=240), scale=alt.Scale(domain=names))
    x = alt.X(
        "rate:Q",
        title="Bound by the machine code",
        axis=alt.Axis(labelExpr=si_label("FLOP/s"), tickCount=6),
        scale=alt.Scale(domain=[0, LABEL_ROOM * max(frame["rate"], default=1.0)]),
    )
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in TOOLTIPS.items()]
    base = alt.Chart(frame).encode(y=y, x=x)
    bars = base.mark_bar(height={"band": 0.55}, fillOpacity=0.15, strokeWidth=2, strokeDash=[5, 3]).encode(
        color=alt.Color("rung:N", scale=scale_of(names), legend=None),
        stroke=alt.Stroke("rung:N", scale=scale_of(names), legend=None),
        tooltip=words,
    )
    labels = base.mark_text(align="left", dx=8, fontSize=13, color=NEUTRAL).encode(text=alt.Text("said:N"))
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, labels]).properties(
        width="container", height=ROW_HEIGHT * max(1, len(names)) + 50, description=describe_rung_bounds(rungs)
    )
    return chart


def describe_rung_bounds(rungs: Sequence[RungBound]) -> str:
    """Return the alternative text."""
    told = [f"{rung.implementation.name} {format_flop_per_s(rung.bound.flop_per_s)}" for rung in _known(rungs)]
    return f"Upper bound by the machine code: {', '.join(told) or 'nothing is known'}"


def _known(rungs: Sequence[RungBound]) -> list[RungBound]:
    return [rung for rung in rungs if rung.bound.flop_per_s is not None]


def _row(rung: RungBound) -> dict[str, object]:
    return {
        "rate": rung.bound.flop_per_s,
        "rung": rung.implementation.name,
        "said": f"≤ {format_flop_per_s(rung.bound.flop_per_s)}",
        "percent": format_percent(rung.bound.share_of_peak),
        "evidence": rung.bound.evidence,
    }
