"""The atlas: measured points over predicted lines with their bands, against the work of a call.

Filled points were measured, by whom their shape says; dashed lines and bands are predictions. Colours are GPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import log10
from typing import Any, Literal

import altair as alt
import pandas as pd

from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts import NEUTRAL, POINTS, log_ticks, si_label
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_interval, format_percent, format_seconds
from gpuexplore.features.atlas.analysis import AtlasPoint
from gpuexplore.features.atlas.analysis.answers import LinePoint
from gpuexplore.operations import operation_named

PICKED = "picked"  # the selection of the id of a clicked point
PREDICTED = "predicted, with its 90 % band"
LABEL_LIMIT = alt.ExprRef("min(300, max(width - 24, 120))")  # what fits a phone
POINT_TOOLTIPS = {
    "gpu": "GPU",
    "case": "Case",
    "time": "Time",
    "rate": "Rate",
    "share": "Of the peak",
    "source": "Source",
    "licence": "Licence",
    "timed": "Timed",
}
LINE_TOOLTIPS = {
    "gpu": "Predicted for",
    "case": "Case",
    "time": "Time",
    "interval": "90 % interval",
    "rate": "Rate",
    "share": "Of the peak",
}
Show = Literal["time", "rate", "share"]


@dataclass(frozen=True, slots=True)
class AtlasSeries:
    """One colour of the chart: a dtype on a GPU.

    Attributes:
        name: for the legend.
        spec_key: the GPU's row of the table.
        dtype: a format of FORMATS.
        line: predicted calls, from little work to much.
    """

    name: str
    spec_key: str
    dtype: str
    line: tuple[LinePoint, ...] = ()


SHOWN: Mapping[Show, str] = {"time": "Time", "rate": "Rate", "share": "Share of the peak"}


def shown_at(point: AtlasPoint, show: Show) -> float | None:
    """Return what is drawn upwards at a measured point; None where it is unknown."""
    return {"time": point.time_s, "rate": point.rate, "share": point.share}[show]


def atlas(
    operation: str, series: Sequence[AtlasSeries], points: Sequence[AtlasPoint], show: Show, *, at: int | None = None
) -> alt.LayerChart:
    """Return measured points over predicted lines; a click on a point selects its id under `PICKED`.

    Args:
        operation: of all of them, by its name.
        series: in the order of their colours, each with its line.
        points: of these series.
        show: what is drawn upwards, a key of SHOWN.
        at: work that a vertical rule marks; None for none.
    """
    measured = _points(series, points, show)
    rows = [row for each in series for point in each.line if (row := _line_row(each, point, show)) is not None]
    lines = pd.DataFrame(rows, columns=["series", "work", "value", "low", "high", *LINE_TOOLTIPS])
    values = [*measured["value"], *lines["low"], *lines["high"]]
    x = _x(operation, [*measured["work"], *lines["work"], *([at] if at else [])])
    y = _y(operation, show, values)
    names = [each.name for each in series]
    on_phones = 1 if max(map(len, names), default=0) > 17 else 2  # two names of 17 characters fit side by side there
    legend = alt.Legend(
        title=None,
        orient="top",
        columns=alt.ExprRef(f"width < 420 ? {on_phones} : 4"),
        labelLimit=LABEL_LIMIT,
        symbolType="circle",
        symbolOpacity=1,
        symbolStrokeWidth=0,
    )
    color = alt.Color("series:N", scale=alt.Scale(domain=names), legend=legend)
    layers = [
        *([_rule(at, x)] if at else []),
        *_predicted(lines, x, y, color),
        *_measured(measured, x, y, color),
    ]
    said = _described(operation, series, points, show)
    return alt.LayerChart(layer=layers, width="container", height=600, description=said)


def point_id(point: AtlasPoint) -> str:
    """Return what a link calls a point: the same as long as its row is."""
    identity = (
        point.spec_key,
        point.operation,
        point.dtype,
        str(point.shape),
        point.url or point.run_id,
        point.conditions,
    )
    return sha256("|".join(map(str, (*identity, point.time_s))).encode()).hexdigest()[:10]


def source_label(point: AtlasPoint) -> str:
    """Return who measured a point, for a reader: ``published by NeuSight``, ``recorded by gpuexplore``."""
    return f"{point.origin} by {point.citation.name}"


def _described(operation: str, series: Sequence[AtlasSeries], points: Sequence[AtlasPoint], show: Show) -> str:
    """Return the alternative text: how many points there are of whom, and the best or fastest of each GPU."""
    title = operation_named(operation).title
    figures = []
    for each in series:
        own = [point for point in points if (point.spec_key, point.dtype) == (each.spec_key, each.dtype)]
        top = max(own, key=lambda point: point.rate, default=None)
        said = f"{len(own)} points, at most {rate_words(operation, top.rate)}" if top else "predicted only"
        figures.append(f"{each.name}: {said}")
    sources = ", ".join(dict.fromkeys(map(source_label, points))) or "none"
    what = SHOWN[show].lower()
    return (
        f"{title}: {what} against the work of a call. {'; '.join(figures) or 'No GPU'}. Measured points: {sources}. "
        "Dashed lines with bands are predictions."
    )


def rate_words(operation: str, rate: float | None) -> str:
    """Return a rate of an operation with its unit."""
    return format_flop_per_s(rate) if operation_named(operation).is_matrix_product else format_bytes_per_s(rate)


def _x(operation: str, works: Sequence[float]) -> alt.X:
    product = operation_named(operation).is_matrix_product
    ticks = _decades(works)
    axis = alt.Axis(values=ticks, labelExpr=si_label("FLOP" if product else "B"), grid=False, labelOverlap="greedy")
    low, high = (min(works), max(works)) if works else (1.0, 10.0)
    scale = alt.Scale(type="log", nice=False, domain=[low, high], padding=12)
    title = "FLOPs of a call" if product else "Bytes that a call moves at least"
    return alt.X("work:Q", title=title, axis=axis, scale=scale)


def _y(operation: str, show: Show, values: Sequence[float]) -> alt.Y:
    if show == "share":
        domain = [0, max([1.0, *values]) * 1.02]
        axis = alt.Axis(format=".0%", tickCount=6)
        return alt.Y("value:Q", title="Share of the peak", axis=axis, scale=alt.Scale(domain=domain, nice=False))
    product = operation_named(operation).is_matrix_product
    unit = "s" if show == "time" else "FLOP/s" if product else "B/s"
    title = "Time of a call" if show == "time" else "Compute rate" if product else "Memory rate"
    ticks = log_ticks(values)
    shown = ticks if len(ticks) <= 8 else _decades(values)
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    scale = alt.Scale(type="log", nice=False, domain=[low / 1.15, high * 1.15])
    return alt.Y("value:Q", title=title, axis=alt.Axis(values=shown, labelExpr=si_label(unit)), scale=scale)


def _decades(values: Sequence[float]) -> list[float]:
    """Return powers of ten within the ends of `values`, at most 8."""
    decades = [tick for tick in log_ticks(values) if log10(tick).is_integer()]
    return decades[:: max(1, -(-len(decades) // 8))]


def _rule(at: int, x: alt.X) -> alt.Chart:
    frame = pd.DataFrame({"work": [at]})
    return alt.Chart(frame).mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.2).encode(x=x)


def _predicted(frame: pd.DataFrame, x: alt.X, y: alt.Y, color: alt.Color) -> list[alt.Chart]:
    """Return the bands, and over them the lines."""
    base = alt.Chart(frame).encode(x=x, color=color)
    lower = y.copy()
    lower.shorthand = "low:Q"
    band = base.mark_area(opacity=0.1, tooltip=None, aria=False).encode(y=lower, y2=alt.Y2("high:Q"))
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in LINE_TOOLTIPS.items()]
    return [band, base.mark_line(strokeWidth=2, strokeDash=[6, 3]).encode(y=y, tooltip=words)]


def _measured(frame: pd.DataFrame, x: alt.X, y: alt.Y, color: alt.Color) -> list[alt.Chart]:
    sources = list(dict.fromkeys(frame["source"]))
    picked = alt.selection_point(name=PICKED, fields=["id"], on="click", empty=False)
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=1,
        labelLimit=LABEL_LIMIT,
        symbolFillColor=NEUTRAL,
        symbolStrokeWidth=0,
        symbolOpacity=1,
    )
    order = ("circle", *(name for name in POINTS if name != "circle"))
    dashes = "M-1.3,-0.2H-0.25V0.2H-1.3ZM0.25,-0.2H1.3V0.2H0.25Z"  # an SVG path: the symbol of a prediction
    scale = alt.Scale(
        domain=[*sources, PREDICTED],
        range=[*(order[index % len(order)] for index in range(len(sources))), dashes],
    )
    shape = alt.Shape("source:N", scale=scale, legend=legend)
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in POINT_TOOLTIPS.items()]
    ring: Any = alt.when(picked).then(alt.value(174)).otherwise(alt.value(58))
    points = (
        alt.Chart(frame)
        .mark_point(filled=True, cursor="pointer", stroke=alt.expr("background"), strokeWidth=0.6, opacity=0.82)
        .encode(x=x, y=y, color=color, shape=shape, size=alt.SizeValue(**ring), tooltip=words)
        .add_params(picked)
    )
    return [points]


def _points(series: Sequence[AtlasSeries], points: Sequence[AtlasPoint], show: Show) -> pd.DataFrame:
    names = {(each.spec_key, each.dtype): each.name for each in series}
    rows = [
        {
            "id": point_id(point),
            "series": names[point.spec_key, point.dtype],
            "work": point.work,
            "value": value,
            "gpu": point.device.name,
            "case": f"{shape_label(point.shape)} in {point.dtype}",
            "time": format_seconds(point.time_s),
            "rate": rate_words(point.operation, point.rate),
            "share": format_percent(point.share) if point.share is not None else "unknown",
            "source": source_label(point),
            "licence": point.citation.licence,
            "timed": point.conditions,
        }
        for point in points
        if (value := shown_at(point, show)) is not None
    ]
    return pd.DataFrame(rows, columns=["id", "series", "work", "value", *POINT_TOOLTIPS])


def _line_row(series: AtlasSeries, point: LinePoint, show: Show) -> dict[str, object] | None:
    found = point.prediction
    if found.time_s is None or found.interval_s is None:
        return None
    times_s = (found.time_s, *found.interval_s)
    value, *ends = times_s if show == "time" else map(point.rate if show == "rate" else point.share, times_s)
    if value is None:
        return None
    low, high = sorted(end for end in ends if end is not None)
    share = point.share(found.time_s)
    return {
        "series": series.name,
        "work": point.work,
        "value": value,
        "low": low,
        "high": high,
        "gpu": found.device.name,
        "case": f"{shape_label(found.case.shape)} in {series.dtype}",
        "time": format_seconds(found.time_s),
        "interval": format_interval(found.interval_s, format_seconds),
        "rate": rate_words(found.case.operation, point.rate(found.time_s)),
        "share": format_percent(share) if share is not None else "unknown",
    }
