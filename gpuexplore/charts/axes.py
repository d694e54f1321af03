"""Axes that read well: measured sizes only, 1-2-5 ticks on log scales, SI prefixes with their unit."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, log2, log10
from typing import Any

import altair as alt
import pandas as pd

from gpuexplore.core.units import COMPARABLE, common_unit
from gpuexplore.operations.contract import Operation

LABEL_LIMIT = 180
MOST_TICKS = 9
WIDE = 4.0  # ratios that differ by more are read better on a log scale
# A position in pixels or by name: `alt.value` says the same, for which Altair looks through all its classes (4 ms).
x_value: Callable[[float | str], Any] = alt.XValue
y_value: Callable[[float | str], Any] = alt.YValue


def size_axis(points: pd.DataFrame, operation: Operation, *, margin: int = 0) -> alt.X:
    """Return the x axis: sizes on a log scale, else whole shapes in the order of their work.

    Args:
        margin: pixels that are left free at its right end, for the names of lines.
    """
    few = 3  # so many whole shapes fit a phone side by side
    if points["size"].isna().any():
        order = points.sort_values("order")["shape"].unique().tolist()
        axis = alt.Axis(labelLimit=LABEL_LIMIT, labelAngle=0 if len(order) <= few else -35)
        return alt.X("shape:O", sort=order, title=" × ".join(operation.axes), axis=axis)
    sizes = sorted({int(point) for point in points["size"]})
    is_round = max(sizes) >= 10_000 and all(size % 100 == 0 for size in sizes)  # 10k, and not 4,096
    axis = alt.Axis(
        values=sizes, format="~s" if is_round else ",d", grid=False, labelOverlap="greedy", labelFlush=False
    )
    end = alt.ExprRef(f"width - {margin}") if margin else alt.Undefined
    scale = alt.Scale(type="log", nice=False, padding=14, rangeMax=end)
    return alt.X("size:Q", title=_size_title(operation), axis=axis, scale=scale)


def _size_title(operation: Operation) -> str:
    """Return the axes that are as long as a size says, e.g. ``m = k = n``, or for a convolution ``h = w``."""
    shapes = {size: dict(operation.shape_of_size(size).axes) for size in operation.default_sizes[-2:]}
    return " = ".join(axis for axis in operation.axes if all(shapes[size][axis] == size for size in shapes)) or "size"


def log_axis(title: str, values: Iterable[float], unit: str) -> alt.Y:
    """Return a log axis over `values` in `unit`, whose ticks read ``10 µs``, ``100 µs``."""
    ticks = log_ticks(list(values))
    shown = ticks if len(ticks) <= MOST_TICKS else [tick for tick in ticks if log10(tick).is_integer()]
    axis = alt.Axis(values=shown, labelExpr=si_label(unit, shown), labelOverlap="greedy", labelLimit=LABEL_LIMIT)
    scale = alt.Scale(type="log", nice=False, domain=[ticks[0], ticks[-1]])
    return alt.Y("value:Q", title=title, axis=axis, scale=scale)


def log_ticks(values: Sequence[float]) -> list[float]:
    """Return the ticks 1, 2 and 5 of every decade that just enclose positive `values`."""
    if not values:
        return [1.0, 10.0]
    ticks = [
        float(f"{step}e{decade}")
        for decade in range(floor(log10(min(values))) - 1, ceil(log10(max(values))) + 2)
        for step in (1, 2, 5)
    ]
    first = max(index for index, tick in enumerate(ticks) if tick <= min(values))
    last = min(index for index, tick in enumerate(ticks) if tick >= max(values))
    return ticks[first : max(last, first + 1) + 1]


def ratio_axis(title: str, values: Sequence[float]) -> alt.Y:
    """Return an axis of ratios: from zero, or on a log scale of powers of two when they differ much."""
    if max(values) / min(values) <= WIDE:
        scale = alt.Scale(domain=[0, max(values) * 1.1], nice=True)
        axis = alt.Axis(labelExpr="format(datum.value, '.3~r') + '×'", tickCount=6)
        return alt.Y("value:Q", title=title, axis=axis, scale=scale)
    label = "format(datum.value, datum.value < 1 ? '.3~r' : ',d') + '×'"
    axis = alt.Axis(values=powers_of_two(values), labelExpr=label, labelLimit=LABEL_LIMIT)
    scale = alt.Scale(type="log", base=2, nice=False, domain=[min(values) / 1.2, max(values) * 1.2])
    return alt.Y("value:Q", title=title, axis=axis, scale=scale)


def powers_of_two(values: Sequence[float]) -> list[float]:
    """Return at most about MOST_TICKS powers of two among positive `values`, evenly spaced, 1 among them."""
    low = floor(log2(min(values)))
    high = ceil(log2(max(values)))
    step = max(1, ceil((high - low) / MOST_TICKS))
    return [2.0**exponent for exponent in range(step * floor(low / step), high + 1, step)]


def si_label(unit: str, values: Sequence[float] = ()) -> str:
    """Return the Vega expression of a tick's label: its SI prefix, set apart from the number, and `unit`.

    Args:
        unit: of the axis.
        values: of its ticks, or of what is drawn; where they compare, they all have one prefix.
    """
    known = [abs(value) for value in values if value]
    if known and max(known) <= COMPARABLE * min(known):
        size, name = common_unit(known, unit, binary=False)
        return f"format(datum.value / {size!r}, '.3~r') + ' {name}'"
    return f"replace(format(datum.value, '.3~s'), regexp('([a-zA-Zµ]?)$'), ' $1{unit}')"
