"""Colour, dash, point and axes of series: an implementation and a dtype look the same on every chart.

Each implementation has one colour on every chart and page, in light and in dark. Families share their hues: numba-cpu
is orange and brown, numba-cuda violet and red, torch green. The colours of an operation differ by a distance in CIELAB
that tests check, and each has a contrast of 3 with the page. Dashes and points go by the dtype's index in DTYPES. A
legend with a single entry is left out. A recorded series has the colour of the live one of its implementation, and
says in its name that it is recorded; its points are hollow.

Axes have measured sizes only, 1-2-5 ticks on log scales, and SI prefixes with their unit.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import ceil, floor, log2, log10
from typing import Any, Literal, NamedTuple, Protocol
from zlib import crc32

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.json_report import rows
from gpuexplore.core import Origin, Run, common_unit, round_significant
from gpuexplore.core.dtypes import DTYPES, FORMATS

Spec = dict[str, Any]  # of Vega-Lite, or a part of it: what Altair takes ten times as long to make
LAYERED: Spec = {  # a chart as wide as its place, of layers that draw its rows unless they have their own
    "$schema": alt.SCHEMA_URL,
    "config": {"view": {"continuousWidth": 300, "continuousHeight": 300}},
    "width": "container",
}
LABEL_LIMIT = 180
MOST_TICKS = 9
WIDE = 4.0  # ratios that differ by more are read better on a log scale
# A position in pixels or by name: `alt.value` says the same, for which Altair looks through all its classes (4 ms).
x_value: Callable[[float | str], Any] = alt.XValue
y_value: Callable[[float | str], Any] = alt.YValue


def _channel(kind: str, field: str, **settings: object) -> Spec:
    return {"field": field, "type": kind, **settings}


number = partial(_channel, "quantitative")
nominal = partial(_channel, "nominal")


def layer(mark: str, encoding: Spec, more: Spec | None = None, **settings: object) -> Spec:
    """Return a layer of a chart in Vega-Lite; `more`: its own data, or transforms."""
    return {**(more or {}), "mark": {"type": mark, **settings}, "encoding": encoding}


def log_axis(title: str, values: Iterable[float], unit: str) -> Spec:
    """Return a log axis over `values` in `unit`, whose ticks read ``10 µs``, ``100 µs``."""
    ticks = log_ticks(list(values))
    shown = ticks if len(ticks) <= MOST_TICKS else [tick for tick in ticks if log10(tick).is_integer()]
    axis = {"values": shown, "labelExpr": si_label(unit, shown), "labelOverlap": "greedy", "labelLimit": LABEL_LIMIT}
    scale = {"type": "log", "nice": False, "domain": [ticks[0], ticks[-1]]}
    return number("value", title=title, axis=axis, scale=scale)


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


def ratio_axis(title: str, values: Sequence[float]) -> Spec:
    """Return an axis of ratios: from zero, or on a log scale of powers of two when they differ much."""
    if max(values) / min(values) <= WIDE:
        scale: Spec = {"domain": [0, max(values) * 1.1], "nice": True}
        axis: Spec = {"labelExpr": "format(datum.value, '.3~r') + '×'", "tickCount": 6}
        return number("value", title=title, axis=axis, scale=scale)
    label = "format(datum.value, datum.value < 1 ? '.3~r' : ',d') + '×'"
    axis = {"values": powers_of_two(values), "labelExpr": label, "labelLimit": LABEL_LIMIT}
    scale = {"type": "log", "base": 2, "nice": False, "domain": [min(values) / 1.2, max(values) * 1.2]}
    return number("value", title=title, axis=axis, scale=scale)


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


class _Analyzable(Protocol):
    """A run in Python: it can be analyzed."""

    def analyze(self) -> RunAnalysis:
        """Return what follows from its results, compared with the defaults."""


Source = RunAnalysis | _Analyzable


def analysis_of(source: Source) -> RunAnalysis:
    """Return an analysis as it is, or that of a run compared with the defaults.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(source, RunAnalysis):
        return source
    if not hasattr(source, "analyze"):
        raise TypeError(f"a chart takes a run or what run.analyze() returns, not a {type(source).__name__}")
    return source.analyze()


def to_frame(source: Source, run: Run | None = None) -> pd.DataFrame:
    """Return one row per result with the columns of `gpuexplore.analysis.run.json_report`; unknown is missing.

    Args:
        source: of the results.
        run: the run of the store that they are of; None for none.
    """
    return pd.DataFrame(rows(analysis_of(source), run)).convert_dtypes()


COLORS: Mapping[str, tuple[str, str]] = {
    "numpy": ("#0d36a7", "#66bffd"),
    "numba-cpu-naive": ("#5a4300", "#988710"),
    "numba-cpu-reordered": ("#891d0d", "#fea126"),
    "numba-cpu-blocked": ("#ea5b12", "#fce02e"),
    "numba-cpu-vector": ("#9c8e80", "#b4612e"),
    "numba-cpu": ("#c6871c", "#fdc68b"),
    "numba-cuda-naive": ("#a185bf", "#ae606e"),
    "numba-cuda-coalesced": ("#dc6e84", "#e9dbec"),
    "numba-cuda-shared": ("#850b67", "#f74238"),
    "numba-cuda-register": ("#fe2998", "#fd4dc9"),
    "numba-cuda-vector": ("#ef0e4f", "#e5166f"),
    "numba-cuda-warptile": ("#410b1b", "#ff05f2"),
    "numba-cuda-tensorcore": ("#e554da", "#f9a2e3"),
    "numba-cuda-wgmma": ("#2f1be0", "#ae02fd"),
    "numba-cuda-online": ("#b8123c", "#ff6a80"),
    "numba-cuda": ("#9040c0", "#a567da"),
    "torch": ("#00816e", "#4fa98a"),
    "torch-compile": ("#095300", "#258912"),
    "torch-autotune": ("#2ba714", "#2ffe9f"),
    "torch-autocast": ("#00719f", "#ccfa1b"),
    "torch-checkpoint": ("#87994d", "#3bea4a"),
    "torch-accumulate": ("#04a663", "#d7fd9e"),
    "triton": ("#179dbe", "#08eefa"),
    "cupy": ("#30495f", "#6b7987"),
}


SCALE_OF_DTYPES: Spec = {"domain": list(FORMATS)}  # in the colours of the theme


def color_of(implementation: str, shade: int = 0) -> alt.ExprRef:
    """Return the colour of an implementation, whatever the theme of the page.

    Args:
        implementation: its name.
        shade: 0 for its first device, one more for each further one.
    """
    colors = (("#c2185b", "#ff80ab"), ("#8a6d00", "#e0c34d"), ("#6d4c41", "#d7a98c"))
    of_user = colors[crc32(implementation.encode()) % len(colors)]  # by the name: unknown before it is measured
    light, dark = ([int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in COLORS.get(implementation) or of_user)
    red, green, blue = dark
    pale = 0.3 * red + 0.6 * green + 0.1 * blue > 160  # as bright as an eye sees it; it has no range towards white
    shaded = (_shade(light, 0, shade), _shade(dark, 0 if pale else 255, shade))
    return alt.ExprRef("luminance(background) > 0.5 ? '{}' : '{}'".format(*shaded))


def _shade(channels: Sequence[int], end: int, shade: int) -> str:
    shaded = 0.4  # of the way to black or white, for each further device of an implementation
    kept = (1 - shaded) ** shade
    return "#" + "".join(f"{round(end + kept * (channel - end)):02x}" for channel in channels)


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
