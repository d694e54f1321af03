"""An array as its rows and columns: what a warp requests at a step, the sectors it lies in, what was touched before.

Whole sectors are moved: what of them was not requested has a colour of its own, so that waste is seen as area.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from gpuexplore.charts.series import NEUTRAL
from gpuexplore.features.machine_code.analysis.memory_access import elements_of, request_of, sector_elements, touched
from gpuexplore.kernels.ptx import Access, TraceStep
from gpuexplore.measure.check.interpreted import RunArray

REQUESTED = "requested"
UNUSED = "moved but unused"
BEFORE = "touched before"
REQUESTED_COLOR = alt.ExprRef("luminance(background) > 0.5 ? '#1f66b0' : '#66bffd'")
UNUSED_COLOR = alt.ExprRef("luminance(background) > 0.5 ? '#f5c98a' : '#8a5a1c'")
ON_REQUESTED = alt.ExprRef("luminance(background) > 0.5 ? '#ffffff' : '#0f151d'")
EDGE = alt.ExprRef("luminance(background) > 0.5 ? '#ffffff' : '#15191f'")
FRAME = alt.ExprRef("luminance(background) > 0.5 ? '#aab4c0' : '#5b6673'")
COLORS = alt.Scale(
    domain=[REQUESTED, UNUSED, BEFORE],
    range=[REQUESTED_COLOR, UNUSED_COLOR, alt.ExprRef("luminance(background) > 0.5 ? '#dbe3ec' : '#2e3a48'")],
)
LEGEND = alt.Legend(title=None, orient="top", columns=3, labelLimit=200, symbolType="square", symbolStrokeWidth=0)
SHOWN = 16  # rows and columns around a step that needs no more
ROW_HEIGHT = 16
AROUND = 92  # pixels of title, axis and legend
MOST_LINES = 64  # of a grid between elements
LETTER = 5.2  # pixels
PADDING = 1  # pixels around a label
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArrayWindow:
    """The rows and columns of an array that are shown: the first, and one past the last."""

    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def around(cls, elements: Sequence[int], array: RunArray) -> "ArrayWindow":
        """Return the whole array, or where it is large a part with the elements."""
        rows, columns = grid_of(array)
        if not elements:
            return cls(0, rows, 0, columns)
        y, x = np.divmod(np.array(elements), columns)
        return cls(*_part(int(y.min()), int(y.max()), rows), *_part(int(x.min()), int(x.max()), columns))

    def title(self, array: RunArray) -> str:
        """Return the name and shape of an array, and which part of it is shown."""
        rows, columns = grid_of(array)
        shape = " × ".join(f"{length:,}" for length in array.shape)
        parts = []
        if self.bottom - self.top < rows:
            parts.append(f"rows {self.top} to {self.bottom - 1}")
        if self.right - self.left < columns:
            parts.append(f"columns {self.left} to {self.right - 1}")
        return f"{array.name}, {shape}{': ' if parts else ''}{', '.join(parts)}"


def grid_of(array: RunArray) -> tuple[int, int]:
    """Return the rows and columns an array is shown in: its last axis lies across, a vector is wrapped."""
    count = prod(array.shape)
    columns = min(count, 32) if len(array.shape) == 1 else array.shape[-1]
    return -(-count // columns), columns


def array_picture(array: RunArray, access: Access, before: Iterable[TraceStep]) -> alt.LayerChart:
    """Return the part of an array that an access touches, with the numbers of the lanes.

    Args:
        array: one that it touches.
        access: of a warp, to device memory.
        before: the block's steps until then.
    """
    elements = elements_of(access, array)
    window = ArrayWindow.around([*elements, *(end for pair in sector_elements(access, array) for end in pair)], array)
    rows = list(_rows(array, access, touched(before, array)))
    height = AROUND + min(520, max(96, ROW_HEIGHT * (window.bottom - window.top)))
    return _drawn(rows, window, (window.title(array), height), described(array, access))


def array_overview(array: RunArray, access: Access | None, before: Iterable[TraceStep]) -> alt.LayerChart:
    """Return a whole array, small and without numbers: what was touched until then, and the access if there was one."""
    window = ArrayWindow.around([], array)
    rows = list(_rows(array, access, touched(before, array)))
    for row in rows:
        row["lanes"] = ""
    said = described(array, access) if access is not None else f"{window.title(array)}: not touched yet"
    return _drawn(rows, window, (window.title(array), 194), said, legend=None)


def described(array: RunArray, access: Access) -> str:
    """Return the alternative text: how many elements, in how many sectors, and which the first lanes touch."""
    elements = elements_of(access, array)
    first = [f"lane {lanes[0]}: {list(map(int, np.unravel_index(at, array.shape)))}" for at, lanes in elements.items()]
    return (
        f"{ArrayWindow.around([], array).title(array)}: "
        f"{len(elements)} elements in {request_of(access).sectors} sectors; "
        f"{', '.join(first[:4])}{' …' if len(first) > 4 else ''}"
    )


def lanes_label(lanes: Sequence[int]) -> str:
    """Return e.g. `3`, `0–15` or `0,16`."""
    if len(lanes) == 1:
        return str(lanes[0])
    if list(lanes) == list(range(lanes[0], lanes[-1] + 1)):
        return f"{lanes[0]}–{lanes[-1]}"
    return f"{lanes[0]},{lanes[1]}{'…' if len(lanes) > 2 else ''}"


def _part(first: int, last: int, length: int) -> tuple[int, int]:
    """Return where the part of an axis begins and ends that covers `first` to `last`, in steps of eight elements."""
    start = first // 8 * 8
    end = min(length, max(start + SHOWN, -(-(last + 1) // 8) * 8))
    return max(0, min(start, end - SHOWN)), end


def _rows(array: RunArray, access: Access | None, before: npt.NDArray[np.bool_]) -> Iterator[Row]:
    """Yield the boxes, those below the others first."""
    _, columns = grid_of(array)
    for first, last in _runs(before):
        yield from _boxes((first, last), columns, BEFORE, ())
    if access is None:
        return
    for first, last in sector_elements(access, array):
        yield from _boxes((first, last), columns, UNUSED, ())
    elements = elements_of(access, array)
    for at in [at for at in elements if elements.get(at - 1) != elements[at] or at % columns == 0]:
        end = at
        while elements.get(end + 1) == elements[at] and (end + 1) % columns:
            end += 1
        yield from _boxes((at, end), columns, REQUESTED, elements[at])


def _runs(marked: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and the last index of each run of marked elements."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def _boxes(elements: tuple[int, int], columns: int, what: str, lanes: tuple[int, ...]) -> Iterator[Row]:
    """Yield the boxes of neighbouring elements, one in each row that they reach into."""
    first, last = elements
    for row in range(first // columns, last // columns + 1):
        x = max(first, row * columns) - row * columns
        end = min(last, (row + 1) * columns - 1) - row * columns
        yield {
            "x": x,
            "right": end + 1,
            "middle": (x + end + 1) / 2,
            "y": row,
            "bottom": row + 1,
            "center": row + 0.5,
            "what": what,
            "lanes": lanes_label(lanes) if lanes else "",
            "element": f"row {row}, column {x}" + (f" to {end}" if end > x else ""),
        }


def _drawn(
    rows: Sequence[Row],
    window: ArrayWindow,
    size: tuple[str, int],
    description: str,
    *,
    legend: alt.Legend | None = LEGEND,
) -> alt.LayerChart:
    title, height = size
    frame = pd.DataFrame(
        [
            row
            for row in rows
            if bool(window.top <= row["y"] < window.bottom and row["right"] > window.left and row["x"] < window.right)
        ],
        columns=["x", "right", "middle", "y", "bottom", "center", "what", "lanes", "element"],
    )
    across = alt.Scale(domain=[window.left, window.right], nice=False, zero=False)
    down = alt.Scale(domain=[window.bottom, window.top], nice=False, zero=False)
    x = alt.X("x:Q", scale=across, axis=_axis(window.left, window.right, "top", coarse=legend is None))
    y = alt.Y("y:Q", scale=down, axis=_axis(window.top, window.bottom, "left", coarse=legend is None))
    words = [alt.Tooltip("element:N", title="Element"), alt.Tooltip("lanes:N", title="Lanes"), alt.Tooltip("what:N")]
    color = alt.Color("what:N", scale=COLORS, legend=legend)
    boxes = alt.Chart(frame).mark_rect(strokeWidth=0.5 if legend else 0, stroke=EDGE, clip=True)
    fits = (
        f"(datum.right - datum.x) * width / {window.right - window.left} > {LETTER} * length(datum.lanes) + {PADDING}"
    )
    labels = (
        alt.Chart(frame)
        .transform_filter(f"datum.lanes != '' && {fits}")
        .mark_text(fontSize=9.5, color=ON_REQUESTED, clip=True)
        .encode(x=alt.X("middle:Q", scale=across), y=alt.Y("center:Q", scale=down), text=alt.Text("lanes:N"))
    )
    layers = [
        boxes.encode(x=x, x2=alt.X2("right:Q"), y=y, y2=alt.Y2("bottom:Q"), color=color, tooltip=words),
        framed(window, across, down),
        labels,
    ]
    heading = alt.TitleParams(title, anchor="start", fontSize=13, fontWeight=600, color=NEUTRAL, offset=8)
    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(
        width="container", height=height, title=heading, description=description
    )
    return chart


def framed(window: ArrayWindow, across: alt.Scale, down: alt.Scale) -> alt.Chart:
    """Return the edge of what is shown."""
    edge: alt.Chart = (
        alt.Chart(pd.DataFrame([{"x": window.left, "right": window.right, "y": window.top, "bottom": window.bottom}]))
        .mark_rect(fillOpacity=0, stroke=FRAME, strokeWidth=1)
        .encode(x=alt.X("x:Q", scale=across), x2="right:Q", y=alt.Y("y:Q", scale=down), y2="bottom:Q")
    )
    return edge


def _axis(first: int, end: int, orient: Literal["top", "left"], *, coarse: bool) -> alt.Axis:
    """Return an axis with a line between elements, where they are large enough for it, and some of their numbers."""
    lines = 8 if coarse or end - first > MOST_LINES else 1
    numbered = 4 if end - first <= SHOWN else 8 if end - first <= MOST_LINES else 32
    values = list(range(first, end, lines))
    return alt.Axis(
        title=None,
        orient=orient,
        values=values,
        tickCount=len(values),  # Vega leaves out values beyond its own count
        labelExpr=f"datum.value % {numbered} == 0 ? datum.label : ''",
        format="d",
        labelOverlap=False,
        ticks=False,
        domain=False,
        grid=True,
        gridColor=FRAME,
        gridOpacity=0.35,
        zindex=0,
    )
