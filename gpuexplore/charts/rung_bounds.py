"""The rungs of a ladder by the rate that their machine code allows at most, hollow, for nothing of it is measured."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from gpuexplore.analysis.kernels.instruction_bound import InstructionBound
from gpuexplore.charts.axes import si_label
from gpuexplore.charts.palette import scale_of
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.units import format_flop_per_s, format_percent

ROW_HEIGHT = 40
LABEL_ROOM = 1.25  # beside the longest bar
TOOLTIPS = {"rung": "Kernel", "said": "At most", "percent": "Of its units' peak", "evidence": "First bottleneck"}


def rung_bounds_chart(bounds: Mapping[str, InstructionBound]) -> alt.LayerChart:
    """Return a hollow bar for each rung, by its name, whose bound is known; in FLOP/s, as they use different units."""
    frame = pd.DataFrame([_row(name, bound) for name, bound in _known(bounds).items()], columns=["rate", *TOOLTIPS])
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
        width="container", height=ROW_HEIGHT * max(1, len(names)) + 50, description=describe_rung_bounds(bounds)
    )
    return chart


def describe_rung_bounds(bounds: Mapping[str, InstructionBound]) -> str:
    """Return the alternative text."""
    told = [f"{name} {format_flop_per_s(bound.flop_per_s)}" for name, bound in _known(bounds).items()]
    return f"Upper bound by the machine code: {', '.join(told) or 'nothing is known'}"


def _known(bounds: Mapping[str, InstructionBound]) -> dict[str, InstructionBound]:
    return {name: bound for name, bound in bounds.items() if bound.flop_per_s is not None}


def _row(name: str, bound: InstructionBound) -> dict[str, object]:
    return {
        "rate": bound.flop_per_s,
        "rung": name,
        "said": f"≤ {format_flop_per_s(bound.flop_per_s)}",
        "percent": format_percent(bound.share_of_peak),
        "evidence": bound.evidence,
    }
