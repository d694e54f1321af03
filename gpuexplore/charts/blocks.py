"""Block shapes as bars: the occupancy each allows, or the time each took."""

from collections.abc import Callable, Sequence

import altair as alt
import pandas as pd

from gpuexplore.analysis.kernels.blocks import BlockShape
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.units import format_percent, format_seconds

ROW_HEIGHT = 34
TOOLTIPS = {"block": "Block", "said": "Value", "registers": "Registers", "limiter": "Limited by"}


def block_occupancy(shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the theoretical occupancy of each block shape."""
    drawn = [(shape, shape.occupancy.occupancy) for shape in shapes if shape.occupancy]
    return _bars(_frame(drawn, format_percent), "Occupancy", alt.Axis(format=".0%", tickCount=5), (0, 1.12))


def block_times(shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the measured median seconds per call of each block shape."""
    drawn = [
        (shape, shape.result.measurement.median_s) for shape in shapes if shape.result and shape.result.measurement
    ]
    largest = max((seconds for _, seconds in drawn), default=1.0)
    return _bars(
        _frame(drawn, format_seconds), "Time per call", alt.Axis(labels=False, ticks=False), (0, largest * 1.2)
    )


def block_name(shape: BlockShape) -> str:
    """Return e.g. ``16 × 16``."""
    return " × ".join(map(str, shape.block))


def _bars(frame: pd.DataFrame, title: str, axis: alt.Axis, domain: tuple[float, float]) -> alt.LayerChart:
    y = alt.Y("block:N", sort=list(frame["block"]), title=None)
    x = alt.X("value:Q", title=title, axis=axis, scale=alt.Scale(domain=list(domain)))
    words = [alt.Tooltip(f"{name}:N", title=heading) for name, heading in TOOLTIPS.items()]
    base = alt.Chart(frame).encode(y=y, x=x, tooltip=words)
    bars = base.mark_bar(height={"band": 0.55})
    labels = base.mark_text(align="left", dx=6, fontSize=13, color=NEUTRAL).encode(text="said:N")
    told = ", ".join(f"{row.block} {row.said}" for row in frame.itertuples()) or "nothing is known"
    chart: alt.LayerChart = alt.LayerChart(layer=[bars, labels]).properties(
        width="container", height=ROW_HEIGHT * max(1, len(frame)) + 50, description=f"{title} by block shape: {told}"
    )
    return chart


def _frame(drawn: Sequence[tuple[BlockShape, float]], words: Callable[[float], str]) -> pd.DataFrame:
    rows = [
        {
            "block": block_name(one),
            "value": value,
            "said": words(value),
            "registers": one.compiled.registers_per_thread if one.compiled else None,
            "limiter": one.occupancy.limiter if one.occupancy else None,
        }
        for one, value in drawn
    ]
    return pd.DataFrame(rows, columns=["value", *TOOLTIPS])
