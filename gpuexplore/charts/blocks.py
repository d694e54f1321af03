"""Block shapes as bars: the occupancy each allows, or the time each took."""

from collections.abc import Callable, Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.kernels.occupancy import BlockShape
from gpuexplore.charts.palette import color_of
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core.units import format_percent, format_seconds

ROW_HEIGHT = 34
TOOLTIPS = {"block": "Block", "said": "Value", "registers": "Registers", "limiter": "Limited by"}


def block_occupancy(implementation: str, shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the theoretical occupancy of each block shape of a kernel."""
    drawn = [(shape, shape.occupancy.occupancy) for shape in shapes if shape.occupancy]
    x = _x("Occupancy", 1.12, alt.Axis(format=".0%", tickCount=5))
    return _bars(_frame(drawn, format_percent), x, color_of(implementation))


def block_times(implementation: str, shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the measured median seconds per call of each block shape of a kernel."""
    drawn = [
        (shape, shape.result.measurement.median_s) for shape in shapes if shape.result and shape.result.measurement
    ]
    largest = max((seconds for _, seconds in drawn), default=1.0)
    x = _x("Time per call", largest * 1.2, alt.Axis(labels=False, ticks=False))
    return _bars(_frame(drawn, format_seconds), x, color_of(implementation))


def block_name(shape: BlockShape) -> str:
    """Return e.g. ``16 × 16``."""
    return " × ".join(map(str, shape.block))


def _x(title: str, largest: float, axis: alt.Axis) -> alt.X:
    return alt.X("value:Q", title=title, axis=axis, scale=alt.Scale(domain=[0, largest]))


def _bars(frame: pd.DataFrame, x: alt.X, color: alt.ExprRef) -> alt.LayerChart:
    y = alt.Y("block:N", sort=list(frame["block"]), title=None)
    words = [alt.Tooltip(f"{name}:N", title=heading) for name, heading in TOOLTIPS.items()]
    base = alt.Chart(frame).encode(y=y, x=x, tooltip=words)
    bars = base.mark_bar(height={"band": 0.55}, color=color)
    labels = base.mark_text(align="left", dx=6, fontSize=13, color=NEUTRAL).encode(text=alt.Text("said:N"))
    listed = ", ".join(f"{row.block} {row.said}" for row in frame.itertuples()) or "nothing is known"
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, labels]).properties(
        width="container",
        height=ROW_HEIGHT * max(1, len(frame)) + 50,
        description=f"{x['title']} by block shape: {listed}",
    )
    return chart


def _frame(drawn: Sequence[tuple[BlockShape, float]], words: Callable[[float], str]) -> pd.DataFrame:
    rows = [
        {
            "block": block_name(shape),
            "value": value,
            "said": words(value),
            "registers": shape.compiled.registers_per_thread if shape.compiled else None,
            "limiter": ", ".join(shape.occupancy.limiters) if shape.occupancy else None,
        }
        for shape, value in drawn
    ]
    return pd.DataFrame(rows, columns=["value", *TOOLTIPS])
