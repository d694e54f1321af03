"""Formats side by side: time, speedup, speed against error, and the same across devices.

What was measured here is drawn filled, everything else hollow, predictions with their interval; every label says which.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import log10

from gpuexplore.analysis.prediction import CALLS_WORDS, UncertainValue
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.what_if.summary import EnteredResult
from gpuexplore.analysis.what_if.what_if import WhatIf
from gpuexplore.charts.points import with_halo
from gpuexplore.charts.series import (
    LAYERED,
    NEUTRAL,
    SCALE_OF_DTYPES,
    Spec,
    layer,
    log_ticks,
    nominal,
    number,
    ratio_axis,
    si_label,
)
from gpuexplore.core import Origin, format_flop_per_s, format_interval, format_percent, format_ratio, format_seconds
from gpuexplore.core.dtypes import FORMATS

ROW_HEIGHT = 48
AXIS_HEIGHT = 75  # pixels, with the axis' title: what is left has to fit a label above each mark
TOOLTIPS = {
    "device": "Device",
    "dtype": "Dtype",
    "value_text": "Value",
    "interval": "Interval",
    "origin": "From",
    "basis": "Basis",
}
HERE = f"datum.origin == '{Origin.LIVE.label}'"
ORIGINS = (Origin.LIVE, Origin.RECORDED, Origin.ENTERED, Origin.PREDICTED)
SHAPES = {"domain": [origin.label for origin in ORIGINS], "range": ["circle", "square", "diamond", "circle"]}
_BETWEEN = {"x": number("low"), "x2": {"field": "high"}}  # the ends of an interval

Words = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """A quantity that is compared across devices.

    Attributes:
        label: a word for it.
        title: of the axis.
        of: its value in a row; None where it is unknown.
        words: formats a value.
        unit: of the axis; empty where the title has it.
        missing: why it can be unknown.
    """

    label: str
    title: str
    of: Callable[[WhatIf], UncertainValue | None]
    words: Words
    unit: str
    missing: str


def what_if_times(rows: Sequence[WhatIf]) -> Spec:
    """Return the seconds of the workload in each format on one device, on a log scale; the rows are its formats."""
    points = [_drawn(row, row.time, format_seconds) for row in rows]
    title = _of_calls("Time", rows)
    return _listed(points, _log_x(title, _ends(points), "s"), _describe(title, points))


def what_if_speedups(rows: Sequence[WhatIf], baseline: str) -> Spec:
    """Return the speedup of each format over `baseline` on one device as bars from zero."""
    points = [_drawn(row, row.speedup, format_ratio) for row in rows]
    title = f"Speedup over {baseline}"
    axis = {"labelExpr": "format(datum.value, '~r') + '×'", "tickCount": 5}
    x = number("value", title=title, axis=axis, scale={"domain": [0, max([1.0, *_ends(points)]) * 1.02]})
    unity = {"data": {"values": [{"value": 1}]}}
    rule = layer("rule", {"x": number("value")}, unity, color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5)
    return _listed(points, x, _describe(title, points), bars=True, under=[rule])


def trade_off(rows: Sequence[WhatIf], baseline: str) -> Spec:
    """Return speedup against error: up is faster, left more accurate; a line joins what nothing else beats in both."""
    found = _known(_drawn(row, row.speedup, format_ratio) for row in rows)
    points = [point for point in found if (point["error"] or 0) > 0]  # a log scale has no position for an exact copy
    errors = [point["error"] for point in points]
    on_axis = errors or [1.0]
    ticks = [tick for tick in log_ticks(errors) if f"{tick:e}".startswith("1.0")] if errors else []
    x = number(
        "error",
        title="Error relative to fp64",
        axis={"values": ticks[:: max(1, len(ticks) // 6)], "format": ".0e", "grid": False},
        scale={"type": "log", "nice": False, "padding": 46, "domain": [min(on_axis), max(on_axis)]},  # room for a name
    )
    y = ratio_axis(f"Speedup over {baseline}", [1.0, *_ends(points)])
    base = {"x": x, "y": y, "color": nominal("dtype", scale=SCALE_OF_DTYPES, legend=None)}
    ends = {**base, "y": number("low"), "y2": {"field": "high"}}
    unbeaten = _frontier(points)
    front = {"data": {"values": unbeaten}}
    is_left = _name_is_left(points)
    names = [
        part
        for left in (True, False)
        for part in with_halo(
            layer(
                "text",
                {**base, "text": nominal("dtype")},
                {"data": {"values": [point for point, each in zip(points, is_left, strict=True) if each == left]}},
                align="right" if left else "left",
                dx=-9 if left else 9,
                dy=-9,
                fontSize=13,
                fontWeight=600,
            )
        )
    ]
    layers = [
        layer("line", {"x": x, "y": y}, front, strokeDash=[5, 4], strokeWidth=1.5, color=NEUTRAL, tooltip=None),
        layer("rule", ends, strokeWidth=2, opacity=0.5, tooltip=None),
        *_points(base),
        *names,
    ]
    figures = [f"{point['dtype']} {point['value_text']} at an error of {point['error']:.1e}" for point in points]
    best = ", ".join(point["dtype"] for point in unbeaten) or "none"
    drawn = "; ".join(figures) or "nothing to draw"
    said = f"Speedup over {baseline} against error: {drawn}. Unbeaten: {best}."
    return {**LAYERED, "data": {"values": points}, "layer": layers, "height": 330, "description": said}


def _name_is_left(drawn: Sequence[Spec]) -> list[bool]:
    """Return of each point whether its name stands left of it, as on a phone another point's is at its right."""
    points = [(log10(point["error"]), log10(point["value"])) for point in drawn]
    width, height = (max(axis) - min(axis) for axis in zip(*points, strict=True)) if points else (0.0, 0.0)
    return [
        any(0 < right - x < 0.2 * width and abs(top - y) < 0.08 * height for right, top in points) for x, y in points
    ]


def across_devices(rows: Sequence[WhatIf], quantity: ComparedQuantity) -> Spec:
    """Return a quantity of each format on each device on a log scale, devices one below the other."""
    points = _known(_drawn(row, quantity.of(row), quantity.words) for row in rows)
    names = list(dict.fromkeys(point["device"] for point in points))
    shown = [name for name in FORMATS if any(point["dtype"] == name for point in points)]
    title = _of_calls(quantity.title, rows)
    axis = {"labelLimit": 150, "labelFlush": False}
    legend = {"title": None, "orient": "top", "values": shown, "columns": 3, "symbolOpacity": 1}
    base = {
        "x": _log_x(title, _ends(points), quantity.unit),
        "y": nominal("device", sort=names, title=None, axis=axis, scale={"domain": names}),
        "yOffset": nominal("dtype", sort=shown),
        "color": nominal("dtype", scale=SCALE_OF_DTYPES, legend=legend),
    }
    whisker = layer("rule", {**base, **_BETWEEN}, strokeWidth=2, opacity=0.5, tooltip=None)
    row_height = 17  # of one format of one device
    return {
        **LAYERED,
        "data": {"values": points},
        "layer": [whisker, *_points(base, size=60)],
        "height": max(1, len(names)) * (len(shown) * row_height + 14) + 40,
        "description": _describe_devices(title, points),
    }


def _of_calls(title: str, rows: Sequence[WhatIf]) -> str:
    """Return the title of what follows from times, with the kind of calls that those of GPUs are of where it is one."""
    kinds = {row.calls for row in rows if row.time and row.calls}
    return f"{title}, {CALLS_WORDS[kinds.pop()]}" if len(kinds) == 1 else title


def _known(points: Iterable[Spec]) -> list[Spec]:
    return [point for point in points if point["value"] is not None]


def _ends(points: Iterable[Spec]) -> list[float]:
    """Return the lower ends of the intervals, and the upper ones."""
    known = _known(points)
    return [point[end] for end in ("low", "high") for point in known]


def _frontier(points: Sequence[Spec]) -> list[Spec]:
    """Return the points that no other beats in both error and speed, from the most accurate to the fastest."""
    kept: list[Spec] = []
    for point in sorted(points, key=lambda point: (point["error"], -point["value"])):
        if not kept or point["value"] > kept[-1]["value"]:
            kept.append(point)
    return kept


def _listed(
    points: Sequence[Spec], x: Spec, description: str, *, bars: bool = False, under: Sequence[Spec] = ()
) -> Spec:
    """Return a row for each format: its mark and interval, and above them at the right what they say."""
    names = [point["row"] for point in points]
    axis = {"labelFontSize": 13, "labelFlush": False}
    y = nominal("row", sort=names, title=None, scale={"domain": names}, axis=axis)
    base = {"x": x, "y": y, "color": nominal("dtype", scale=SCALE_OF_DTYPES, legend=None)}
    whisker = layer("rule", {**base, **_BETWEEN}, strokeWidth=2, opacity=0.6, tooltip=None)
    marks = [*_bars(base), whisker] if bars else [whisker, *_points(base)]
    words = {"y": y, "x": {"value": "width"}, "text": nominal("said")}
    style = {"align": "right", "dy": -17, "dx": -2, "color": NEUTRAL, "fontSize": 12.5}
    return {
        **LAYERED,
        "data": {"values": _known(points)},
        "layer": [*under, *marks, *with_halo(layer("text", words, {"data": {"values": points}}, **style))],
        "height": ROW_HEIGHT * max(1, len(names)) + AXIS_HEIGHT,
        "description": description,
    }


def _points(base: Spec, size: int = 90) -> list[Spec]:
    """Return filled points for what was measured here and hollow ones, by origin, for everything else."""
    encoding = {**base, "shape": nominal("origin", scale=SHAPES, legend=None), "tooltip": _tooltip()}
    here, elsewhere = ({"transform": [{"filter": origin}]} for origin in (HERE, f"!({HERE})"))
    return [
        layer("point", encoding, here, filled=True, size=size, opacity=1),
        layer("point", encoding, elsewhere, filled=False, size=size, strokeWidth=2.2),
    ]


def _bars(base: Spec) -> list[Spec]:
    encoding = {**base, "tooltip": _tooltip()}
    stroke = nominal("dtype", scale=SCALE_OF_DTYPES, legend=None)
    outlined = [
        layer(
            "bar",
            {**encoding, "stroke": stroke},
            {"transform": [{"filter": f"!({HERE}) && datum.origin {same} '{Origin.PREDICTED.label}'"}]},
            size=13,
            fillOpacity=0.16,
            strokeWidth=1.6,
            strokeDash=dash,
        )
        for same, dash in (("!=", [1, 0]), ("==", [4, 2]))
    ]
    return [layer("bar", encoding, {"transform": [{"filter": HERE}]}, size=13), *outlined]


def _tooltip() -> list[Spec]:
    return [nominal(name, title=title) for name, title in TOOLTIPS.items()]


def _log_x(title: str, values: Sequence[float], unit: str) -> Spec:
    ticks = log_ticks(values)
    decades = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    shown = ticks if len(ticks) <= 8 else decades[:: max(1, -(-len(decades) // 6))]
    label = si_label(unit, shown) if unit else "format(datum.value, ',~r')"
    axis = {"values": shown, "labelExpr": label, "labelOverlap": "greedy"}
    scale = {"type": "log", "nice": False, "domain": [ticks[0], ticks[-1]]}
    return number("value", title=title, axis=axis, scale=scale)


def _drawn(row: WhatIf, span: UncertainValue | None, words: Words) -> Spec:
    value_text = words(span.value) if span else "unknown"
    return {
        "row": row.dtype,
        "dtype": row.dtype,
        "device": row.device.title,
        "value": span.value if span else None,
        "low": span.low if span else None,
        "high": span.high if span else None,
        "error": row.error,
        "origin": row.origin.label if row.origin else "unknown",
        "said": _said(row, value_text if span else None),
        "value_text": value_text,
        "interval": format_interval((span.low, span.high), words) if span and span.low < span.high else "none",
        "basis": "; ".join((row.basis or row.reason or "", *row.notes)),
    }


def _said(row: WhatIf, value_text: str | None) -> str:
    """Return the label of a row: its figure, where that comes from, and whether the format is emulated."""
    if value_text is None and row.impossible:
        return "not compared: impossible"
    if value_text is None:
        return row.support if row.support == "unsupported" else "unknown"
    return ", ".join(
        filter(
            None,
            (
                value_text,
                row.origin and row.origin.label,
                row.support if row.support != "native" else None,
                row.impossible and "impossible",
            ),
        )
    )


def _describe(what: str, points: Sequence[Spec]) -> str:
    device = points[0]["device"] if points else "no device"
    said = [f"{point['dtype']} {point['said']}" for point in points]
    return f"{what} by dtype on {device}: {'; '.join(said) or 'nothing to draw'}."


def _describe_devices(title: str, points: Sequence[Spec]) -> str:
    least: dict[str, Spec] = {}
    for point in points:
        if point["device"] not in least or point["value"] < least[point["device"]]["value"]:
            least[point["device"]] = point
    said = [f"{device}: least in {point['dtype']}, {point['value_text']}" for device, point in least.items()]
    return f"{title} by device and dtype. {'; '.join(said) or 'Nothing to draw'}."


# One time against several peaks: the share of each as a bar, so that a promise is compared with a datasheet.


def entered_shares(results: Sequence[EnteredResult]) -> Spec:
    """Return a bar for each entered result and each peak it can be compared with; the line is 100 %."""
    rows = [row for entered in results for row in _share_rows(entered)]
    said = "; ".join(f"{row['description']} {row['said']}" for row in rows)
    hidden = {"labels": False, "ticks": False, "domain": False}
    y = nominal("row", sort=[row["row"] for row in rows], title=None, axis=hidden)
    x = number(
        "share",
        title="Share of the peak (MFU)",
        axis={"format": ".0%", "tickCount": 5},
        scale={"domain": [0, max([1.0, *(row["share"] for row in rows)]) * 1.15]},
    )
    color = nominal("dtype", scale=SCALE_OF_DTYPES, legend=None)
    style: Spec = {"align": "left", "color": NEUTRAL}
    layers = [
        layer("rule", {"x": x}, {"data": {"values": [{"share": 1}]}}, color=NEUTRAL, strokeDash=[2, 3]),
        layer("bar", {"x": x, "y": y, "color": color}, size=13),
        layer("text", {"x": x, "y": y, "text": nominal("said")}, dx=6, fontSize=13, **style),
        layer("text", {"x": {"value": 0}, "y": y, "text": nominal("description")}, dy=-15, fontSize=12.5, **style),
    ]
    height = ROW_HEIGHT * max(1, len(rows)) + AXIS_HEIGHT
    words = f"MFU against each peak: {said or 'nothing to draw'}."
    return {**LAYERED, "data": {"values": rows}, "layer": layers, "height": height, "description": words}


def _share_rows(entered: EnteredResult) -> list[Spec]:
    peak = entered.row.peak
    published = entered.published
    found = (
        ("promised", entered.of_promised, "the advertised peak (entered)", entered.promised),
        ("peak", entered.of_peak, _peak_words(entered), peak.flop_per_s if peak else None),
        ("published", entered.of_published, "the best published result", published.flop_per_s if published else None),
    )
    return [
        {
            "row": f"{entered.row.dtype} {against}",
            "dtype": entered.row.dtype,
            "against": against,
            "share": share,
            "said": format_percent(share),
            "description": f"{entered.row.dtype} of {words}, {format_flop_per_s(rate)}",
        }
        for against, share, words, rate in found
        if share is not None
    ]


def _peak_words(entered: EnteredResult) -> str:
    """Return which peak it is; of an emulated format it is that of the format that does the arithmetic."""
    peak = entered.row.peak
    if peak is None:
        return "no known peak"
    other = f" of {peak.dtype}" if peak.dtype != entered.row.dtype else ""
    return f"the {PEAK_SOURCES[peak.kind].label}{other}"
