"""Axes that read well: measured sizes only, 1-2-5 ticks on log scales, SI prefixes with their unit."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, log2, log10
from typing import Any

import altair as alt

from gpuexplore.core.units import common_unit, round_significant

LABEL_LIMIT = 180
MOST_TICKS = 9
WIDE = 4.0  # ratios that differ by more are read better on a log scale
# A position in pixels or by name: `alt.value` says the same, for which Altair looks through all its classes (4 ms).
x_value: Callable[[float | str], Any] = alt.XValue
y_value: Callable[[float | str], Any] = alt.YValue


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
        values: of its ticks, or of what is drawn: with them, every tick has the same prefix, unless one would read
            1,000 or more, or below 0.1.
    """
    known = [abs(value) for value in values if value]
    size, name = common_unit(known, unit, binary=False)
    if known and round_significant(min(known) / size) >= 0.1 and max(known) < 1000 * size:
        return f"format(datum.value / {size!r}, ',.3~r') + ' {name}'"
    own = f"replace(format(datum.value, '.3~s'), regexp('([a-zA-Zµ]?)$'), ' $1{unit}')"
    return f"(datum.value < 1000 ? {own} : format(datum.value, ',.3~r') + ' s')" if unit == "s" else own  # no ks
