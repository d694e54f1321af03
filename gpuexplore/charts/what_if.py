"""Formats side by side: time, speedup, speed against error, and the same across devices.

What was measured here is drawn filled, everything else hollow, predictions with their interval; every label says which.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

import altair as alt
import pandas as pd

from gpuexplore.analysis.prediction import CALLS_WORDS, UncertainValue
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.what_if.summary import EnteredResult
from gpuexplore.analysis.what_if.what_if import WhatIf
from gpuexplore.charts.points import with_halo
from gpuexplore.charts.series import NEUTRAL, SCALE_OF_DTYPES, log_ticks, ratio_axis, si_label, x_value
from gpuexplore.core import Origin, format_flop_per_s, format_interval, format_percent, format_ratio, format_seconds
from gpuexplore.core.dtypes import FORMATS

ROW_HEIGHT = 48
AXIS_HEIGHT = 75  # pixels, with the axis' title: what is left has to fit a label above each mark
COLUMNS = (
    "row",
    "dtype",
    "device",
    "value",
    "low",
    "high",
    "error",
    "origin",
    "said",
    "value_text",
    "interval",
    "basis",
)
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
SHAPES = alt.Scale(domain=[origin.label for origin in ORIGINS], range=["circle", "square", "diamond", "circle"])

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


def what_if_times(rows: Sequence[WhatIf]) -> alt.LayerChart:
    """Return the seconds of the workload in each format on one device, on a log scale; the rows are its formats."""
    frame = _frame(rows, lambda row: row.time, format_seconds)
    values = [*frame["low"].dropna(), *frame["high"].dropna()]
    title = _of_calls("Time", rows)
    x = _log_x(title, values, "s")
    return _listed(frame, x, _describe(title, frame))


def what_if_speedups(rows: Sequence[WhatIf], baseline: str) -> alt.LayerChart:
    """Return the speedup of each format over `baseline` on one device as bars from zero."""
    frame = _frame(rows, lambda row: row.speedup, format_ratio)
    largest = max([1.0, *frame["high"].dropna()])
    axis = alt.Axis(labelExpr="format(datum.value, '~r') + '×'", tickCount=5)
    x = alt.X("value:Q", title=f"Speedup over {baseline}", axis=axis, scale=alt.Scale(domain=[0, largest * 1.02]))
    unity = alt.Chart(alt.InlineData(values=[{"value": 1}])).mark_rule(
        color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5
    )
    return _listed(
        frame, x, _describe(f"Speedup over {baseline}", frame), bars=True, under=[unity.encode(x=alt.X("value:Q"))]
    )


def trade_off(rows: Sequence[WhatIf], baseline: str) -> alt.LayerChart:
    """Return speedup against error: up is faster, left more accurate; a line joins what nothing else beats in both."""
    frame = _frame(rows, lambda row: row.speedup, format_ratio).dropna(subset=["value", "error"])
    frame = frame[frame["error"] > 0]  # a log scale has no position for a copy that loses nothing
    ticks = [tick for tick in log_ticks([*frame["error"]]) if f"{tick:e}".startswith("1.0")] if len(frame) else []
    decades = ticks[:: max(1, len(ticks) // 6)]
    x = alt.X(
        "error:Q",
        title="Error relative to fp64",
        axis=alt.Axis(values=decades, format=".0e", grid=False),
        scale=alt.Scale(type="log", nice=False, padding=46),  # room for a name at either end
    )
    y = ratio_axis(f"Speedup over {baseline}", [1.0, *frame["low"], *frame["high"]])
    base = alt.Chart(frame).encode(x=x, y=y, color=alt.Color("dtype:N", scale=SCALE_OF_DTYPES, legend=None))
    unbeaten = _frontier(frame)
    line = alt.Chart(unbeaten).mark_line(strokeDash=[5, 4], strokeWidth=1.5, color=NEUTRAL, tooltip=None)
    whisker = base.mark_rule(strokeWidth=2, opacity=0.5, tooltip=None).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    is_left = _name_is_left(frame)
    names = [
        part
        for left in (True, False)
        for part in with_halo(
            base.mark_text(align="right" if left else "left", dx=-9 if left else 9, dy=-9, fontSize=13, fontWeight=600)
            .encode(text=alt.Text("dtype:N"))
            .properties(data=frame[[each == left for each in is_left]])
        )
    ]
    layers = [line.encode(x=x, y=y), whisker, *_points(base), *names]
    points = [
        f"{itertuple.dtype} {itertuple.value_text} at an error of {itertuple.error:.1e}"
        for itertuple in frame.itertuples()
    ]
    drawn = "; ".join(points) or "nothing to draw"
    best = ", ".join(unbeaten["dtype"]) or "none"
    return alt.LayerChart(
        layer=layers,
        width="container",
        height=330,
        description=f"Speedup over {baseline} against error: {drawn}. Unbeaten: {best}.",
    )


def _name_is_left(frame: pd.DataFrame) -> list[bool]:
    """Return of each point whether its name stands left of it, as on a phone another point's is at its right."""
    points = list(zip(map(log10, frame["error"]), map(log10, frame["value"]), strict=True))
    width, height = (max(axis) - min(axis) for axis in zip(*points, strict=True)) if points else (0.0, 0.0)
    return [
        any(0 < right - x < 0.2 * width and abs(top - y) < 0.08 * height for right, top in points) for x, y in points
    ]


def across_devices(rows: Sequence[WhatIf], quantity: ComparedQuantity) -> alt.LayerChart:
    """Return a quantity of each format on each device on a log scale, devices one below the other."""
    frame = _frame(rows, quantity.of, quantity.words).dropna(subset=["value"])
    names = list(dict.fromkeys(frame["device"]))
    shown = [name for name in FORMATS if name in set(frame["dtype"])]
    values = [*frame["low"], *frame["high"]]
    title = _of_calls(quantity.title, rows)
    x = _log_x(title, values, quantity.unit)
    axis = alt.Axis(labelLimit=150, labelFlush=False)
    y = alt.Y("device:N", sort=names, title=None, axis=axis, scale=alt.Scale(domain=names))
    color = alt.Color(
        "dtype:N",
        scale=SCALE_OF_DTYPES,
        legend=alt.Legend(title=None, orient="top", values=shown, columns=3, symbolOpacity=1),
    )
    base = alt.Chart(frame).encode(x=x, y=y, yOffset=alt.YOffset("dtype:N", sort=shown), color=color)
    whisker = base.mark_rule(strokeWidth=2, opacity=0.5, tooltip=None).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    row_height = 17  # of one format of one device
    height = max(1, len(names)) * (len(shown) * row_height + 14) + 40
    return alt.LayerChart(
        layer=[whisker, *_points(base, size=60)],
        width="container",
        height=height,
        description=_describe_devices(title, frame),
    )


def _of_calls(title: str, rows: Sequence[WhatIf]) -> str:
    """Return the title of what follows from times, with the kind of calls that those of GPUs are of where it is one."""
    kinds = {row.calls for row in rows if row.time and row.calls}
    return f"{title}, {CALLS_WORDS[kinds.pop()]}" if len(kinds) == 1 else title


def _frontier(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that no other beats in both error and speed, from the most accurate to the fastest."""
    kept = []
    best = 0.0
    for row in frame.sort_values(["error", "value"], ascending=[True, False]).to_dict("records"):
        if row["value"] > best:
            kept.append(row)
            best = row["value"]
    return pd.DataFrame(kept, columns=list(frame.columns))


def _listed(
    frame: pd.DataFrame, x: alt.X, description: str, *, bars: bool = False, under: Sequence[alt.Chart] = ()
) -> alt.LayerChart:
    """Return a row for each format: its mark and interval, and above them at the right what they say."""
    names = list(frame["row"])
    axis = alt.Axis(labelFontSize=13, labelFlush=False)
    y = alt.Y("row:N", sort=names, title=None, scale=alt.Scale(domain=names), axis=axis)
    color = alt.Color("dtype:N", scale=SCALE_OF_DTYPES, legend=None)
    known = alt.Chart(frame.dropna(subset=["value"])).encode(y=y, x=x, color=color)
    whisker = known.mark_rule(strokeWidth=2, opacity=0.6, tooltip=None).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    marks = _bars(known) if bars else _points(known)
    words = alt.Chart(frame).mark_text(align="right", dy=-17, dx=-2, color=NEUTRAL, fontSize=12.5)
    labels = words.encode(y=y, x=x_value("width"), text=alt.Text("said:N"))
    layers = [*under, *((*marks, whisker) if bars else (whisker, *marks)), *with_halo(labels)]
    return alt.LayerChart(
        layer=layers, width="container", height=ROW_HEIGHT * max(1, len(names)) + AXIS_HEIGHT, description=description
    )


def _points(base: alt.Chart, size: int = 90) -> list[alt.Chart]:
    """Return filled points for what was measured here and hollow ones, by origin, for everything else."""
    shape = alt.Shape("origin:N", scale=SHAPES, legend=None)
    filled = base.transform_filter(HERE).mark_point(filled=True, size=size, opacity=1)
    hollow = base.transform_filter(f"!({HERE})").mark_point(filled=False, size=size, strokeWidth=2.2)
    return [marks.encode(shape=shape, tooltip=_tooltip()) for marks in (filled, hollow)]


def _bars(base: alt.Chart) -> list[alt.Chart]:
    filled = base.transform_filter(HERE).mark_bar(size=13).encode(tooltip=_tooltip())
    stroke = alt.Stroke("dtype:N", scale=SCALE_OF_DTYPES, legend=None)
    outlined = [
        base.transform_filter(f"!({HERE}) && datum.origin {same} '{Origin.PREDICTED.label}'")
        .mark_bar(size=13, fillOpacity=0.16, strokeWidth=1.6, strokeDash=dash)
        .encode(stroke=stroke, tooltip=_tooltip())
        for same, dash in (("!=", [1, 0]), ("==", [4, 2]))
    ]
    return [filled, *outlined]


def _tooltip() -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in TOOLTIPS.items()]


def _log_x(title: str, values: Sequence[float], unit: str) -> alt.X:
    ticks = log_ticks(values)
    decades = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    shown = ticks if len(ticks) <= 8 else decades[:: max(1, -(-len(decades) // 6))]
    label = si_label(unit, shown) if unit else "format(datum.value, ',~r')"
    axis = alt.Axis(values=shown, labelExpr=label, labelOverlap="greedy")
    scale = alt.Scale(type="log", nice=False, domain=[ticks[0], ticks[-1]])
    return alt.X("value:Q", title=title, axis=axis, scale=scale)


def _frame(rows: Sequence[WhatIf], quantity: Callable[[WhatIf], UncertainValue | None], words: Words) -> pd.DataFrame:
    return pd.DataFrame([_drawn(row, quantity(row), words) for row in rows], columns=list(COLUMNS))


def _drawn(row: WhatIf, span: UncertainValue | None, words: Words) -> dict[str, object]:
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


def _describe(what: str, frame: pd.DataFrame) -> str:
    device = frame["device"].iloc[0] if len(frame) else "no device"
    said = [f"{itertuple.dtype} {itertuple.said}" for itertuple in frame.itertuples()]
    return f"{what} by dtype on {device}: {'; '.join(said) or 'nothing to draw'}."


def _describe_devices(title: str, frame: pd.DataFrame) -> str:
    least: dict[str, Any] = {}
    for row in frame.to_dict("records"):
        if row["device"] not in least or row["value"] < least[row["device"]]["value"]:
            least[row["device"]] = row
    said = [f"{device}: least in {row['dtype']}, {row['value_text']}" for device, row in least.items()]
    return f"{title} by device and dtype. {'; '.join(said) or 'Nothing to draw'}."


# One time against several peaks: the share of each as a bar, so that a promise is compared with a datasheet.


def entered_shares(results: Sequence[EnteredResult]) -> alt.LayerChart:
    """Return a bar for each entered result and each peak it can be compared with; the line is 100 %."""
    frame = pd.DataFrame(
        [row for entered in results for row in _share_rows(entered)],
        columns=["row", "dtype", "against", "share", "said", "description"],
    )
    said = [f"{row.description} {row.said}" for row in frame.itertuples()]
    rows = list(frame["row"])
    y = alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(labels=False, ticks=False, domain=False))
    largest = max([1.0, *frame["share"]])
    x = alt.X(
        "share:Q",
        title="Share of the peak (MFU)",
        axis=alt.Axis(format=".0%", tickCount=5),
        scale=alt.Scale(domain=[0, largest * 1.15]),
    )
    base = alt.Chart(frame).encode(y=y)
    color = alt.Color("dtype:N", scale=SCALE_OF_DTYPES, legend=None)
    bars = base.mark_bar(size=13).encode(x=x, color=color)
    figures = base.mark_text(align="left", dx=6, color=NEUTRAL, fontSize=13).encode(x=x, text=alt.Text("said:N"))
    names = base.mark_text(align="left", dy=-15, color=NEUTRAL, fontSize=12.5).encode(
        x=x_value(0), text=alt.Text("description:N")
    )
    full = alt.Chart(alt.InlineData(values=[{"share": 1}])).mark_rule(color=NEUTRAL, strokeDash=[2, 3]).encode(x=x)
    return alt.LayerChart(
        layer=[full, bars, figures, names],
        width="container",
        height=ROW_HEIGHT * max(1, len(rows)) + AXIS_HEIGHT,
        description=f"MFU against each peak: {'; '.join(said) or 'nothing to draw'}.",
    )


def _share_rows(entered: EnteredResult) -> list[tuple[object, ...]]:
    peak = entered.row.peak
    published = entered.published
    found = (
        ("promised", entered.of_promised, "the advertised peak (entered)", entered.promised),
        ("peak", entered.of_peak, _peak_words(entered), peak.flop_per_s if peak else None),
        ("published", entered.of_published, "the best published result", published.flop_per_s if published else None),
    )
    return [
        (
            f"{entered.row.dtype} {against}",
            entered.row.dtype,
            against,
            share,
            format_percent(share),
            f"{entered.row.dtype} of {words}, {format_flop_per_s(rate)}",
        )
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
