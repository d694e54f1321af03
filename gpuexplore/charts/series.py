"""Colour, dash and point of a series: an implementation and a dtype look the same on every chart.

Colours are those of `gpuexplore.charts.palette`; dashes and points go by the dtype's index in DTYPES. A legend
with a single entry is left out. A recorded series has the colour of the live one of its implementation, and says
in its name that it is recorded; its points are hollow.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.charts.palette import color_of
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Origin

POINTS = ("square", "circle", "cross", "diamond", "triangle-up", "triangle-down")
FADED = 0.12
RING = "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0ZM0.65,0A0.65,0.65,0,1,0,-0.65,0A0.65,0.65,0,1,0,0.65,0Z"  # an SVG path
NEUTRAL = "#808495"  # the theme has no colour for rules and text: this grey reads on light and on dark


class Series(NamedTuple):
    """The results of one line: an implementation on a device, measured here or recorded."""

    implementation: str
    device: str
    origin: Origin

    @property
    def recorded(self) -> bool:
        """True if measured at another time or on another machine."""
        return self.origin is Origin.RECORDED

    @property
    def full_device_name(self) -> str:
        """The device in its name: ``cpu``, ``recorded: NVIDIA L4``."""
        return f"{self.origin.label}: {self.device}" if self.recorded else self.device


def series_of(analyzed: AnalyzedResult) -> Series:
    """Return the series a result belongs to."""
    return Series(analyzed.case.implementation, analyzed.device_label, analyzed.origin)


def series_name(series: Series, shown: Sequence[AnalyzedResult]) -> str:
    """Return the implementation's name, with the device where there are several or it is a recorded one."""
    several = len({(analyzed.origin, analyzed.device_label) for analyzed in shown}) > 1
    return (
        f"{series.implementation} · {series.full_device_name}" if several or series.recorded else series.implementation
    )


def _device_label(series: Series, shown: Iterable[Series]) -> str:
    """Return what a label calls the device of a series: a recorded one by its name only where there are several."""
    recorded = {other.device for other in shown if other.recorded}
    return series.origin.label if series.recorded and len(recorded) == 1 else series.full_device_name


def owners_of(shown: Iterable[AnalyzedResult]) -> dict[Series, str]:
    """Return what a label calls the device of each series, e.g. ``cpu`` or ``recorded``."""
    every = dict.fromkeys(map(series_of, shown))
    return {series: _device_label(series, every) for series in every}


def color(points: pd.DataFrame, order: Mapping[str, Series], *, legend: bool) -> alt.Color:
    """Return the colour of a series, the same whatever else is shown."""
    drawn = set(points["series"])
    present = {name: series for name, series in order.items() if name in drawn}
    scale = alt.Scale(domain=list(order), range=_colors(order.values()))
    return alt.Color("series:N", scale=scale, legend=_series_legend(present, legend_names(points)) if legend else None)


def legend_names(points: pd.DataFrame) -> Mapping[str, str]:
    """Return what labels call each series that says what its shares are of; none where no two differ in that."""
    if "denominator" not in points or not points["denominator"].any():
        return {}
    several = points["dtype"].nunique() > 1
    found: dict[str, list[str]] = {}
    for series, dtype, of in dict.fromkeys(zip(points["series"], points["dtype"], points["denominator"], strict=True)):
        found.setdefault(series, []).extend([f"{of} in {dtype}" if several else of] if of else [])
    return {series: f"{series}{''.join(parts)}" for series, parts in found.items()}


def _colors(order: Iterable[Series]) -> list[alt.ExprRef]:
    """Return a colour for each series: of its implementation, shaded where that stands for several devices."""
    devices: Counter[tuple[str, bool]] = Counter()
    found = []
    for series in order:
        found.append(color_of(series.implementation, devices[series.implementation, series.recorded]))
        devices[series.implementation, series.recorded] += 1
    return found


def dash(points: pd.DataFrame) -> alt.StrokeDash:
    """Return the dash of a dtype; Vega-Lite merges its legend with that of the points."""
    dashes = ([10, 4], [1, 0], [8, 3, 2, 3], [5, 3], [2, 2])  # in the order of DTYPES: fp32, the usual one, is solid
    return alt.StrokeDash("dtype:N", scale=_scale(dashes), legend=_dtype_legend(points))


def shape(points: pd.DataFrame, *, legend: bool) -> alt.Shape:
    """Return the point of a dtype."""
    return alt.Shape("dtype:N", scale=_scale(POINTS), legend=_dtype_legend(points) if legend else None)


def present_dtypes(points: pd.DataFrame) -> list[str]:
    """Return the dtypes of `points` in the order of DTYPES."""
    return [dtype for dtype in DTYPES if dtype in set(points["dtype"])]


def _scale(marks: Sequence[Any]) -> alt.Scale:
    """Return the scale from every dtype to its mark; with more dtypes than marks they repeat."""
    return alt.Scale(domain=list(DTYPES), range=[marks[at % len(marks)] for at in range(len(DTYPES))])


def _series_legend(present: Mapping[str, Series], said: Mapping[str, str]) -> alt.Legend | None:
    """Return a legend in which a recorded series has a hollow symbol and follows the live one of its implementation."""
    if not any(series.recorded for series in present.values()):
        return _legend(list(present), "top", said)
    implementations = [series.implementation for series in present.values()]
    paired = sorted(present, key=lambda name: implementations.index(present[name].implementation))
    labels = {
        name: f"{series.implementation} · {_device_label(series, present.values())}{said.get(name, '')[len(name) :]}"
        for name, series in present.items()
    }
    recorded = json.dumps([name for name, series in present.items() if series.recorded], ensure_ascii=False)
    symbol = alt.expr(f"indexof({recorded}, datum.value) < 0 ? 'circle' : '{RING}'")
    return _legend(paired, "top", said=labels, symbolType=symbol, symbolStrokeWidth=0)


def _dtype_legend(points: pd.DataFrame) -> alt.Legend | None:
    """Return a legend of filled points, without the dash on their outline."""
    return _legend(present_dtypes(points), "bottom", symbolFillColor=NEUTRAL, symbolStrokeWidth=0)


def _legend(
    present: Sequence[str], orient: Literal["top", "bottom"], said: Mapping[str, str] | None = None, **style: Any
) -> alt.Legend | None:
    """Return a legend of what is `present`, each under its own name or the one in `said`; none for a single entry."""
    if len(present) < 2:
        return None
    if said:
        style["labelExpr"] = f"{json.dumps(said, ensure_ascii=False)}[datum.value]"
    longest = max(len((said or {}).get(name, name)) for name in present)
    columns = 4 if longest <= 12 else 2 if longest <= 24 else 1  # what fits a phone side by side
    limit = 290 if columns == 1 else 180
    return alt.Legend(
        title=None, values=list(present), orient=orient, columns=columns, labelLimit=limit, symbolOpacity=1, **style
    )
