"""Moving data: its rate against size, the parts of a first use, and CPU against GPU with the break-even."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from gpuexplore.charts import LABEL_LIMIT, NEUTRAL, labelled_rule, log_axis, si_label, with_halo, x_value, y_value
from gpuexplore.core.units import format_bytes, format_bytes_per_s, format_seconds
from gpuexplore.features.transfer.analysis import TimeSpan
from gpuexplore.features.transfer.analysis.comparison import BreakEven, SizePoint
from gpuexplore.features.transfer.measure.contract import TransferReading

Parts = Mapping[tuple[str, str], TimeSpan | None]  # of a first use: where and what it is, and its time
PARTS = ("first call", "host to device", "kernel", "device to host")
CPU = "CPU"
GPU = "GPU with transfers"


def transfer_rates(readings: Sequence[TransferReading], peaks: Mapping[str, float], title: str) -> alt.LayerChart:
    """Return bytes/s against the bytes that are copied, a line for each way, below the peaks.

    Args:
        readings: the moves that have a rate.
        peaks: bytes/s by label.
        title: of the y axis.
    """
    rows = []
    for reading in readings:
        if reading.bytes_per_s:
            low_s, high_s = reading.ci95_s or (reading.median_s, reading.median_s)
            rates = [reading.moved_bytes / (seconds or 1.0) for seconds in (reading.median_s, high_s, low_s)]
            shown = f"{format_bytes_per_s(rates[0])}, {format_seconds(reading.median_s)}"
            rows.append((reading.name, reading.byte_count, *rates, shown, format_bytes(reading.byte_count)))
    frame = pd.DataFrame(rows, columns=["way", "bytes", "value", "low", "high", "shown", "copied"])
    sizes = sorted(set(frame["bytes"]))
    y = log_axis(title, [*frame["low"], *frame["high"], *peaks.values()], "B/s")
    bytes_label = (
        "datum.value >= 1073741824 ? format(datum.value / 1073741824, '.3~r') + ' GiB' : "
        "datum.value >= 1048576 ? format(datum.value / 1048576, '.3~r') + ' MiB' : "
        "format(datum.value / 1024, '.3~r') + ' KiB'"
    )
    axis = alt.Axis(values=sizes, labelExpr=bytes_label, labelOverlap="greedy", grid=False)
    x_scale = alt.Scale(type="log", base=2, nice=False, padding=14)
    base = alt.Chart(frame).encode(
        x=alt.X("bytes:Q", title="Bytes copied", axis=axis, scale=x_scale),
        color=alt.Color("way:N", sort=list(dict.fromkeys(frame["way"])), legend=_legend()),
    )
    drawn = base.encode(y=y, tooltip=[alt.Tooltip(f"{name}:N") for name in ("way", "copied", "shown")])
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.5).encode(y=alt.Y("low:Q"), y2="high:Q"),
        drawn.mark_line(),
        drawn.mark_point(filled=True, size=55, opacity=1),
        *(layer for label, value in peaks.items() for layer in labelled_rule(value, label)),
    ]
    return _sized(layers, 320, _describe_rates(readings, peaks, title))


def _describe_rates(readings: Sequence[TransferReading], peaks: Mapping[str, float], title: str) -> str:
    """Return the alternative text: the rates at the largest size, and the peaks."""
    known = [reading for reading in readings if reading.bytes_per_s]
    largest = max((reading.byte_count for reading in known), default=0)
    rates = [f"{each.name} {format_bytes_per_s(each.bytes_per_s)}" for each in known if each.byte_count == largest]
    lines = "".join(f"; {label}" for label in peaks)
    return f"{title} against size; at {format_bytes(largest)}: {', '.join(rates)}{lines}."


def first_use(parts: Parts) -> alt.LayerChart:
    """Return a stacked bar for the CPU and one for the GPU: first call, transfers, kernel, as far as known."""
    rows = [(where, part, span.time_s, _span_text(span)) for (where, part), span in parts.items() if span]
    frame = pd.DataFrame(rows, columns=["where", "part", "seconds", "shown"])
    frame["order"] = frame["part"].map({name: index for index, name in enumerate(PARTS)})
    axis = alt.Axis(labelExpr=si_label("s"), tickCount=5, labelOverlap="greedy", labelLimit=LABEL_LIMIT)
    y = alt.Y("where:N", title=None, sort=["CPU", "GPU"], axis=alt.Axis(labelFontSize=13))
    bars = (
        alt.Chart(frame)
        .mark_bar(height=alt.RelativeBandSize(band=0.5))
        .encode(
            x=alt.X("seconds:Q", title="Time of the first use", axis=axis, stack="zero"),
            y=y,
            color=alt.Color("part:N", scale=alt.Scale(domain=list(PARTS)), sort=list(PARTS), legend=_legend()),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("where", "part", "shown")],
        )
    )
    spans = [f"{where} {part} {_span_text(span)}" for (where, part), span in parts.items()]
    return _sized([bars, *_unknown_parts(parts, y)], 260, f"Time of the first use, stacked: {', '.join(spans)}.")


def _unknown_parts(parts: Parts, y: alt.Y) -> list[alt.Chart]:
    """Return words at the end of each bar that lacks a part, so that it is not taken for the whole."""
    rows = []
    unknown = [index for index, span in parts.items() if span is None]
    for where in dict.fromkeys(where for where, _ in unknown):
        missing = ", ".join(part for device, part in unknown if device == where)
        rows.append({"where": where, "label": f"{where}: {missing} unknown, not drawn"})
    text = alt.Chart(alt.InlineData(values=rows)).mark_text(color=NEUTRAL, align="left", dx=2, dy=23, fontSize=12)
    return list(with_halo(text.encode(x=x_value(0), y=y, text=alt.Text("label:N")))) if rows else []


def cpu_against_gpu(points: Sequence[SizePoint], found: BreakEven | None, axis_title: str) -> alt.LayerChart:
    """Return the time of a call against size on both, with intervals as bands and the break-even marked."""
    columns = ["series", "size", "value", "low", "high", "origin", "shown"]
    rows = [
        (series, point.size, span.time_s, span.low_s, span.high_s, span.origin, _span_text(span))
        for point in points
        for series, span in ((CPU, point.cpu), (GPU, point.gpu), ("GPU, data there", point.kernel))
        if span is not None
    ]
    frame = pd.DataFrame(rows, columns=columns)
    y = log_axis("Time of one use", [*frame["low"], *frame["high"]], "s")
    x = alt.X(
        "size:Q",
        title=axis_title,
        scale=alt.Scale(type="log", base=2, nice=False, padding=10),
        axis=alt.Axis(values=[point.size for point in points], format=",d", grid=False, labelOverlap="greedy"),
    )
    base = alt.Chart(frame).encode(
        x=x, color=alt.Color("series:N", scale=alt.Scale(domain=[CPU, GPU, "GPU, data there"]), legend=_legend())
    )
    tooltip = [alt.Tooltip(f"{name}:N") for name in ("series", "size", "shown")]
    layers = [
        *_mark(found),
        base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line().encode(y=y),
        base.transform_filter("datum.origin == 'measured'")
        .mark_point(filled=True, size=50, opacity=1)
        .encode(y=y, tooltip=tooltip),
        base.transform_filter("datum.origin == 'predicted'")
        .mark_point(size=40)
        .encode(y=y, fill=alt.FillValue("transparent"), tooltip=tooltip),
    ]
    return _sized(layers, 440, _describe_break_even(points, found))


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


def _mark(found: BreakEven | None) -> list[alt.Chart]:
    if found is None or found.value is None:
        return []
    row = {"size": found.value, "label": f"break-even {found.value:,}"}
    base = alt.Chart(alt.InlineData(values=[row])).encode(x=alt.X("size:Q"))
    text = base.mark_text(color=NEUTRAL, align="left", baseline="top", dx=5, fontSize=13)
    words = text.encode(y=y_value(4), text=alt.Text("label:N"))
    return [base.mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5), *with_halo(words)]


def _span_text(span: TimeSpan | None) -> str:
    if span is None:
        return "unknown"
    between = f" ({format_seconds(span.low_s)} to {format_seconds(span.high_s)})" if span.low_s < span.high_s else ""
    return f"{format_seconds(span.time_s)}{between}, {span.origin}"


def _legend() -> alt.Legend:
    columns = alt.ExprRef("width < 480 ? 2 : 3")
    return alt.Legend(title=None, orient="top", columns=columns, labelLimit=0, symbolType="square", symbolOpacity=1)


def _sized(layers: Sequence[alt.Chart], height: int, description: str) -> alt.LayerChart:
    return alt.LayerChart(layer=list(layers)).properties(width="container", height=height, description=description)
