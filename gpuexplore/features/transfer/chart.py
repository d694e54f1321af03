"""Moving data: its rate against size, the parts of a first use, and CPU against GPU with the break-even."""

from collections.abc import Mapping, Sequence

from gpuexplore.charts import (
    LABEL_LIMIT,
    LAYERED,
    NEUTRAL,
    Spec,
    layer,
    levels,
    log_axis,
    nominal,
    number,
    si_label,
    with_halo,
)
from gpuexplore.core.units import format_bytes, format_bytes_per_s, format_seconds
from gpuexplore.features.transfer.analysis import TimeSpan
from gpuexplore.features.transfer.analysis.comparison import BreakEven, SizePoint
from gpuexplore.features.transfer.measure.contract import TransferReading

Parts = Mapping[tuple[str, str], TimeSpan | None]  # of a first use: where and what it is, and its time
PARTS = ("first call", "host to device", "kernel", "device to host")
CPU = "CPU"
GPU = "GPU with transfers"


def transfer_rates(readings: Sequence[TransferReading], peaks: Mapping[str, float], title: str) -> Spec:
    """Return bytes/s against the bytes that are copied, a line for each way, below the peaks.

    Args:
        readings: the moves that have a rate.
        peaks: bytes/s by label.
        title: of the y axis.
    """
    rows: list[Spec] = []
    for reading in readings:
        if reading.bytes_per_s:
            low_s, high_s = reading.ci95_s or (reading.median_s, reading.median_s)
            value, low, high = (reading.moved_bytes / (seconds or 1.0) for seconds in (reading.median_s, high_s, low_s))
            shown = f"{format_bytes_per_s(value)}, {format_seconds(reading.median_s)}"
            row = {"way": reading.name, "bytes": reading.byte_count, "value": value, "low": low, "high": high}
            rows.append(row | {"shown": shown, "copied": format_bytes(reading.byte_count)})
    bytes_label = (
        "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.3~r') + ' GiB' : "
        "datum.value >= 1048576 ? format(datum.value / 1048576, '.3~r') + ' MiB' : "
        "format(datum.value / 1024, '.3~r') + ' KiB'"
    )
    sizes = sorted({row["bytes"] for row in rows})
    base = {
        "x": number(
            "bytes",
            title="Bytes copied",
            axis={"values": sizes, "labelExpr": bytes_label, "labelOverlap": "greedy", "grid": False},
            scale={"type": "log", "base": 2, "nice": False, "padding": 14},
        ),
        "y": log_axis(title, [*(row[end] for row in rows for end in ("low", "high")), *peaks.values()], "B/s"),
        "color": nominal("way", sort=list(dict.fromkeys(row["way"] for row in rows)), legend=_legend()),
    }
    words = {**base, "tooltip": [nominal(name) for name in ("way", "copied", "shown")]}
    layers = [
        layer("rule", {**base, "y": number("low"), "y2": {"field": "high"}}, strokeWidth=2, opacity=0.5),
        layer("line", words),
        layer("point", words, filled=True, size=55, opacity=1),
        *levels(peaks),
    ]
    said = _describe_rates(readings, peaks, title)
    return {**LAYERED, "data": {"values": rows}, "layer": layers, "height": 320, "description": said}


def _describe_rates(readings: Sequence[TransferReading], peaks: Mapping[str, float], title: str) -> str:
    """Return the alternative text: the rates at the largest size, and the peaks."""
    known = [reading for reading in readings if reading.bytes_per_s]
    largest = max((reading.byte_count for reading in known), default=0)
    rates = [f"{each.name} {format_bytes_per_s(each.bytes_per_s)}" for each in known if each.byte_count == largest]
    lines = "".join(f"; {label}" for label in peaks)
    return f"{title} against size; at {format_bytes(largest)}: {', '.join(rates)}{lines}."


def first_use(parts: Parts) -> Spec:
    """Return a stacked bar for the CPU and one for the GPU: first call, transfers, kernel, as far as known."""
    rows = [
        {"where": where, "part": part, "seconds": span.time_s, "shown": _span_text(span), "order": PARTS.index(part)}
        for (where, part), span in parts.items()
        if span
    ]
    drawn = [part for part in PARTS if any(row["part"] == part for row in rows)]
    axis = {"labelExpr": si_label("s"), "tickCount": 5, "labelOverlap": "greedy", "labelLimit": LABEL_LIMIT}
    y = nominal("where", title=None, sort=["CPU", "GPU"], axis={"labelFontSize": 13})
    encoding = {
        "x": number("seconds", title="Time of the first use", axis=axis, stack="zero"),
        "y": y,
        "color": nominal("part", scale={"domain": list(PARTS)}, sort=list(PARTS), legend=_legend() | {"values": drawn}),
        "order": number("order"),
        "tooltip": [nominal(name) for name in ("where", "part", "shown")],
    }
    bars = layer("bar", encoding, {"data": {"values": rows}}, height={"band": 0.5})
    spans = [f"{where} {part} {_span_text(span)}" for (where, part), span in parts.items()]
    return {
        **LAYERED,
        "layer": [bars, *_unknown_parts(parts, y)],
        "height": 260,
        "description": f"Time of the first use, stacked: {', '.join(spans)}.",
    }


def _unknown_parts(parts: Parts, y: Spec) -> list[Spec]:
    """Return words at the end of each bar that lacks a part, so that it is not taken for the whole."""
    rows = []
    unknown = [index for index, span in parts.items() if span is None]
    for where in dict.fromkeys(where for where, _ in unknown):
        missing = ", ".join(part for device, part in unknown if device == where)
        rows.append({"where": where, "label": f"{where}: {missing} unknown, not drawn"})
    encoding = {"x": {"value": 0}, "y": y, "text": nominal("label")}
    style = {"color": NEUTRAL, "align": "left", "dx": 2, "dy": 23, "fontSize": 12}
    return list(with_halo(layer("text", encoding, {"data": {"values": rows}}, **style))) if rows else []


def cpu_against_gpu(points: Sequence[SizePoint], found: BreakEven | None, axis_title: str) -> Spec:
    """Return the time of a call against size on both, with intervals as bands and the break-even marked."""
    names = (CPU, GPU, "GPU, data there")
    rows: list[Spec] = [
        {"series": series, "size": point.size, "value": span.time_s, "low": span.low_s, "high": span.high_s}
        | {"origin": span.origin, "shown": _span_text(span)}
        for point in points
        for series, span in zip(names, (point.cpu, point.gpu, point.kernel), strict=True)
        if span is not None
    ]
    sizes = [point.size for point in points]
    base = {
        "x": number(
            "size",
            title=axis_title,
            scale={"type": "log", "base": 2, "nice": False, "padding": 10, "domain": [sizes[0], sizes[-1]]},
            axis={"values": sizes, "format": ",d", "grid": False, "labelOverlap": "greedy"},
        ),
        "y": log_axis("Time of one use", [row[end] for row in rows for end in ("low", "high")], "s"),
        "color": nominal("series", scale={"domain": list(names)}, legend=_legend()),
    }
    measured, predicted = (
        {"transform": [{"filter": f"datum.origin == '{origin}'"}]} for origin in ("measured", "predicted")
    )
    words = {**base, "tooltip": [nominal(name) for name in ("series", "size", "shown")]}
    layers = [
        *_mark(found),
        layer("area", {**base, "y": number("low"), "y2": {"field": "high"}}, opacity=0.18),
        layer("line", base),
        layer("point", words, measured, filled=True, size=50, opacity=1),
        layer("point", {**words, "fill": {"value": "transparent"}}, predicted, size=40),
    ]
    said = _describe_break_even(points, found)
    return {**LAYERED, "data": {"values": rows}, "layer": layers, "height": 440, "description": said}


def _describe_break_even(points: Sequence[SizePoint], found: BreakEven | None) -> str:
    """Return the alternative text: the times at the largest size and the break-even."""
    last = points[-1]
    at = f"at size {last.size:,}: CPU {_span_text(last.cpu)}, GPU with transfers {_span_text(last.gpu)}"
    wins = f"the GPU wins {_break_even_words(found)}" if found else "the break-even size is unknown"
    return f"Time of one use against size; {at}; {wins}."


def _break_even_words(found: BreakEven) -> str:
    """Return ``from size 364 (141 to 2,137)``; of what never pays that."""
    if found.value is None:
        best = f"; in the best case from {found.low:,}" if found.low is not None else ""
        return f"at no size compared{best}"
    low = "—" if found.low is None else f"{found.low:,}"
    high = "never" if found.high is None else f"{found.high:,}"
    return f"from size {found.value:,} ({low} to {high})"


def _mark(found: BreakEven | None) -> list[Spec]:
    if found is None or found.value is None:
        return []
    rows = {"data": {"values": [{"size": found.value, "label": f"break-even {found.value:,}"}]}}
    words = {"x": number("size"), "y": {"value": 4}, "text": nominal("label")}
    text = layer("text", words, rows, color=NEUTRAL, align="left", baseline="top", dx=5, fontSize=13)
    rule = layer("rule", {"x": words["x"]}, rows, color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5)
    return [rule, *with_halo(text)]


def _span_text(span: TimeSpan | None) -> str:
    if span is None:
        return "unknown"
    between = f" ({format_seconds(span.low_s)} to {format_seconds(span.high_s)})" if span.low_s < span.high_s else ""
    return f"{format_seconds(span.time_s)}{between}, {span.origin}"


def _legend() -> Spec:
    return {
        "title": None,
        "orient": "top",
        "columns": {"expr": "width < 480 ? 2 : 3"},
        "labelLimit": 0,
        "symbolType": "square",
        "symbolOpacity": 1,
    }
