"""The roofline: FLOP/s against arithmetic intensity on log scales, results below the roofs of their device.

Slopes are bandwidths, flat lines compute rates in the colour of their dtype; thick ones are matrix units.
Solid lines are from a datasheet or computed, dashed ones from a microbenchmark, dotted ones the best result so far.
Filled points were measured here, hollow ones were recorded or published elsewhere.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Literal

import altair as alt
import pandas as pd

from gpuexplore.analysis.roofline import Point
from gpuexplore.analysis.roofs import Roof, memory_ridges, ridges
from gpuexplore.analysis.utilization import PEAK_SOURCES, shape_label
from gpuexplore.charts.points import with_halo
from gpuexplore.charts.series import NEUTRAL, POINTS, RING, SCALE_OF_DTYPES, log_ticks, si_label
from gpuexplore.core import (
    Origin,
    format_bytes_per_s,
    format_flop_per_s,
    format_intensity,
    format_percent,
    format_seconds,
)
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.operations import operation_named

BASES = ("datasheet or formula", "microbenchmark", "best result so far")
LABELS_FROM = 0.78  # share of the width: the labels of flat roofs are right of it, the points left
LABELS_TO = 0.12  # share of the width: the labels of slopes are left of it
FrameRow = dict[str, object]
OPENED = "opened"  # the selection of the run of a clicked point
POINT_TOOLTIPS = {
    "case": "Case",
    "operation": "Operation",
    "shape": "Shape",
    "time": "Median time",
    "rate_said": "Compute rate",
    "intensity_said": "Intensity",
    "share": "Share of roof",
    "roof": "Roof",
    "origin": "From",
    "run_said": "Run",
}
SCALE_OF_SHAPES = alt.Scale(domain=list(FORMATS), range=[POINTS[index % len(POINTS)] for index in range(len(FORMATS))])
ORIGINS = [origin.label for origin in (Origin.LIVE, Origin.RECORDED, Origin.PUBLISHED)]
SCALE_OF_ORIGINS = alt.Scale(domain=ORIGINS, range=[75] * len(ORIGINS))


@dataclass(frozen=True, slots=True)
class _Window:
    """The drawn part of the plane, in FLOP/byte and FLOP/s."""

    intensity_low: float
    intensity_high: float
    rate_low: float
    rate_high: float

    @property
    def intensity_decades(self) -> float:
        """Powers of ten along the x axis."""
        return log10(self.intensity_high / self.intensity_low)

    @property
    def rate_decades(self) -> float:
        """Powers of ten along the y axis."""
        return log10(self.rate_high / self.rate_low)


def roofline(roofs: Sequence[Roof], points: Sequence[Point]) -> alt.LayerChart:
    """Return the roofline of a device with `points` on it; a click on one selects its run under `OPENED`."""
    seen = _window(roofs, points)
    opened = alt.selection_point(name=OPENED, fields=["run"], on="click", empty=False)
    dtypes = [*(point.dtype for point in points), *(roof.dtype for roof in roofs if roof.dtype)]
    layers = [
        *_roof_lines(roofs, seen, dtypes),
        *_ridges(roofs, seen),
        *_points(points, seen, dtypes, opened),
        *_labels(roofs, seen),
    ]
    chart: alt.LayerChart = alt.LayerChart(layer=layers).resolve_scale(color="shared")
    return chart.properties(width="container", height=600, description=_described(roofs, points))


def _described(roofs: Sequence[Roof], points: Sequence[Point]) -> str:
    """Return the alternative text: the limits, the ridge points with memory and the number of points."""
    flat = [roof for roof in roofs if roof.kind == "compute" and not roof.reached]
    with_memory = memory_ridges(roofs).items()
    best = max(points, key=lambda point: point.fraction or 0.0, default=None)
    sentences = (
        _listed("Flat roofs", [f"{roof.label} {format_flop_per_s(roof.rate)}" for roof in flat]),
        _listed(
            "Ridge points", [f"{compute.label} {format_intensity(intensity)}" for compute, intensity in with_memory]
        ),
        f"Nearest to its roof of {len(points)} points: {best.name}, {format_percent(best.fraction)}"
        if best
        else "No points",
    )
    return f"Roofline. {'. '.join(sentences)}."


def _listed(what: str, words: Sequence[str]) -> str:
    return f"{what}: {', '.join(words) or 'none known'}"


def _x(seen: _Window) -> alt.X:
    ticks = [
        log_tick for log_tick in log_ticks([seen.intensity_low, seen.intensity_high]) if log10(log_tick).is_integer()
    ]
    axis = alt.Axis(
        values=ticks, labelExpr="format(datum.value, datum.value < 1 ? '~r' : ',~r')", grid=True, labelFlush=False
    )
    scale = alt.Scale(type="log", nice=False, domain=[seen.intensity_low, seen.intensity_high])
    return alt.X("intensity:Q", title="Arithmetic intensity, FLOP/byte", axis=axis, scale=scale)


def _y(seen: _Window) -> alt.Y:
    ticks = [log_tick for log_tick in log_ticks([seen.rate_low, seen.rate_high]) if log10(log_tick).is_integer()]
    scale = alt.Scale(type="log", nice=False, domain=[seen.rate_low, seen.rate_high])
    return alt.Y("rate:Q", title="Compute rate", axis=alt.Axis(values=ticks, labelExpr=si_label("FLOP/s")), scale=scale)


def _roof_lines(roofs: Sequence[Roof], seen: _Window, dtypes: Sequence[str]) -> list[alt.Chart]:
    top = max((roof.rate for roof in roofs if roof.kind == "compute"), default=seen.rate_high)
    rows = [
        _roof_row(roof, intensity, intensity * roof.rate, format_bytes_per_s(roof.rate))
        for roof in roofs
        if roof.kind != "compute"
        for intensity in (seen.intensity_low, min(seen.intensity_high, top / roof.rate))
    ]
    slopes = _frame(rows, ROOF_COLUMNS)
    flats = _flat_roofs(roofs, seen)
    dash = alt.StrokeDash(
        "basis:N",
        scale=alt.Scale(domain=list(BASES), range=[[1, 0], [8, 4], [2, 3]]),
        legend=_legend([*slopes["basis"], *flats["basis"]], BASES, "bottom", symbolSize=700, symbolStrokeWidth=2),
    )
    said = {"label": "Roof", "said": "Rate", "basis": "Kind", "source": "Source"}
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in said.items()]
    base = {"x": _x(seen), "y": _y(seen), "detail": alt.Detail("line:N"), "strokeDash": dash, "tooltip": words}
    width = alt.StrokeWidth("width:Q", scale=None)
    slope = alt.Chart(slopes).mark_line(color=NEUTRAL, clip=True).encode(**base, strokeWidth=width)
    flat = alt.Chart(flats).mark_line(clip=True).encode(**base, strokeWidth=width, color=_color(dtypes))
    return [slope, flat]


def _ridges(roofs: Sequence[Roof], seen: _Window) -> list[alt.Chart]:
    frame = _ridge_marks(roofs, seen)
    said = {"label": "Ridge point", "said": "Intensity"}
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in said.items()]
    base = alt.Chart(frame).encode(x=_x(seen), y=_y(seen), tooltip=words)
    marks = base.mark_point(shape="diamond", filled=True, color=NEUTRAL, opacity=1, clip=True).encode(
        size=alt.Size("size:Q", scale=None)
    )
    text = base.transform_filter("datum.text != ''").mark_text(
        align="left", baseline="top", dx=6, dy=5, color=NEUTRAL, fontSize=11, opacity=alt.expr("width < 400 ? 0 : 1")
    )
    return [marks, *with_halo(text.encode(text=alt.Text("text:N")))]


def _points(points: Sequence[Point], seen: _Window, dtypes: Sequence[str], opened: alt.Parameter) -> list[alt.Chart]:
    rows: list[FrameRow] = [
        {
            "intensity": point.intensity,
            "rate": point.flop_per_s,
            "dtype": point.dtype,
            "run": point.run,
            "text": point.origin.label if point.origin is Origin.PUBLISHED else "",
            **_words(point),
        }
        for point in points
    ]
    columns = ("intensity", "rate", "dtype", "run", "text", "case", "operation", "shape", "time", "rate_said")
    frame = _frame(rows, (*columns, "intensity_said", "share", "roof", "origin", "run_said"))
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in POINT_TOOLTIPS.items()]
    base = alt.Chart(frame).encode(x=_x(seen), y=_y(seen))
    color = _color(dtypes)
    shape = alt.Shape("dtype:N", scale=SCALE_OF_SHAPES, legend=_dtype_legend(dtypes))
    symbol = alt.expr(f"datum.value == '{Origin.LIVE.label}' ? 'circle' : '{RING}'")  # hollow: not measured here
    style = {"symbolType": symbol, "symbolFillColor": NEUTRAL, "symbolStrokeWidth": 0}
    size = alt.Size("origin:O", scale=SCALE_OF_ORIGINS, legend=_legend([*frame["origin"]], ORIGINS, "bottom", **style))
    live = f"datum.origin == '{Origin.LIVE.label}'"
    filled, hollow = (
        base.transform_filter(kept)
        .mark_point(filled=solid, strokeWidth=1.8, opacity=0.9, cursor="pointer")
        .encode(color=color, shape=shape, size=size, tooltip=words)
        for kept, solid in ((live, True), (f"!({live})", False))
    )
    text = base.transform_filter("datum.text != ''").mark_text(
        align="left", baseline="middle", dx=9, color=NEUTRAL, opacity=alt.expr("width < 400 ? 0 : 1")
    )
    return [hollow, filled.add_params(opened), *with_halo(text.encode(text=alt.Text("text:N")))]


def _labels(roofs: Sequence[Roof], seen: _Window) -> list[alt.Chart]:
    flat = alt.Chart(_labels_of_flat(roofs, seen)).mark_text(
        align="right", baseline="bottom", dx=-2, dy=-4, color=NEUTRAL, fontSize=alt.expr("width < 400 ? 11 : 12")
    )
    # The angle of a slope of 1 depends on the pixels per decade, so the browser has to compute it.
    angle = f"-atan2(height / {seen.rate_decades}, width / {seen.intensity_decades}) * 180 / PI"
    slope = alt.Chart(_labels_of_slopes(roofs, seen)).mark_text(
        align="left", baseline="bottom", dx=10, dy=-3, color=NEUTRAL, fontSize=12, angle=alt.expr(angle)
    )
    said = "width < 400 ? datum.short : datum.label"  # on a phone without figures, which axis and tooltip show
    said_at = [
        labels.transform_calculate(said=said).encode(x=_x(seen), y=_y(seen), text=alt.Text("said:N"))
        for labels in (flat, slope)
    ]
    return [layer for labels in said_at for layer in with_halo(labels)]


def _color(dtypes: Sequence[str]) -> alt.Color:
    return alt.Color("dtype:N", scale=SCALE_OF_DTYPES, legend=_dtype_legend(dtypes))


def _dtype_legend(dtypes: Sequence[str]) -> alt.Legend | None:
    return _legend(dtypes, list(FORMATS), "top")


def _legend(
    present: Sequence[str], order: Sequence[str], orient: Literal["top", "bottom"], **style: Any
) -> alt.Legend | None:
    """Return a legend of the drawn entries, in `order`; None for a single entry that is the first of `order`."""
    values = [name for name in order if name in set(present)]
    if not values or values == order[:1] or (len(values) < 2 and orient == "top"):
        return None
    columns = 1 if orient == "bottom" else 4 if len(values) <= 4 else 3  # as many as fit a phone
    return alt.Legend(
        title=None, values=values, orient=orient, columns=columns, labelLimit=260, symbolOpacity=1, **style
    )


# The data frames of the chart: lines, ridges, labels and points, and the window that is drawn.


def _window(roofs: Sequence[Roof], points: Sequence[Point]) -> _Window:
    """Return the window that shows every point, every ridge with memory and some of the roofs next to them."""
    shown = [*memory_ridges(roofs).values()]
    shown += [point.intensity for point in points]
    lowest = 1 / 16
    margin = 2.0  # beyond the outermost point, on either side
    left = min([lowest * margin, *shown])
    right = margin * max([1.0, *shown])
    whole = (right / left) ** (1 / (LABELS_FROM - LABELS_TO))  # the rest uses the width without the labels
    low = left / whole**LABELS_TO
    high = left * whole ** (1 - LABELS_TO)
    slopes = [roof.rate for roof in roofs if roof.kind != "compute"]
    flats = [roof.rate for roof in roofs if roof.kind == "compute"]
    rates = [point.flop_per_s for point in points]
    floor = [low * min(slopes) * margin] if slopes else flats
    ceiling = flats or [high * max(slopes)] if slopes or flats else [1e12]
    return _Window(low, high, min([*floor, *rates, ceiling[0]]) / margin, max([*ceiling, *rates]) * margin)


def _flat_roofs(roofs: Sequence[Roof], seen: _Window) -> pd.DataFrame:
    """Return the two ends of every compute roof: from the fastest bandwidth to the right edge; equal roofs once."""
    fastest = max((roof.rate for roof in roofs if roof.kind != "compute" and not roof.reached), default=None)
    rows = []
    for roof in _distinct(roofs):
        start = roof.rate / fastest if fastest else seen.intensity_low
        rows += [
            _roof_row(roof, intensity, roof.rate, format_flop_per_s(roof.rate))
            for intensity in (max(seen.intensity_low, min(start, seen.intensity_high)), seen.intensity_high)
        ]
    return _frame(rows, ROOF_COLUMNS)


def _ridge_marks(roofs: Sequence[Roof], seen: _Window) -> pd.DataFrame:
    """Return the ridge points in the window, those with memory larger and with their intensity next to them."""
    rows: list[FrameRow] = []
    labelled: set[str] = set()
    for (compute, bandwidth), intensity in ridges(roofs).items():
        if not seen.intensity_low <= intensity <= seen.intensity_high:
            continue
        memory = bandwidth.kind == "memory"
        said = format_intensity(intensity)
        rows.append(
            {
                "intensity": intensity,
                "rate": compute.rate,
                "size": 60 if memory else 18,
                "text": said.split(" ")[0] if memory and said not in labelled else "",
                "label": f"{compute.label} and {bandwidth.label}",
                "said": said,
            }
        )
        labelled |= {said} if memory else set()
    return _frame(rows, ("intensity", "rate", "size", "text", "label", "said"))


def _labels_of_flat(roofs: Sequence[Roof], seen: _Window) -> pd.DataFrame:
    """Return a label for each compute limit, at its right end; limits too near for two labels share one."""
    limits = _distinct([roof for roof in roofs if not roof.reached])
    rows: list[FrameRow] = [
        {
            "intensity": seen.intensity_high,
            "rate": group[0].rate,
            "label": " · ".join(f"{_units_at(roof, roofs)} {format_flop_per_s(roof.rate)}" for roof in group),
            "short": " · ".join(re.sub(" matrix| vector", "", _units_at(roof, roofs)) for roof in group).replace(
                " and ", ", "
            ),
        }
        for group in _near(limits, 15, seen)
    ]
    return _frame(rows, ("intensity", "rate", "label", "short"))


def _labels_of_slopes(roofs: Sequence[Roof], seen: _Window) -> pd.DataFrame:
    """Return a label for each bandwidth limit, along its left end; limits too near for two labels share one."""
    limits = [roof for roof in roofs if roof.kind != "compute" and not roof.reached]
    pixels = 26  # on a phone the slopes are steep, and labels along them near each other
    rows: list[FrameRow] = [
        {
            "intensity": seen.intensity_low,
            "rate": seen.intensity_low * group[0].rate,
            "label": " · ".join(f"{roof.label.split(' ')[0]} {format_bytes_per_s(roof.rate)}" for roof in group),
            "short": " · ".join(roof.label.split(" ")[0] for roof in group),
        }
        for group in _near(limits, pixels, seen)
    ]
    return _frame(rows, ("intensity", "rate", "label", "short"))


def _near(roofs: Iterable[Roof], pixels: float, seen: _Window) -> list[list[Roof]]:
    """Return groups of roofs, the highest first, each less than `pixels` below the one above it."""
    groups: list[list[Roof]] = []
    height = 400  # assumed pixels of the drawing, to compare with those of a label
    for roof in sorted(roofs, key=lambda each: -each.rate):
        if groups and log10(groups[-1][-1].rate / roof.rate) / seen.rate_decades * height < pixels:
            groups[-1].append(roof)
        else:
            groups.append([roof])
    return groups


def _words(point: Point) -> dict[str, str]:
    return {
        "case": point.label,
        "operation": operation_named(point.operation).title,
        "shape": shape_label(point.shape),
        "time": format_seconds(point.time_s),
        "rate_said": format_flop_per_s(point.flop_per_s),
        "intensity_said": format_intensity(point.intensity),
        "share": format_percent(point.fraction) if point.fraction is not None else "unknown",
        "roof": roof_above(point),
        "origin": point.origin.label,
        "run_said": point.run or point.source or "none",
    }


def roof_above(point: Point) -> str:
    """Return the name of the roof above a point, e.g. ``L2 cache``, ``bf16, matrix units``."""
    return point.roof.label if point.roof else "unknown"


def basis(roof: Roof) -> str:
    """Return how a roof was found, one of BASES."""
    return BASES[2] if roof.reached else BASES[1] if roof.measured else BASES[0]


def _units_label(roofs: Iterable[Roof]) -> str:
    """Return the dtypes and units of equal compute roofs, e.g. ``fp32``, ``fp32 and fp64 matrix``."""
    units: dict[str, set[str]] = {}
    for roof in roofs:
        units.setdefault(roof.dtype or "", set()).add(roof.unit or "")
    groups: dict[str, list[str]] = {}
    for name in sorted(units, key=list(FORMATS).index):
        groups.setdefault(" ".join(units[name]) if len(units[name]) == 1 else "", []).append(name)
    return " and ".join(f"{', '.join(groups[unit])} {unit}".strip() for unit in sorted(groups))


def _units_at(roof: Roof, roofs: Iterable[Roof]) -> str:
    alike = [each for each in roofs if each.dtype and not each.reached and each.rate == roof.rate]
    own = [each for each in alike if not each.rate_note]
    return _units_label(own) if own else f"{_units_label(alike)} {roof.rate_note}"


def _distinct(roofs: Iterable[Roof]) -> list[Roof]:
    """Return one compute roof of each rate: preferably of a dtype with that rate on both units, and of matrix units."""
    order = list(FORMATS)
    compute = [roof for roof in roofs if roof.dtype and not _far_below(roof, roofs)]
    alike = Counter((roof.rate, roof.dtype) for roof in compute)
    compute.sort(
        key=lambda roof: (-alike[roof.rate, roof.dtype], roof.unit != "matrix", order.index(roof.dtype or order[0]))
    )
    return list({(roof.rate, roof.reached): roof for roof in reversed(compute)}.values())[::-1]


def _far_below(roof: Roof, roofs: Iterable[Roof]) -> bool:
    """Return whether the best result so far is too far below its limit to show what can be reached."""
    limits = [each.rate for each in roofs if not each.reached and (each.dtype, each.unit) == (roof.dtype, roof.unit)]
    # A best result below half of its limit is no roof: other implementations' points lie above it.
    return roof.reached and bool(limits) and roof.rate < 0.5 * max(limits)


def _roof_row(roof: Roof, intensity: float, rate: float, said: str) -> FrameRow:
    return {
        "line": f"{roof.label}{roof.reached}",
        "intensity": intensity,
        "rate": rate,
        "dtype": roof.dtype or "",
        "width": 3.0 if roof.unit == "matrix" or roof.kind == "memory" else 1.5,
        "label": roof.label,
        "said": said,
        "basis": basis(roof),
        "source": f"{PEAK_SOURCES[roof.peak_kind].label}: {roof.source}" if not roof.reached else roof.source,
    }


ROOF_COLUMNS = ("line", "intensity", "rate", "dtype", "width", "label", "said", "basis", "source")


def _frame(rows: Sequence[FrameRow], columns: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns))
