"""Pictures of a block: arrays with what a warp requests at a step, the banks of shared memory, and waits at barriers.

Whole sectors are moved: what of them was not requested has a colour of its own, so that waste is seen as area.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from gpuexplore.charts.series import NEUTRAL
from gpuexplore.features.machine_code.analysis.block_steps import (
    ROW_BYTES,
    SECTOR_BYTES,
    BarrierInterval,
    collisions,
    elements_of,
    passes_of,
    request_of,
    touched,
    wanted_words,
)
from gpuexplore.kernels.ptx import BANKS, Access, TraceStep
from gpuexplore.measure.check.interpreted import RunArray

REQUESTED_COLOR = alt.ExprRef("luminance(background) > 0.5 ? '#1f66b0' : '#66bffd'")
UNUSED_COLOR = alt.ExprRef("luminance(background) > 0.5 ? '#f5c98a' : '#8a5a1c'")
ON_REQUESTED = alt.ExprRef("luminance(background) > 0.5 ? '#ffffff' : '#0f151d'")
EDGE = alt.ExprRef("luminance(background) > 0.5 ? '#ffffff' : '#15191f'")
FRAME = alt.ExprRef("luminance(background) > 0.5 ? '#aab4c0' : '#5b6673'")
COLORS = alt.Scale(
    domain=["requested", "moved but unused", "touched before"],
    range=[REQUESTED_COLOR, UNUSED_COLOR, alt.ExprRef("luminance(background) > 0.5 ? '#dbe3ec' : '#2e3a48'")],
)
LEGEND = alt.Legend(title=None, orient="top", columns=3, labelLimit=200, symbolType="square", symbolStrokeWidth=0)
SHOWN = 16  # rows and columns around a step that needs no more
ROW_HEIGHT = 16
AROUND = 92  # pixels of title, axis and legend
LETTER = 5.2  # pixels
PADDING = 1  # pixels around a label
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _ArrayWindow:
    """The rows and columns of an array that are shown: the first, and one past the last."""

    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def around(cls, elements: Sequence[int], array: RunArray) -> "_ArrayWindow":
        """Return the whole array, or where it is large a part with the elements."""
        rows, columns = _grid_of(array)
        if not elements:
            return cls(0, rows, 0, columns)
        y, x = np.divmod(np.array(elements), columns)
        return cls(*_part(int(y.min()), int(y.max()), rows), *_part(int(x.min()), int(x.max()), columns))

    def title(self, array: RunArray) -> str:
        """Return the name and shape of an array, and which part of it is shown."""
        rows, columns = _grid_of(array)
        shape = " × ".join(f"{length:,}" for length in array.shape)
        parts = []
        if self.bottom - self.top < rows:
            parts.append(f"rows {self.top} to {self.bottom - 1}")
        if self.right - self.left < columns:
            parts.append(f"columns {self.left} to {self.right - 1}")
        return f"{array.name}, {shape}{': ' if parts else ''}{', '.join(parts)}"


def _grid_of(array: RunArray) -> tuple[int, int]:
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
    window = _ArrayWindow.around([*elements, *(end for pair in _sector_elements(access, array) for end in pair)], array)
    rows = list(_rows(array, access, touched(before, array)))
    height = AROUND + min(520, max(96, ROW_HEIGHT * (window.bottom - window.top)))
    return _drawn(rows, window, (window.title(array), height), _described(array, access))


def _sector_elements(access: Access, array: RunArray) -> list[tuple[int, int]]:
    """Return the first and the last element of an array within each sector that an access touches."""
    inside = {element * array.item_bytes for element in elements_of(access, array)}
    sectors = sorted({(array.address + at) // SECTOR_BYTES for at in inside})
    each = SECTOR_BYTES // array.item_bytes
    firsts = [(sector * SECTOR_BYTES - array.address) // array.item_bytes for sector in sectors]
    last = array.size_bytes // array.item_bytes - 1
    return [(max(0, first), min(last, first + each - 1)) for first in firsts]


def array_overview(array: RunArray, access: Access | None, before: Iterable[TraceStep]) -> alt.LayerChart:
    """Return a whole array, small and without numbers: what was touched until then, and the access if there was one."""
    window = _ArrayWindow.around([], array)
    rows = list(_rows(array, access, touched(before, array)))
    for row in rows:
        row["lanes"] = ""
    said = _described(array, access) if access is not None else f"{window.title(array)}: not touched yet"
    return _drawn(rows, window, (window.title(array), 194), said, legend=None)


def _described(array: RunArray, access: Access) -> str:
    """Return the alternative text: how many elements, in how many sectors, and which the first lanes touch."""
    elements = elements_of(access, array)
    first = [f"lane {lanes[0]}: {list(map(int, np.unravel_index(at, array.shape)))}" for at, lanes in elements.items()]
    return (
        f"{_ArrayWindow.around([], array).title(array)}: "
        f"{len(elements)} elements in {request_of(access).sectors} sectors; "
        f"{', '.join(first[:4])}{' …' if len(first) > 4 else ''}"
    )


def _lanes_label(lanes: Sequence[int]) -> str:
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


def _rows(array: RunArray, access: Access | None, before: np.typing.NDArray[np.bool_]) -> Iterator[Row]:
    """Yield the boxes, those below the others first."""
    _, columns = _grid_of(array)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], before, [False]]).astype(np.int8)))
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield from _boxes((first, end - 1), columns, "touched before", ())
    if access is None:
        return
    for first, last in _sector_elements(access, array):
        yield from _boxes((first, last), columns, "moved but unused", ())
    elements = elements_of(access, array)
    for at in [at for at in elements if elements.get(at - 1) != elements[at] or at % columns == 0]:
        end = at
        while elements.get(end + 1) == elements[at] and (end + 1) % columns:
            end += 1
        yield from _boxes((at, end), columns, "requested", elements[at])


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
            "lanes": _lanes_label(lanes) if lanes else "",
            "element": f"row {row}, column {x}" + (f" to {end}" if end > x else ""),
        }


def _drawn(
    rows: Sequence[Row],
    window: _ArrayWindow,
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
    x = alt.X("x:Q", scale=across, axis=_element_axis(window.left, window.right, "top", coarse=legend is None))
    y = alt.Y("y:Q", scale=down, axis=_element_axis(window.top, window.bottom, "left", coarse=legend is None))
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
        _framed(window, across, down),
        labels,
    ]
    heading = alt.TitleParams(title, anchor="start", fontSize=13, fontWeight=600, color=NEUTRAL, offset=8)
    return alt.LayerChart(layer=layers).properties(
        width="container", height=height, title=heading, description=description
    )


def _framed(window: _ArrayWindow, across: alt.Scale, down: alt.Scale) -> alt.Chart:
    """Return the edge of what is shown."""
    return (
        alt.Chart(pd.DataFrame([{"x": window.left, "right": window.right, "y": window.top, "bottom": window.bottom}]))
        .mark_rect(fillOpacity=0, stroke=FRAME, strokeWidth=1)
        .encode(x=alt.X("x:Q", scale=across), x2="right:Q", y=alt.Y("y:Q", scale=down), y2="bottom:Q")
    )


def _element_axis(first: int, end: int, orient: Literal["top", "left"], *, coarse: bool) -> alt.Axis:
    """Return an axis with a line between elements, where they are large enough for it, and some of their numbers."""
    most_lines = 64
    numbered = 4 if end - first <= SHOWN else 8 if end - first <= most_lines else 32
    return _axis(range(first, end, 8 if coarse or end - first > most_lines else 1), orient, numbered=numbered)


def _axis(values: Sequence[int], orient: Literal["top", "left"], *, numbered: int) -> alt.Axis:
    return alt.Axis(
        title=None,
        orient=orient,
        values=list(values),
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


FIRST = "in the first pass of its bank"
CONFLICT = "bank conflict"


def bank_picture(access: Access, title: str) -> alt.LayerChart:
    """Return a row for each 128 bytes that are touched, a column for each bank, and the lanes in their words."""
    wanted = wanted_words(access)
    rows = sorted({word.word // BANKS for word in wanted})
    frame = pd.DataFrame(
        [
            {
                "bank": word.bank,
                "right": word.bank + 1,
                "middle": word.bank + 0.5,
                "row": row,
                "bottom": row + 1,
                "center": row + 0.5,
                "what": FIRST if word.turn == 1 else CONFLICT,
                "lanes": _lanes_label(word.lanes),
                "bytes": f"{word.word * 4} to {word.word * 4 + 3}",
                "wavefront": word.wavefront,
            }
            for word in wanted
            for row in (rows.index(word.word // BANKS),)
        ],
        columns=["bank", "right", "middle", "row", "bottom", "center", "what", "lanes", "bytes", "wavefront"],
    )
    across = alt.Scale(domain=[0, BANKS], nice=False)
    down = alt.Scale(domain=[len(rows), 0], nice=False)
    starts = "[" + ",".join(str(row * ROW_BYTES) for row in rows) + "]"
    left = alt.Axis(
        title="byte", values=[row + 0.5 for row in range(len(rows))], grid=False, domain=False, ticks=False,
        labelExpr=f"{starts}[floor(datum.value)]", tickCount=len(rows),
    )  # fmt: skip
    conflict_color = alt.ExprRef("luminance(background) > 0.5 ? '#c0392b' : '#ff7f6b'")
    colors = alt.Scale(domain=[FIRST, CONFLICT], range=[REQUESTED_COLOR, conflict_color])
    words = [
        alt.Tooltip("bank:Q", title="Bank"),
        alt.Tooltip("bytes:N", title="Byte"),
        alt.Tooltip("lanes:N", title="Lanes"),
        alt.Tooltip("wavefront:Q", title="Wavefront"),
    ]
    boxes = (
        alt.Chart(frame)
        .mark_rect(strokeWidth=0.5, stroke=EDGE)
        .encode(
            x=alt.X("bank:Q", scale=across, axis=_axis(range(BANKS), "top", numbered=4)),
            x2="right:Q",
            y2="bottom:Q",
            tooltip=words,
        )
        .encode(y=alt.Y("row:Q", scale=down, axis=left), color=alt.Color("what:N", scale=colors, legend=LEGEND))
    )
    labels = (
        alt.Chart(frame)
        .transform_filter(f"width / {BANKS} > {LETTER} * length(datum.lanes) + {PADDING}")
        .mark_text(fontSize=9.5, color=ON_REQUESTED)
        .encode(x=alt.X("middle:Q", scale=across), y=alt.Y("center:Q", scale=down), text=alt.Text("lanes:N"))
    )
    return alt.LayerChart(
        layer=[boxes, _framed(_ArrayWindow(0, len(rows), 0, BANKS), across, down), labels]
    ).properties(
        width="container",
        height=AROUND + max(48, ROW_HEIGHT * len(rows)),
        title=alt.TitleParams(title, anchor="start", fontSize=13, fontWeight=600, color=NEUTRAL, offset=8),
        description=_banks_described(access, title),
    )


def _banks_described(access: Access, title: str) -> str:
    """Return the alternative text: words, wavefronts, and the first bank of which several words are wanted."""
    wanted = wanted_words(access)
    taken, fewest = passes_of(access)
    summary = f"{title}: {len(wanted)} words in {taken} wavefronts, of {fewest} at least"
    if not collisions(wanted):
        return f"{summary}; no bank conflict"
    bank, lanes = collisions(wanted)[0]
    return f"{summary}; lanes {', '.join(map(str, lanes))} want different words of bank {bank}"


WORKS = "works"
WAITS = "waits at a barrier"


def warp_timeline(intervals: Sequence[BarrierInterval], now: int, steps: int) -> alt.LayerChart:
    """Return the warps over the block's steps, and a rule where one is.

    Args:
        intervals: what the warps do between barriers.
        now: number of the step that is looked at.
        steps: how many there are.
    """
    frame = pd.DataFrame(
        [row for interval in intervals for row in _interval_rows(interval)],
        columns=["warp", "first", "last", "what", "said"],
    )
    few = 8
    warps = [f"warp {number}" for number in sorted({interval.warp for interval in intervals})]
    scale = alt.Scale(domain=[0.5, steps + 0.5], nice=False, zero=False)
    axis = alt.Axis(title="step of the block, in the order run here", grid=False, tickMinStep=1, format="d")
    y = alt.Y(
        "warp:N", sort=warps, title=None, scale=alt.Scale(domain=warps), axis=alt.Axis(labelOverlap=len(warps) > few)
    )
    words = [alt.Tooltip("warp:N", title="Warp"), alt.Tooltip("said:N", title="Steps"), alt.Tooltip("what:N")]
    color = alt.Color(
        "what:N", scale=alt.Scale(domain=[WORKS, WAITS], range=[REQUESTED_COLOR, UNUSED_COLOR]), legend=LEGEND
    )
    bars = alt.Chart(frame).mark_bar(height={"band": 0.62}).encode(
        x=alt.X("first:Q", scale=scale, axis=axis), x2="last:Q", y=y, color=color, tooltip=words
    )  # fmt: skip
    rule = (
        alt.Chart(pd.DataFrame({"now": [now]}))
        .mark_rule(strokeWidth=2, color=alt.ExprRef("luminance(background) > 0.5 ? '#0f151d' : '#e6e9ee'"))
        .encode(x=alt.X("now:Q", scale=scale))
    )
    return alt.LayerChart(layer=[bars, rule]).properties(
        width="container",
        height=AROUND + (22 if len(warps) <= few else 13) * max(1, len(warps)),
        description=_described_warps(intervals, now),
    )


def _described_warps(intervals: Sequence[BarrierInterval], now: int) -> str:
    """Return the alternative text: which warps wait and which work or have still to begin."""
    waiting = [
        interval.warp for interval in intervals if interval.released and interval.last <= now < interval.released
    ]
    count = len({interval.warp for interval in intervals})
    met = len({interval.phase for interval in intervals}) - 1
    named = f"warp{'s' if len(waiting) > 1 else ''} {', '.join(map(str, waiting))}" if waiting else "no warp"
    return (
        f"{count} warps that meet {met} times; at step {now} {named} wait{'' if len(waiting) > 1 else 's'} at a barrier"
    )


def _interval_rows(interval: BarrierInterval) -> Iterator[dict[str, object]]:
    spans = [(WORKS, interval.first, interval.first - 0.5, interval.last)]
    if interval.released is not None and interval.released > interval.last:
        spans.append((WAITS, interval.last, interval.last + 0.5, interval.released))
    for what, first, start, last in spans:
        said = f"{first} to {last}"
        yield {"warp": f"warp {interval.warp}", "first": start, "last": last + 0.5, "what": what, "said": said}
