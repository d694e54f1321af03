"""Colour, dash and point of a series: an implementation and a dtype look the same on every chart.

Colours come from the theme's palette by the implementation's place in its operation; dashes and points
by the dtype's place in DTYPES. A legend with a single entry is left out. A recorded series has the colour of
the live one of its implementation, and says in its name that it is recorded; its points are hollow.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import altair as alt
import pandas as pd

from gpuexplore.dtypes import DTYPES
from gpuexplore.model import Case, Result
from gpuexplore.operations import operation_named

DASHES = ([10, 4], [1, 0], [8, 3, 2, 3], [5, 3], [2, 2])  # in the order of DTYPES: fp32, the usual one, is solid
POINTS = ("square", "circle", "cross", "diamond", "triangle-up", "triangle-down")
FADED = 0.12
SHORT_NAME, LONG_NAME = 12, 24  # four short entries fit a phone side by side, two that are not long, else one
LABEL_LIMIT = 290  # pixels
RING = "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0ZM0.65,0A0.65,0.65,0,1,0,-0.65,0A0.65,0.65,0,1,0,0.65,0Z"  # an SVG path
NEUTRAL = "#808495"  # the theme has no colour for rules and text: this grey reads on light and on dark


RECORDED = "recorded: "  # stands before the device in the name of a recorded series
PALETTE = 7  # colours of the theme: series that many places apart look alike


def as_recorded(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return results with devices named ``recorded: NVIDIA L4``, which no device of this machine is."""
    names = {result.case.device: result.environment.device.title for result in results if result.environment}
    told = list(names.values())
    labels = {place: name if told.count(name) == 1 else f"{name} ({place})" for place, name in names.items()}
    return tuple(
        replace(
            result, case=replace(result.case, device=f"{RECORDED}{labels.get(result.case.device, result.case.device)}")
        )
        for result in results
    )


def is_recorded(name: str) -> bool:
    """Return whether the name of a series or a device is that of a recorded one."""
    return RECORDED in name


def series_name(case: Case, results: Sequence[Result]) -> str:
    """Return the implementation's name, with the device where there are several or it is a recorded one."""
    told = len({result.case.device for result in results}) > 1 or is_recorded(case.device)
    return f"{case.implementation} · {case.device}" if told else case.implementation


def device_label(device: str, devices: Collection[str]) -> str:
    """Return what a label calls one of `devices`: a recorded one by its name only where there are several."""
    alone = is_recorded(device) and sum(map(is_recorded, devices)) == 1
    return RECORDED.strip(": ") if alone else device


def owner(result: Result, results: Sequence[Result]) -> str:
    """Return what a label calls the device of a result, e.g. ``cpu`` or ``recorded``."""
    return device_label(result.case.device, {one.case.device for one in results})


def series_order(results: Sequence[Result]) -> list[str]:
    """Return every series of the operation, the usual ones first so that they keep their colours, device by device."""
    if not results:
        return []
    devices = dict.fromkeys(result.case.device for result in results)
    rows = operation_named(results[0].case.operation).implementations
    names = [row.name for row in sorted(rows, key=lambda row: row.rung or row.optional)]
    asked = {series_name(result.case, results) for result in results}
    live = [device for device in devices if not is_recorded(device)]
    if len(devices) == 1 or not live:
        order = names
    else:
        every = [f"{name} · {device}" for device in live for name in names]
        order = every if len(live) == 1 else [series for series in every if series in asked]
    recorded = [f"{name} · {device}" for device in devices if is_recorded(device) for name in names]
    return _coloured_alike(order, [series for series in recorded if series in asked])


def _coloured_alike(live: Sequence[str], recorded: Iterable[str]) -> list[str]:
    """Return both, each recorded series at a place with the colour of its implementation, unless that is taken."""
    order, taken = list(live), set()
    for series in recorded:
        name = series.partition(" · ")[0]
        alike = (place for place, one in enumerate(live) if one.partition(" · ")[0] == name)
        place = next(alike, len(order)) % PALETTE
        place = len(order) % PALETTE if place in taken else place
        gap = (place - len(order)) % PALETTE
        order += [f"nobody's place {one}" for one in range(len(order), len(order) + gap)]
        order.append(series)
        taken.add(place)
    return order


def color(points: pd.DataFrame, order: Sequence[str], *, legend: bool) -> alt.Color:
    """Return the colour of a series, the same whatever else is shown."""
    present = [one for one in order if one in set(points["series"])]
    return alt.Color(
        "series:N", scale=alt.Scale(domain=list(order)), legend=_series_legend(present) if legend else None
    )


def dash(points: pd.DataFrame) -> alt.StrokeDash:
    """Return the dash of a dtype; Vega-Lite merges its legend with that of the points."""
    return alt.StrokeDash("dtype:N", scale=_scale(DASHES), legend=_dtype_legend(points))


def shape(points: pd.DataFrame, *, legend: bool) -> alt.Shape:
    """Return the point of a dtype."""
    return alt.Shape("dtype:N", scale=_scale(POINTS), legend=_dtype_legend(points) if legend else None)


def present_dtypes(points: pd.DataFrame) -> list[str]:
    """Return the dtypes of `points` in the order of DTYPES."""
    return [dtype for dtype in DTYPES if dtype in set(points["dtype"])]


def _scale(marks: Sequence[Any]) -> alt.Scale:
    """Return the scale from every dtype to its mark; with more dtypes than marks they repeat."""
    return alt.Scale(domain=list(DTYPES), range=[marks[place % len(marks)] for place in range(len(DTYPES))])


def _series_legend(present: Sequence[str]) -> alt.Legend | None:
    """Return a legend in which a recorded series has a hollow symbol and follows the live one of its implementation."""
    if not any(map(is_recorded, present)):
        return _legend(present, "top")
    implementations = [one.partition(" · ")[0] for one in present]
    paired = sorted(present, key=lambda one: implementations.index(one.partition(" · ")[0]))
    devices = {one.partition(" · ")[2] for one in present}
    said = {
        one: one.replace(place, device_label(place, devices)) for one in present for place in [one.partition(" · ")[2]]
    }
    symbol = alt.expr(f"indexof(datum.value, '{RECORDED}') < 0 ? 'circle' : '{RING}'")
    return _legend(paired, "top", said=said, symbolType=symbol, symbolStrokeWidth=0)


def _dtype_legend(points: pd.DataFrame) -> alt.Legend | None:
    """Return a legend of filled points, without the dash on their outline."""
    return _legend(present_dtypes(points), "bottom", symbolFillColor=NEUTRAL, symbolStrokeWidth=0)


def _legend(
    present: Sequence[str], orient: Literal["top", "bottom"], said: Mapping[str, str] | None = None, **style: Any
) -> alt.Legend | None:
    """Return a legend of what is `present`, each under its own name or the one in `said`; none for a single entry."""
    if len(present) < 2:
        return None
    if said:
        style["labelExpr"] = f"{json.dumps(said, ensure_ascii=False)}[datum.value]"
    longest = max(len((said or {}).get(one, one)) for one in present)
    columns = 4 if longest <= SHORT_NAME else 2 if longest <= LONG_NAME else 1
    limit = LABEL_LIMIT if columns == 1 else 180
    values = list(present)
    return alt.Legend(
        title=None, values=values, orient=orient, columns=columns, labelLimit=limit, symbolOpacity=1, **style
    )
