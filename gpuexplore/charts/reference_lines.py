"""Reference lines across a chart, 1×, a peak, 100 %, and the words at those of peaks; and bars of peaks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from typing import Literal, NamedTuple

import altair as alt
import pandas as pd

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.charts.axes import x_value, y_value
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core import Device, format_flop_per_s
from gpuexplore.core.dtypes import DTYPES

NEAR = 1.05  # lines of devices that differ by less lie on each other: they share a label that gives every figure


class PeakLine(NamedTuple):
    """A peak of some results, its rate per second; the dtype is empty where it has none or its panel names it."""

    device: str
    dtype: str
    kind: str
    rate: float


def peak_labels(lines: Iterable[PeakLine], words: Callable[[float], str]) -> dict[str, float]:
    """Return the rates to draw a line at by their label; equal rates of a device are one line."""
    dtypes: dict[tuple[str, str, float], set[str]] = {}
    for line in lines:
        dtypes.setdefault((line.device, line.kind, line.rate), set()).add(line.dtype)
    several_kinds = len({kind for _, kind, _ in dtypes}) > 1
    several_devices = len({device for device, _, _ in dtypes}) > 1
    found: dict[str, list[tuple[str, float]]] = {}
    for (device, kind, rate), names in dtypes.items():
        listed = "" if "" in names else ", ".join(name for name in DTYPES if name in names)
        named = kind if several_kinds or not several_devices or not listed else ""  # labels of devices have to be short
        found.setdefault(", ".join(filter(None, (listed, named))), []).append((device if several_devices else "", rate))
    return {
        f"{what}: {', '.join(f'{device} {words(rate)}'.strip() for device, rate in near)}": near[0][1]
        for what, rates in found.items()
        for near in (sorted(group, key=rates.index) for group in _near(rates))
    }


def _near(rates: list[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    """Return groups of rates that differ by less than NEAR, the highest first."""
    groups: list[list[tuple[str, float]]] = []
    for rate in sorted(rates, key=lambda each: -each[1]):
        if groups and groups[-1][0][1] < rate[1] * NEAR:
            groups[-1].append(rate)
        else:
            groups.append([rate])
    return groups


ReferenceLine = tuple[alt.Chart, ...]


def rule(value: float) -> ReferenceLine:
    """Return a dashed line at `value` of the y axis."""
    return (_base(value, "").mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5),)


def labelled_rule(value: float, label: str, *, at_right: bool = False, below: bool = False) -> ReferenceLine:
    """Return a dashed line at `value` of the y axis, with its label above or below one end."""
    base = _base(value, label)
    align: Literal["left", "right"] = "right" if at_right else "left"
    text = base.mark_text(color=NEUTRAL, align=align, dx=-4 if at_right else 4, dy=9 if below else -8)
    end = alt.XValue("width" if at_right else 0)  # type: ignore[no-untyped-call]  # Altair annotates no XValue
    return *rule(value), *with_halo(text.encode(text=alt.Text("label:N"), x=end))


def with_halo(text: alt.Chart) -> ReferenceLine:
    """Return `text` with a rim in the colour of the background below it, so that lines and points leave it readable."""
    rim = text.copy()
    rim.mark.stroke = alt.expr("background")
    rim.mark.strokeWidth = 4
    rim.mark.strokeJoin = "round"
    rim.mark.tooltip = None
    rim.mark.aria = False
    return rim, text


def peak_rules(
    peaks: Mapping[str, float], domain: tuple[float, float], drawn_at: Iterable[tuple[float, float]] = ()
) -> list[ReferenceLine]:
    """Return a line for each peak by its label, which covers no curve: at an end of the line, or above the chart.

    Args:
        peaks: rates by their labels.
        domain: of the log axis.
        drawn_at: where curves run, as shares of the width and of the height.
    """
    heights = {label: log(rate / domain[0]) / log(domain[1] / domain[0]) for label, rate in peaks.items()}
    taken = [*drawn_at, *((step / 10, height) for height in heights.values() for step in range(11))]
    drawn: list[ReferenceLine] = []
    above = []
    for label, height in sorted(heights.items(), key=lambda item: -item[1]):
        ends = [(right, under) for under in (False, True) for right in (False, True)]
        at_right, below = min(ends, key=lambda end: _covered(taken, height, *end))
        if _covered(taken, height, at_right, below):
            above.append(label)
            continue
        taken += [(step / 10 * 0.7 + 0.3 * at_right, height + (-0.03 if below else 0.03)) for step in range(11)]
        drawn.append(labelled_rule(peaks[label], label, at_right=at_right, below=below))
    for line, label in enumerate(reversed(above)):
        text = _base(peaks[label], f"\N{MIDLINE HORIZONTAL ELLIPSIS} {label}").mark_text(
            color=NEUTRAL, align="left", dy=-10 - 15 * line
        )
        drawn.append((*rule(peaks[label]), text.encode(text=alt.Text("label:N"), x=x_value(0), y=y_value(0))))
    return drawn


def _covered(taken: Iterable[tuple[float, float]], height: float, at_right: bool, below: bool) -> int:
    """Return how many places a label covers; one that leaves the chart counts as one that covers many."""
    low, high = (height - 0.06, height) if below else (height, height + 0.06)
    inside = sum(low < y < high and (x > 0.3 if at_right else x < 0.7) for x, y in taken)  # of a phone's width
    return inside + 1000 * (low < 0 or high > 1)


def _base(value: float, label: str) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[{"value": value, "label": label}])).encode(y=alt.Y("value:Q"))


def peaks(devices: Sequence[Device]) -> alt.LayerChart:
    """Return a bar for each dtype a device has a peak for, by its matrix products."""
    columns = ["row", "flop_per_s", "peak", "kind", "source"]
    found = [(device, device.peak(name, "matrix")) for device in devices for name in DTYPES]
    frame = pd.DataFrame(
        [
            (
                peak.dtype if len(devices) == 1 else f"{device.id}, {peak.dtype}",
                peak.flop_per_s,
                ", ".join(filter(None, (format_flop_per_s(peak.flop_per_s), peak.rate_note))),
                PEAK_SOURCES[peak.kind].label,
                peak.source,
            )
            for device, peak in found
            if peak is not None
        ],
        columns=columns,
    )
    listed = ", ".join(f"{row.row} {row.peak}" for row in frame.itertuples()) or "none is known"
    y = alt.Y("row:N", sort=list(frame["row"]), title=None, axis=alt.Axis(labelLimit=300, labelFlush=False))
    x = alt.X("flop_per_s:Q", title=None, axis=None)
    base = alt.Chart(frame).encode(y=y, x=x, tooltip=[alt.Tooltip(f"{name}:N") for name in ("peak", "kind", "source")])
    bars = base.mark_bar(height={"band": 0.6}, color=NEUTRAL)  # colours stand for implementations on its page
    words = base.mark_text(align="left", dx=6, fontSize=13, color=NEUTRAL).encode(text=alt.Text("peak:N"))
    height = 34 * max(1, len(frame))
    description = f"Peaks by dtype: {listed}"
    return alt.LayerChart(layer=[bars, words], width="container", height=height, description=description)
