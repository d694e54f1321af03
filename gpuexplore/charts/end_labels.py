"""Names at the ends of lines, moved apart where they would cover each other."""

from collections.abc import Sequence
from math import exp, log
from typing import Any

import altair as alt
import pandas as pd

GAP = 13.0  # pixels between the middles of two names
DRAWN = 0.8  # of a chart's height lies between its axes
CHARACTER = 6.6  # pixels, of the longest name
BESIDE = 8  # pixels from the point
LONGEST = 18  # characters; for longer names a legend has more room


def end_labels(points: pd.DataFrame, y: alt.Y, *, height: int) -> pd.DataFrame | None:
    """Return a name for each line at its last point, so far apart that none covers another; None where none fit.

    Args:
        points: of the lines.
        y: their axis, with its domain.
        height: of the chart in pixels.
    """
    lines = points.sort_values("order").groupby(["series", "dtype"], sort=False).tail(1)
    several = lines["dtype"].nunique() > 1
    names = lines["series"] + (" " + lines["dtype"] if several else "")
    names = names + lines["denominator"] if "denominator" in lines else names
    if lines.empty or GAP * len(lines) > DRAWN * height or max(map(len, names)) > LONGEST:
        return None
    domain, is_log = _domain(y, points)
    places = [_fraction(value, domain, is_log) for value in lines["value"]]
    apart = _spread(places, GAP / (DRAWN * height))
    values = [_value(place, domain, is_log) for place in apart]
    return lines.assign(name=names, value=values)


def room_of(labels: pd.DataFrame) -> int:
    """Return the pixels that the longest name takes beside its point."""
    return round(CHARACTER * max(map(len, labels["name"]))) + BESIDE + 4


def end_texts(labels: pd.DataFrame, *, x: alt.X, y: alt.Y, color: alt.Color) -> alt.Chart:
    """Return the layer of the names."""
    text = alt.Chart(labels).mark_text(align="left", dx=BESIDE, fontSize=12, tooltip=None)
    encoded: alt.Chart = text.encode(x=x, y=y, color=color, text=alt.Text("name:N"))
    return encoded


def _domain(y: alt.Y, points: pd.DataFrame) -> tuple[tuple[float, float], bool]:
    scale: Any = y["scale"]
    domain = scale["domain"]
    if domain is alt.Undefined:
        domain = [points["value"].min(), points["value"].max()]
    return (float(domain[0]), float(domain[-1])), scale["type"] == "log"


def _fraction(value: float, domain: tuple[float, float], is_log: bool) -> float:
    low, high = map(log, domain) if is_log else domain
    return ((log(value) if is_log else value) - low) / ((high - low) or 1.0)


def _value(fraction: float, domain: tuple[float, float], is_log: bool) -> float:
    low, high = map(log, domain) if is_log else domain
    place = low + fraction * (high - low)
    return exp(place) if is_log else place


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """Return `places` moved as little as it takes until neighbours are `gap` apart and all lie between 0 and 1."""
    order = sorted(range(len(places)), key=places.__getitem__)
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while len(groups) > 1 and _bottom(groups[-1], places, gap) < _bottom(groups[-2], places, gap) + gap * len(
            groups[-2]
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    found = [0.0] * len(places)
    for group in groups:
        bottom = _bottom(group, places, gap)
        for step, index in enumerate(group):
            found[index] = bottom + gap * step
    return found


def _bottom(group: Sequence[int], places: Sequence[float], gap: float) -> float:
    """Return where the lowest name of a group lies whose middle is that of its points, within the axes."""
    middle = sum(places[index] for index in group) / len(group)
    height = gap * (len(group) - 1)
    return min(max(middle - height / 2, 0.0), 1.0 - height)
