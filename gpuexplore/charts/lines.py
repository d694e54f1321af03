"""The form all charts share: a named line, points and an interval per series, over sizes or for one size."""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from math import exp, log
from typing import Any

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.charts.points import TOOLTIPS, with_halo
from gpuexplore.charts.series import (
    FADED,
    LABEL_LIMIT,
    Series,
    Spec,
    color,
    dash,
    legend_names,
    present_dtypes,
    series_name,
    series_of,
    shape,
    x_value,
)
from gpuexplore.core.model import Origin
from gpuexplore.operations.contract import Operation

LABEL_OFFSET = 8  # pixels from the point
HEIGHT = 440  # with legends and axes


def _end_labels(points: pd.DataFrame, y: Spec, *, height: int) -> pd.DataFrame | None:
    """Return a name for each line at its last point, so far apart that none covers another; None where none fit.

    Args:
        points: of the lines.
        y: their axis, with its domain.
        height: of the chart in pixels.
    """
    lines = points.sort_values("order").groupby(["series", "dtype"], sort=False).tail(1)
    names = lines["series"] + (" " + lines["dtype"] if lines["dtype"].nunique() > 1 else "")
    names = names + lines["denominator"] if "denominator" in lines else names
    gap = 13.0  # pixels between the middles of two names
    axes_share = 0.8  # of a chart's height lies between its axes
    longest = 18  # characters; for longer names a legend has more space
    if lines.empty or gap * len(lines) > axes_share * height or max(map(len, names)) > longest:
        return None
    domain, is_log = _domain(y)
    fractions = [_fraction(value, domain, is_log) for value in lines["value"]]
    values = [_value(fraction, domain, is_log) for fraction in _spread(fractions, gap / (axes_share * height))]
    return lines.assign(name=names, value=values)


def _domain(y: Spec) -> tuple[tuple[float, float], bool]:
    low, high = y["scale"]["domain"]
    return (float(low), float(high)), y["scale"].get("type") == "log"


def _fraction(value: float, domain: tuple[float, float], is_log: bool) -> float:
    low, high = map(log, domain) if is_log else domain
    return ((log(value) if is_log else value) - low) / ((high - low) or 1.0)


def _value(fraction: float, domain: tuple[float, float], is_log: bool) -> float:
    low, high = map(log, domain) if is_log else domain
    position = low + fraction * (high - low)
    return exp(position) if is_log else position


def _spread(fractions: Sequence[float], gap: float) -> list[float]:
    """Return `fractions` moved as little as it takes until neighbours are `gap` apart and all lie between 0 and 1."""
    order = sorted(range(len(fractions)), key=fractions.__getitem__)
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while len(groups) > 1 and _bottom(groups[-1], fractions, gap) < _bottom(groups[-2], fractions, gap) + gap * len(
            groups[-2]
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    found = [0.0] * len(fractions)
    for group in groups:
        bottom = _bottom(group, fractions, gap)
        for step, index in enumerate(group):
            found[index] = bottom + gap * step
    return found


def _bottom(group: Sequence[int], fractions: Sequence[float], gap: float) -> float:
    """Return where the lowest name of a group lies whose middle is that of its points, within the axes."""
    middle = sum(fractions[index] for index in group) / len(group)
    height = gap * (len(group) - 1)
    return min(max(middle - height / 2, 0.0), 1.0 - height)


def lines(
    points: pd.DataFrame,
    analysis: RunAnalysis,
    *,
    y: Spec,
    description: str,
    rules: Sequence[tuple[alt.Chart, ...]] = (),
) -> alt.LayerChart:
    """Return the chart of `points` with the axis `y`; `rules` lie below the lines, their labels above.

    Points under another condition are short strokes in the colour of their series; those of a first pass or of one
    sample are hollow. Lines over sizes are named at their ends, next to what is recorded in a legend. Points that
    `in_panel` leaves to other panels only count for the axes.
    """
    order = _series_order(analysis.shown)
    shown = points
    points = points[~points["elsewhere"]] if "elsewhere" in points else points
    contrasts = points[points["condition"] != ""]
    points = points[points["condition"] == ""]
    recorded = _is_recorded(points)
    over_sizes = shown["order"].nunique() > 1
    mixed = bool(recorded.any()) and not recorded.all()
    ends = _end_labels(points, y, height=HEIGHT) if over_sizes and not mixed else None
    by_series = ends is None and (over_sizes or points["series"].nunique() < 2 or bool(recorded.any()))
    margin = 0
    if ends is not None:
        character = 6.6  # pixels, of the longest name
        margin = round(character * max(map(len, ends["name"]))) + LABEL_OFFSET + 4
    x = _size_axis(shown, analysis.shown[0].operation, margin=margin) if over_sizes else _one_size_axis(points, order)
    base = alt.Chart(points).encode(x=x, y=y, color=color(points, order, legend=by_series))
    picks = _picks(points, by_series=by_series)
    marks = _marks(base, points, picks, over_sizes=over_sizes)
    if mixed:
        marks = [*(mark.properties(data=points[~recorded]) for mark in marks), *_lighter(marks, points[recorded])]
    marks = [part for mark in marks for part in _with_hollow_points(mark)]
    if not contrasts.empty:
        marks.append(_strokes(base, contrasts, picks))
    if ends is not None:
        text = alt.Chart(ends).mark_text(align="left", dx=LABEL_OFFSET, fontSize=12, tooltip=None)
        named = text.encode(x=x, y=y, color=color(points, order, legend=False), text=alt.Text("name:N"))
        marks += with_halo(named)
    if margin:  # a line through the names would strike them out
        end: Any = alt.XValue(alt.ExprRef(f"width - {margin}"))  # type: ignore[no-untyped-call]
        rules = [(line.encode(x=x_value(0), x2=end), *labels) for line, *labels in rules]
    layers = [*(line for line, *_ in rules), *marks, *chain.from_iterable(labels for _, *labels in rules)]
    for index, layer in enumerate(layers):
        layer.name = f"layer_{index}"  # else Altair names it by a hash of its data, as pandas would print them
    layers[0] = layers[0].add_params(*picks)  # here and not on the whole: each change of that copies all layers
    height = 510 if recorded.any() else HEIGHT  # with the entries of recorded series
    return alt.LayerChart(layer=layers, width="container", height=height, description=description)


def _series_order(shown: Sequence[AnalyzedResult]) -> dict[str, Series]:
    """Return every series of the operation by its name, the default ones first, device by device."""
    if not shown:
        return {}
    rows = sorted(shown[0].operation.implementations, key=lambda row: row.rung or row.optional)
    names = dict.fromkeys([*(row.name for row in rows), *(analyzed.case.implementation for analyzed in shown)])
    asked = {series_of(analyzed) for analyzed in shown}
    devices = dict.fromkeys((analyzed.device_label, analyzed.origin) for analyzed in shown)
    every = [Series(name, *device) for device in devices for name in names]
    live = [series for series in every if not series.recorded]
    if len({series.device for series in live}) > 1:
        live = [series for series in live if series in asked]
    if not live:
        live = [series for series in every if len(devices) == 1 or series in asked]
    recorded = [series for series in every if series.recorded and series in asked and series not in live]
    return {series_name(series, shown): series for series in (*live, *recorded)}


def _size_axis(points: pd.DataFrame, operation: Operation, *, margin: int = 0) -> alt.X:
    """Return the x axis: sizes on a log scale, else whole shapes in the order of their work.

    Args:
        margin: pixels that are left free at its right end, for the names of lines.
    """
    if points["size"].isna().any():
        order = points.sort_values("order")["shape"].unique().tolist()
        return alt.X("shape:O", sort=order, title=" × ".join(operation.axes), axis=_axis_of_names(order))
    sizes = sorted({int(point) for point in points["size"]})
    is_round = max(sizes) >= 10_000 and all(size % 100 == 0 for size in sizes)  # 10k, and not 4,096
    axis = alt.Axis(
        values=sizes, format="~s" if is_round else ",d", grid=False, labelOverlap="greedy", labelFlush=False
    )
    end = alt.ExprRef(f"width - {margin}") if margin else alt.Undefined
    scale = alt.Scale(type="log", nice=False, padding=14, rangeMax=end)
    shapes = {size: dict(operation.shape_of_size(size).axes) for size in operation.default_sizes[-2:]}
    # the axes that are as long as a size says, e.g. ``m = k = n``, or for a convolution ``h = w``
    equal = [name for name in operation.axes if all(shapes[size][name] == size for size in shapes)]
    return alt.X("size:Q", title=" = ".join(equal) or "size", axis=axis, scale=scale)


def _axis_of_names(names: Sequence[str], **more: Any) -> alt.Axis:
    """Return the axis of names below a chart: side by side where they fit its width, else slanted."""
    fits = f"width > {round(max((6.6 * len(name) for name in names), default=0) + 12) * len(names)}"  # pixels
    return alt.Axis(
        labelAngle=alt.ExprRef(f"{fits} ? 0 : -40"),
        labelAlign=alt.ExprRef(f"{fits} ? 'center' : 'right'"),
        labelBaseline=alt.ExprRef(f"{fits} ? 'top' : 'middle'"),
        labelLimit=LABEL_LIMIT,
        labelOverlap=False,
        **more,
    )


def _is_recorded(points: pd.DataFrame) -> pd.Series:
    """Return which of the points were recorded at another time or on another machine."""
    return (points["origin"] == Origin.RECORDED.value).astype(bool)


def _marks(
    base: alt.Chart, points: pd.DataFrame, picks: Sequence[alt.Parameter], *, over_sizes: bool
) -> list[alt.Chart]:
    several = len(present_dtypes(points)) > 1
    side_by_side = not over_sizes and points["series"].nunique() > 1
    if side_by_side and several:
        base = base.encode(xOffset=alt.XOffset("dtype:N", sort=present_dtypes(points)))
    interval = base.mark_rule(strokeWidth=2, tooltip=None, clip=True).encode(
        y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), opacity=_opacity(picks, 0.45)
    )
    line = base.mark_line(strokeWidth=2, tooltip=None).encode(opacity=_opacity(picks, 1))
    words = [alt.Tooltip(f"{column}:N", title=title) for column, title in TOOLTIPS.items() if column in points]
    point = base.mark_point(filled=True, size=70).encode(opacity=_opacity(picks, 1), tooltip=words)
    if several:
        line = line.encode(strokeDash=dash(points))
        point = point.encode(shape=shape(points, legend=over_sizes or side_by_side))
    return [interval, line, point] if over_sizes else [interval, point]


def _lighter(marks: Sequence[alt.Chart], points: pd.DataFrame) -> list[alt.Chart]:
    """Return `marks` as they look for recorded points: thin lines and hollow points, in the legends of the others."""
    lighter = [mark.copy() for mark in marks]
    thin = 1.2  # pixels, of what is recorded; live lines have 2
    for mark in lighter:
        mark.data = points
        mark.mark.strokeWidth = thin
        if mark.mark.type == "point":
            mark.mark.filled = False
        _leave_legends_out(mark)
    return lighter


def _with_hollow_points(mark: alt.Chart) -> list[alt.Chart]:
    """Return `mark`, and where it draws points of which some are hollow, those in a layer of their own."""
    is_hollow = mark.data["hollow"].astype(bool)
    if mark.mark.type != "point" or not is_hollow.any():
        return [mark]
    hollow = mark.copy()
    hollow.data = mark.data[is_hollow]
    hollow.mark.filled = False
    if is_hollow.all():
        return [hollow]
    _leave_legends_out(hollow)
    return [mark.properties(data=mark.data[~is_hollow]), hollow]


def _leave_legends_out(mark: alt.Chart) -> None:
    """Leave the legends to the other layers: hollow points there would hide the symbols of the dtypes."""
    for channel in (mark.encoding.color, mark.encoding.shape, mark.encoding.strokeDash):
        if channel is not alt.Undefined:
            channel.legend = None


def _strokes(base: alt.Chart, contrasts: pd.DataFrame, picks: Sequence[alt.Parameter]) -> alt.Chart:
    words = [alt.Tooltip(f"{column}:N", title=TOOLTIPS[column]) for column in ("case", "shape", "time")]
    return (
        base.mark_tick(orient="horizontal", thickness=2, size=16)
        .encode(opacity=_opacity(picks, 1), tooltip=words)
        .properties(data=contrasts)
    )


def _one_size_axis(points: pd.DataFrame, order: Iterable[str]) -> alt.X:
    """Return the axis for a single size: the series side by side, or the dtypes of a single series."""
    title = next(iter(points["shape"]), "")
    column, names = ("series", list(order)) if points["series"].nunique() > 1 else ("dtype", present_dtypes(points))
    crowded = column == "series" and bool(_is_recorded(points).any())  # the legend has space for such names
    said = legend_names(points)
    words = alt.Undefined if column != "series" or not said else f"{json.dumps(said, ensure_ascii=False)}[datum.value]"
    drawn = points[column].unique()
    shown = [said.get(name, name) for name in names if name in drawn]
    axis = _axis_of_names(shown, labels=not crowded, ticks=not crowded, labelExpr=words)
    return alt.X(f"{column}:N", sort=names, title=title, axis=axis)


def _picks(points: pd.DataFrame, *, by_series: bool) -> list[alt.Parameter]:
    """Return a selection for each legend there is: a click shows one entry and fades the others."""
    several = points["series"].nunique() > 1
    over_sizes = points["order"].nunique() > 1
    fields = ["series"] if by_series and several else []
    if len(present_dtypes(points)) > 1 and (several or over_sizes):
        fields.append("dtype")
    # The names are fixed: a changing one would redraw a polled chart.
    return [alt.selection_point(name=f"pick_{field}", fields=[field], bind="legend") for field in fields]


def _opacity(picks: Sequence[alt.Parameter], full: float) -> alt.OpacityValue:
    """Return the opacity of a mark: `full` when it is in every legend's selection."""
    if not picks:
        return alt.OpacityValue(full)
    faded: Any = alt.when(*picks).then(alt.value(full)).otherwise(alt.value(FADED))
    return alt.OpacityValue(**faded)
