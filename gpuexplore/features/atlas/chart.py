"""The atlas: measured points over predicted lines with their bands, against the work of a call.

Filled points were measured, by whom their shape says; dashed lines and bands are predictions. Colours are GPUs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import log10
from typing import Literal

from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts import LAYERED, NEUTRAL, POINTS, Spec, layer, log_ticks, nominal, number, si_label
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_interval, format_percent, format_seconds
from gpuexplore.features.atlas.analysis import AtlasPoint
from gpuexplore.features.atlas.analysis.answers import LinePoint
from gpuexplore.operations import operation_named

PICKED = "picked"  # the selection of the id of a clicked point
PREDICTED = "predicted, with its 90 % band"
LABEL_LIMIT = {"expr": "min(300, max(width - 24, 120))"}  # what fits a phone
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
) -> Spec:
    """Return measured points over predicted lines; a click on a point selects its id under `PICKED`.

    Args:
        operation: of all of them, by its name.
        series: in the order of their colours, each with its line.
        points: of these series.
        show: what is drawn upwards, a key of SHOWN.
        at: work that a vertical rule marks; None for none.
    """
    measured = _points(series, points, show)
    lines = [row for each in series for point in each.line if (row := _line_row(each, point, show)) is not None]
    values = [*(row["value"] for row in measured), *(row[end] for row in lines for end in ("low", "high"))]
    x = _x(operation, [*(row["work"] for row in (*measured, *lines)), *([at] if at else [])])
    y = _y(operation, show, values)
    names = [each.name for each in series]
    on_phones = 1 if max(map(len, names), default=0) > 17 else 2  # two names of 17 characters fit side by side there
    legend = {"title": None, "orient": "top", "columns": {"expr": f"width < 420 ? {on_phones} : 4"}}
    symbols = {"labelLimit": LABEL_LIMIT, "symbolType": "circle", "symbolOpacity": 1, "symbolStrokeWidth": 0}
    base = {"x": x, "y": y, "color": nominal("series", scale={"domain": names}, legend=legend | symbols)}
    layers = [*([_rule(at, x)] if at else []), *_predicted(lines, base), _measured(measured, base)]
    select = {"type": "point", "fields": ["id"], "on": "click"}
    return {
        **LAYERED,
        "layer": layers,
        "params": [{"name": PICKED, "select": select, "views": [layers[-1]["name"]]}],
        "height": 600,
        "description": _described(operation, series, points, show),
    }


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


def _x(operation: str, works: Sequence[float]) -> Spec:
    product = operation_named(operation).is_matrix_product
    axis: Spec = {"values": _decades(works), "labelExpr": si_label("FLOP" if product else "B")}
    axis |= {"grid": False, "labelOverlap": "greedy"}
    domain = [min(works), max(works)] if works else [1.0, 10.0]
    scale = {"type": "log", "nice": False, "domain": domain, "padding": 12}
    title = "FLOPs of a call" if product else "Bytes that a call moves at least"
    return number("work", title=title, axis=axis, scale=scale)


def _y(operation: str, show: Show, values: Sequence[float]) -> Spec:
    if show == "share":
        whole = {"domain": [0, max([1.0, *values]) * 1.02], "nice": False}
        return number("value", title="Share of the peak", axis={"format": ".0%", "tickCount": 6}, scale=whole)
    product = operation_named(operation).is_matrix_product
    unit = "s" if show == "time" else "FLOP/s" if product else "B/s"
    title = "Time of a call" if show == "time" else "Compute rate" if product else "Memory rate"
    ticks = log_ticks(values)
    shown = ticks if len(ticks) <= 8 else _decades(values)
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    scale = {"type": "log", "nice": False, "domain": [low / 1.15, high * 1.15]}
    return number("value", title=title, axis={"values": shown, "labelExpr": si_label(unit)}, scale=scale)


def _decades(values: Sequence[float]) -> list[float]:
    """Return powers of ten within the ends of `values`, at most 8."""
    decades = [tick for tick in log_ticks(values) if log10(tick).is_integer()]
    return decades[:: max(1, -(-len(decades) // 8))]


def _rule(at: int, x: Spec) -> Spec:
    rows = {"data": {"values": [{"work": at}]}}
    return layer("rule", {"x": x}, rows, color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.2)


def _predicted(lines: Sequence[Spec], base: Spec) -> list[Spec]:
    """Return the bands, and over them the lines."""
    band = {**base, "y": {**base["y"], "field": "low"}, "y2": {"field": "high"}}
    line = {**base, "tooltip": [nominal(name, title=title) for name, title in LINE_TOOLTIPS.items()]}
    rows = {"data": {"values": lines}}
    return [
        layer("area", band, rows, opacity=0.1, tooltip=None, aria=False),
        layer("line", line, rows, strokeWidth=2, strokeDash=[6, 3]),
    ]


def _measured(points: Sequence[Spec], base: Spec) -> Spec:
    sources = list(dict.fromkeys(point["source"] for point in points))
    legend: Spec = {"title": None, "orient": "bottom", "columns": 1, "labelLimit": LABEL_LIMIT}
    legend |= {"symbolFillColor": NEUTRAL, "symbolStrokeWidth": 0, "symbolOpacity": 1}
    order = ("circle", *(name for name in POINTS if name != "circle"))
    dashes = "M-1.3,-0.2H-0.25V0.2H-1.3ZM0.25,-0.2H1.3V0.2H0.25Z"  # an SVG path: the symbol of a prediction
    marks = [*(order[index % len(order)] for index in range(len(sources))), dashes]
    encoding = {
        **base,
        "shape": nominal("source", scale={"domain": [*sources, PREDICTED], "range": marks}, legend=legend),
        "size": {"condition": {"param": PICKED, "empty": False, "value": 174}, "value": 58},
        "tooltip": [nominal(name, title=title) for name, title in POINT_TOOLTIPS.items()],
    }
    style = {"cursor": "pointer", "stroke": {"expr": "background"}, "strokeWidth": 0.6, "opacity": 0.82}
    named = {"name": "measured", "data": {"values": points}}
    return layer("point", encoding, named, filled=True, **style)


def _points(series: Sequence[AtlasSeries], points: Sequence[AtlasPoint], show: Show) -> list[Spec]:
    names = {(each.spec_key, each.dtype): each.name for each in series}
    return [
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


def _line_row(series: AtlasSeries, point: LinePoint, show: Show) -> Spec | None:
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
