"""The roofline: FLOP/s against arithmetic intensity on log scales, results below the roofs of their device.

Slopes are bandwidths, flat lines compute rates in the colour of their dtype; thick ones are matrix units.
Solid is from a datasheet or computed, dashed is a microbenchmark, dotted is the best result so far. Filled points were
measured here, hollow ones were recorded or published elsewhere.
"""

from collections.abc import Sequence
from math import log10
from typing import Any, Literal

import altair as alt

from gpuexplore.analysis.roofline import Point
from gpuexplore.analysis.roofs import Roof, memory_ridges
from gpuexplore.charts.axes import log_ticks, si_label
from gpuexplore.charts.palette import SCALE_OF_DTYPES
from gpuexplore.charts.reference_lines import with_halo
from gpuexplore.charts.roofline_frames import (
    BASES,
    RooflineWindow,
    flat_roofs,
    frame_of_points,
    labels_of_flat,
    labels_of_slopes,
    ridge_marks,
    sloped_roofs,
    window,
)
from gpuexplore.charts.series import NEUTRAL, POINTS, RING
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Origin
from gpuexplore.core.units import format_flop_per_s, format_intensity, format_percent

HEIGHT = 600  # with legends and axes
POINT_SIZE = 75
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
ROOF_TOOLTIPS = {"label": "Roof", "said": "Rate", "basis": "Kind", "source": "Source"}
RIDGE_TOOLTIPS = {"label": "Ridge point", "said": "Intensity"}
SCALE_OF_SHAPES = alt.Scale(domain=list(FORMATS), range=[POINTS[index % len(POINTS)] for index in range(len(FORMATS))])
ORIGINS = [origin.label for origin in (Origin.LIVE, Origin.RECORDED, Origin.PUBLISHED)]
SCALE_OF_ORIGINS = alt.Scale(domain=ORIGINS, range=[POINT_SIZE] * len(ORIGINS))
# The angle of a slope of 1 depends on the pixels a decade takes, so the browser has to work it out.
NARROW = "width < 400"  # a phone: labels without figures, which the axis and the tooltip give
ANGLE = "-atan2(height / {rate_decades}, width / {intensity_decades}) * 180 / PI"


def roofline(roofs: Sequence[Roof], points: Sequence[Point]) -> alt.LayerChart:
    """Return the roofline of a device with `points` on it; a click on one selects its run under `OPENED`."""
    seen = window(roofs, points)
    opened = alt.selection_point(name=OPENED, fields=["run"], on="click", empty=False)
    dtypes = [*(point.dtype for point in points), *(roof.dtype for roof in roofs if roof.dtype)]
    layers = [
        *_roof_lines(roofs, seen, dtypes),
        *_ridges(roofs, seen),
        *_points(points, seen, dtypes, opened),
        *_labels(roofs, seen),
    ]
    chart: alt.LayerChart = alt.LayerChart(layer=layers).resolve_scale(color="shared")
    return chart.properties(width="container", height=HEIGHT, description=describe_roofline(roofs, points))


def describe_roofline(roofs: Sequence[Roof], points: Sequence[Point]) -> str:
    """Return the alternative text: the limits, the ridges with memory and how many points there are."""
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


def _x(seen: RooflineWindow) -> alt.X:
    ticks = [
        log_tick for log_tick in log_ticks([seen.intensity_low, seen.intensity_high]) if log10(log_tick).is_integer()
    ]
    axis = alt.Axis(
        values=ticks, labelExpr="format(datum.value, datum.value < 1 ? '~r' : ',~r')", grid=True, labelFlush=False
    )
    scale = alt.Scale(type="log", nice=False, domain=[seen.intensity_low, seen.intensity_high])
    return alt.X("intensity:Q", title="Arithmetic intensity, FLOP/byte", axis=axis, scale=scale)


def _y(seen: RooflineWindow) -> alt.Y:
    ticks = [log_tick for log_tick in log_ticks([seen.rate_low, seen.rate_high]) if log10(log_tick).is_integer()]
    scale = alt.Scale(type="log", nice=False, domain=[seen.rate_low, seen.rate_high])
    return alt.Y("rate:Q", title="Compute rate", axis=alt.Axis(values=ticks, labelExpr=si_label("FLOP/s")), scale=scale)


def _roof_lines(roofs: Sequence[Roof], seen: RooflineWindow, dtypes: Sequence[str]) -> list[alt.Chart]:
    slopes, flats = sloped_roofs(roofs, seen), flat_roofs(roofs, seen)
    dash = alt.StrokeDash(
        "basis:N",
        scale=alt.Scale(domain=list(BASES), range=[[1, 0], [8, 4], [2, 3]]),
        legend=_legend([*slopes["basis"], *flats["basis"]], BASES, "bottom", symbolSize=700, symbolStrokeWidth=2),
    )
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in ROOF_TOOLTIPS.items()]
    base = {"x": _x(seen), "y": _y(seen), "detail": alt.Detail("line:N"), "strokeDash": dash, "tooltip": words}
    width = alt.StrokeWidth("width:Q", scale=None)
    slope = alt.Chart(slopes).mark_line(color=NEUTRAL, clip=True).encode(**base, strokeWidth=width)
    flat = alt.Chart(flats).mark_line(clip=True).encode(**base, strokeWidth=width, color=_color(dtypes))
    return [slope, flat]


def _ridges(roofs: Sequence[Roof], seen: RooflineWindow) -> list[alt.Chart]:
    frame = ridge_marks(roofs, seen)
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in RIDGE_TOOLTIPS.items()]
    base = alt.Chart(frame).encode(x=_x(seen), y=_y(seen), tooltip=words)
    marks = base.mark_point(shape="diamond", filled=True, color=NEUTRAL, opacity=1, clip=True).encode(
        size=alt.Size("size:Q", scale=None)
    )
    text = base.transform_filter("datum.text != ''").mark_text(
        align="left", baseline="top", dx=6, dy=5, color=NEUTRAL, fontSize=11
    )
    return [marks, *with_halo(text.encode(text=alt.Text("text:N")))]


def _points(
    points: Sequence[Point], seen: RooflineWindow, dtypes: Sequence[str], opened: alt.Parameter
) -> list[alt.Chart]:
    frame = frame_of_points(points)
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in POINT_TOOLTIPS.items()]
    base = alt.Chart(frame).encode(x=_x(seen), y=_y(seen))
    color, shape = _color(dtypes), alt.Shape("dtype:N", scale=SCALE_OF_SHAPES, legend=_dtype_legend(dtypes))
    size = alt.Size("origin:O", scale=SCALE_OF_ORIGINS, legend=_origin_legend([*frame["origin"]]))
    live = f"datum.origin == '{Origin.LIVE.label}'"
    filled, hollow = (
        base.transform_filter(kept)
        .mark_point(filled=solid, strokeWidth=1.8, opacity=0.9, cursor="pointer")
        .encode(color=color, shape=shape, size=size, tooltip=words)
        for kept, solid in ((live, True), (f"!({live})", False))
    )
    text = base.transform_filter("datum.text != ''").mark_text(align="left", baseline="middle", dx=9, color=NEUTRAL)
    return [hollow, filled.add_params(opened), *with_halo(text.encode(text=alt.Text("text:N")))]


def _labels(roofs: Sequence[Roof], seen: RooflineWindow) -> list[alt.Chart]:
    flats, slopes = labels_of_flat(roofs, seen), labels_of_slopes(roofs, seen)
    flat = alt.Chart(flats).mark_text(align="right", baseline="bottom", dx=-2, dy=-4, color=NEUTRAL, fontSize=12)
    angle = ANGLE.format(rate_decades=seen.rate_decades, intensity_decades=seen.intensity_decades)
    slope = alt.Chart(slopes).mark_text(
        align="left", baseline="bottom", dx=10, dy=-3, color=NEUTRAL, fontSize=12, angle=alt.expr(angle)
    )
    said = f"{NARROW} ? datum.short : datum.label"
    said_at = [
        labels.transform_calculate(said=said).encode(x=_x(seen), y=_y(seen), text=alt.Text("said:N"))
        for labels in (flat, slope)
    ]
    return [layer for labels in said_at for layer in with_halo(labels)]


def _color(dtypes: Sequence[str]) -> alt.Color:
    return alt.Color("dtype:N", scale=SCALE_OF_DTYPES, legend=_dtype_legend(dtypes))


def _dtype_legend(dtypes: Sequence[str]) -> alt.Legend | None:
    return _legend(dtypes, list(FORMATS), "top")


def _origin_legend(origins: Sequence[str]) -> alt.Legend | None:
    """Return a legend whose symbols are hollow for what was not measured here."""
    symbol = alt.expr(f"datum.value == '{Origin.LIVE.label}' ? 'circle' : '{RING}'")
    return _legend(origins, ORIGINS, "bottom", symbolType=symbol, symbolFillColor=NEUTRAL, symbolStrokeWidth=0)


def _legend(
    present: Sequence[str], order: Sequence[str], orient: Literal["top", "bottom"], **style: Any
) -> alt.Legend | None:
    """Return a legend of what is drawn, in `order`; none for a single entry that is the usual one, the first."""
    values = [name for name in order if name in set(present)]
    if not values or values == order[:1] or (len(values) < 2 and orient == "top"):
        return None
    columns = 1 if orient == "bottom" else 4 if len(values) <= 4 else 3  # what fits a phone
    return alt.Legend(
        title=None, values=values, orient=orient, columns=columns, labelLimit=260, symbolOpacity=1, **style
    )
