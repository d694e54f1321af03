"""The points that charts draw: a row per measured case, with the words that tooltips and axes show, and which of them.

A line is an implementation on a device, by its name on charts, in one dtype. Where one chart would show too many,
dtypes get a panel of their own.

Reference lines across a chart, 1×, a peak, 100 %, and the words at those of peaks; and bars of peaks.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from math import log
from typing import Any, Literal, NamedTuple

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary_rules import CONDITIONS
from gpuexplore.analysis.utilization import PEAK_SOURCES, shape_label, shapes_by_work, size_of
from gpuexplore.charts.series import (
    NEUTRAL,
    Spec,
    layer,
    nominal,
    number,
    series_name,
    series_of,
    x_value,
    y_value,
)
from gpuexplore.core import (
    Device,
    Measurement,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
    in_one_unit,
)
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


def with_halo(text: Any) -> tuple[Any, Any]:
    """Return `text`, of Altair or a layer, with a rim below it in the colour of the background: it stays readable."""
    halo = {"stroke": {"expr": "background"}, "strokeWidth": 4, "strokeJoin": "round", "tooltip": None, "aria": False}
    if isinstance(text, dict):
        return {**text, "mark": text["mark"] | halo}, text
    rim = text.copy()
    for name, value in halo.items():
        setattr(rim.mark, name, value)
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


EMULATED = "emulated formats"  # stands for the lines of formats that their device does not compute in

Spread = tuple[float, float | None, float | None]  # a figure, and the ends of its interval
Lines = frozenset[tuple[str, str]]  # the name of a series, and a dtype
Figure = Callable[[AnalyzedResult, Measurement], Spread | None]
TOOLTIPS = {
    "case": "Case",
    "shape": "Shape",
    "time": "Median time",
    "interval": "95 % interval",
    "samples": "Samples",
    "rate": "Compute rate",
    "traffic": "Memory rate",
    "share": "MFU",
    "memory": "Memory use",
    "faster": "Speedup",
    "bound": "Bound",
    "diagnosis": "Diagnosis",
    "also": "Also",
    "flags": "Flags",
}
NAMES = ("series", "origin", "condition", "hollow", "implementation", "dtype", "size")
COLUMNS = (*NAMES, "order", "value", "low", "high", *TOOLTIPS)


def points(analysis: RunAnalysis, figure: Figure) -> pd.DataFrame:
    """Return the shown cases that have a `figure`, in columns COLUMNS; its spread is `value`, `low` and `high`.

    Where there are more than DETAILED, of the columns for tooltips only those of BRIEF_COLUMNS.
    """
    spreads = dict(enumerate(figure(analyzed, measurement) for analyzed, measurement in _measured(analysis)))
    drawn = {index: spread for index, spread in spreads.items() if spread is not None}
    numbers = pd.DataFrame([*drawn.values()], columns=["value", "low", "high"], dtype=float)
    found = pd.concat([_words(analysis).iloc[[*drawn]].reset_index(drop=True), numbers], axis="columns")
    return found[[column for column in COLUMNS if column in found]]


@lru_cache(maxsize=8)
def _words(analysis: RunAnalysis) -> pd.DataFrame:
    """Return what is said of each measured case, the same on every chart."""
    order = {shape: rank for rank, shape in enumerate(shapes_by_work([analyzed.result for analyzed in analysis.shown]))}
    series = {series: series_name(series, analysis.shown) for series in set(map(series_of, analysis.shown))}
    detailed = 200  # with more points, a tooltip has the case and its time alone: the table and the files have the rest
    brief = ("case", "shape", "time", "interval")
    said = {name: say for name, say in TOOLTIP_TEXTS.items() if len(analysis.shown) <= detailed or name in brief}
    rows = [
        {
            **_names(analyzed, series[series_of(analyzed)]),
            "order": order[analyzed.case.shape],
            **{name: say(analyzed, measurement) for name, say in said.items()},
        }
        for analyzed, measurement in _measured(analysis)
    ]
    found = pd.DataFrame(rows, columns=[*NAMES, "order", "case", *said])
    measured = [name for name in ("time", "interval", "rate", "traffic") if name in found]
    if rows:
        found[measured] = in_one_unit(found[measured].to_numpy().tolist())
    return found


def _measured(analysis: RunAnalysis) -> list[tuple[AnalyzedResult, Measurement]]:
    return [(analyzed, analyzed.measurement) for analyzed in analysis.shown if analyzed.measurement]


def in_panel(points: pd.DataFrame, panel: str | Lines | None) -> pd.DataFrame:
    """Return points of which those that `panel` leaves out only count for the axes.

    Args:
        points: of a chart.
        panel: what is drawn: one dtype, or lines; None is all.
    """
    if panel is None:
        return points
    if isinstance(panel, str):
        return points.assign(elsewhere=points["dtype"] != panel)
    lines = zip(points["series"], points["dtype"], strict=True)
    return points.assign(elsewhere=[line not in panel for line in lines])


def ends_of(points: pd.DataFrame) -> list[float]:
    """Return the values an axis has to cover: points, and ends of intervals within MAX_BAR_FACTOR of any point."""
    values = points["value"].dropna()
    ends = pd.concat([points["low"].dropna(), points["high"].dropna()])
    factor = 3.0  # a longer bar leaves the chart: else one uncertain point would press all others together
    return [*values, *ends.clip(values.min() / factor, values.max() * factor)] if len(values) else []


def drawn_in(panel: str | Lines | None, analysis: RunAnalysis) -> list[AnalyzedResult]:
    """Return the measured cases that a panel draws."""
    found = [analyzed for analyzed, _ in _measured(analysis)]
    if panel is None or isinstance(panel, str):
        return [analyzed for analyzed in found if panel in (None, analyzed.case.dtype)]
    return [each for each in found if (series_name(series_of(each), analysis.shown), each.case.dtype) in panel]


def time_spread(analyzed: AnalyzedResult, measurement: Measurement) -> Spread:
    """Return the median time with the ends of its 95 % interval, in seconds; None for those of a single sample."""
    if measurement.is_single or analyzed.time is None:
        return measurement.median_s, None, None
    return measurement.median_s, analyzed.time.low, analyzed.time.high


def _names(analyzed: AnalyzedResult, series: str) -> dict[str, Any]:
    case = analyzed.case
    return {
        "series": series,
        "origin": analyzed.origin.value,
        "condition": "",
        "hollow": analyzed.result.provisional or analyzed.flag("one_sample") is not None,
        "implementation": case.implementation,
        "dtype": case.dtype,
        "size": size_of(case),
        "case": f"{series} in {case.dtype}",
    }


def format_contrasts(measurement: Measurement) -> str:
    """Return e.g. ``3.1 µs from warm caches, 2.0 µs replayed from a graph, without launches``, or an empty text."""
    return ", ".join(
        f"not {CONDITIONS[contrast.condition]}: {contrast.reason}"
        if contrast.median_s is None
        else f"{format_seconds(contrast.median_s)} {CONDITIONS[contrast.condition]}"
        for contrast in measurement.contrasts
    )


def _interval(analyzed: AnalyzedResult, measurement: Measurement) -> str:
    first_pass = "; first pass, being refined" if analyzed.result.provisional else ""
    found = analyzed.ci95_s
    if found is None:
        return f"{'none: 1 sample' if measurement.is_single else 'too few samples'}{first_pass}"
    scope = "" if measurement.covers_processes else ", within this run"
    return f"{format_interval(found, format_seconds)}{scope}{first_pass}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names) or "none"


def _mfu(analyzed: AnalyzedResult) -> str:
    if analyzed.peak.peak is None or analyzed.mfu is None:
        return f"unknown: {analyzed.peak.reason}" if analyzed.flop_count else "no FLOPs"
    return analyzed.above_peak or f"{format_percent(analyzed.mfu)} of the {PEAK_SOURCES[analyzed.peak.kind].label}"


def _memory(analyzed: AnalyzedResult) -> str:
    if analyzed.cache_resident_reason:
        return "in cache"
    if analyzed.bandwidth.peak is None:
        return f"unknown: {analyzed.bandwidth.reason}"
    label = PEAK_SOURCES[analyzed.bandwidth.kind].bandwidth_label
    return analyzed.above_bandwidth or f"{format_percent(analyzed.bandwidth_utilization)} of the {label}"


def _speedup(analyzed: AnalyzedResult) -> str:
    if analyzed.speedup is None:
        return "no baseline"
    return f"{format_ratio(analyzed.speedup.ratio)} over {analyzed.speedup.baseline}"


TOOLTIP_TEXTS: Mapping[
    str, Callable[[AnalyzedResult, Measurement], str]
] = {  # a line of the tooltip each; the first, the case, is with the names
    "shape": lambda analyzed, _: shape_label(analyzed.case.shape),
    "time": lambda _, measurement: format_seconds(measurement.median_s),
    "interval": _interval,
    "samples": lambda _, measurement: str(len(measurement.samples_s)),
    "rate": lambda analyzed, _: format_flop_per_s(analyzed.flop_per_s),
    "traffic": lambda analyzed, _: format_bytes_per_s(analyzed.bytes_per_s),
    "share": lambda analyzed, _: _mfu(analyzed),
    "memory": lambda analyzed, _: _memory(analyzed),
    "faster": lambda analyzed, _: _speedup(analyzed),
    "bound": lambda analyzed, _: analyzed.bound or "unknown",
    "diagnosis": lambda analyzed, _: _listed(diagnosis.kind for diagnosis in analyzed.diagnoses),
    "also": lambda _, measurement: format_contrasts(measurement) or "one condition",
    "flags": lambda analyzed, _: _listed(flag.name for flag in analyzed.flags),
}


def lines_of(analysis: RunAnalysis) -> Mapping[tuple[str, str], bool]:
    """Return every line that is measured, and whether its format is emulated there."""
    found: dict[tuple[str, str], bool] = {}
    for analyzed in analysis.shown:
        if analyzed.measurement:
            line = (series_name(series_of(analyzed), analysis.shown), analyzed.case.dtype)
            found[line] = found.get(line, False) or analyzed.flag("emulated") is not None
    return found


def shown_lines(analysis: RunAnalysis, hidden: Collection[str]) -> Lines:
    """Return the lines that are left where some are hidden: series and dtypes by their names, or EMULATED."""
    return frozenset(
        (series, dtype)
        for (series, dtype), is_emulated in lines_of(analysis).items()
        if series not in hidden and dtype not in hidden and not (is_emulated and EMULATED in hidden)
    )


def panels(
    analysis: RunAnalysis, hidden: Collection[str] = (), *, apart: bool = True, by_peak: bool = False
) -> Mapping[str | None, Lines | None]:
    """Return what each panel shows, by its dtype; of a single chart under None, all of it where nothing is hidden.

    Args:
        analysis: of a run.
        hidden: as of `shown_lines`.
        apart: whether many lines get a panel for each dtype.
        by_peak: whether dtypes whose compute peaks differ get one, however few lines there are.
    """
    most_lines = 6  # of one chart
    lines = shown_lines(analysis, hidden)
    dtypes = [dtype for dtype in DTYPES if any(dtype == of for _, of in lines)]
    measured = [analyzed for analyzed in analysis.shown if analyzed.measurement]
    crowded = len(lines) > most_lines and len({analyzed.case.shape for analyzed in measured}) > 1
    peaks = {analyzed.peak.peak.flop_per_s for analyzed in measured if analyzed.flop_count and analyzed.peak.peak}
    if len(dtypes) > 1 and ((apart and crowded) or (by_peak and len(peaks) > 1)):
        return {panel: frozenset(line for line in lines if line[1] == panel) for panel in dtypes}
    return {None: lines if hidden else None}


def levels(sizes: Mapping[str, float]) -> list[Spec]:
    """Return a dashed line for each value by its label, which stands above its end."""
    rows = {"data": {"values": [{"value": value, "label": label} for label, value in sizes.items()]}}
    words = {"x": {"value": 0}, "y": number("value"), "text": nominal("label")}
    line = layer("rule", {"y": words["y"]}, rows, color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5)
    text = layer("text", words, rows, color=NEUTRAL, align="left", dx=4, dy=-8)
    return [line, *with_halo(text)] if sizes else []
