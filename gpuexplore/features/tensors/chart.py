"""A tensor over its storage: a grid of its elements, and below it the row of cells that they are.

Each element prints its value and, smaller, the index of its cell. Rows have colours, and a cell has that of the first
row it belongs to; hovering over an element or a cell frames all that are the same cell.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from gpuexplore.charts.series import NEUTRAL
from gpuexplore.features.tensors.analysis import Storage, TensorView

ROW_OF_CELLS = 16  # cells of a row: two digits of each fit a phone
MOST_CELLS = 256
GAP = 1.1  # rows between the tensor and its storage, with a heading
HEADING = 0.62
TEXT = alt.ExprRef("luminance(background) > 0.5 ? '#1c2430' : '#e6e9ee'")  # as in the theme
COLORS = 7  # of the theme


def can_draw(view: TensorView, storage: Storage) -> bool:
    """Return whether there are cells, and a picture shows all of them and every element large enough to be read."""
    small = 0 < max(view.element_count, storage.size) <= MOST_CELLS
    return small and _columns(view) <= ROW_OF_CELLS


def tensor_picture(name: str, view: TensorView, storage: Storage) -> alt.LayerChart:
    """Return the elements of `view` in row order, and every cell of its storage.

    Args:
        name: of the tensor, as a reader typed it.
        storage: the one that it looks at; its values must be known.
    """
    elements, height = _elements(view, storage)
    cells, end = _cells(view, storage, top=height + GAP)
    shape = " × ".join(map(str, view.shape)) or "a scalar"
    headings = pd.DataFrame(
        [
            {"x": 0.0, "y": HEADING * 0.6, "said": f"{name}: {shape}"},
            {"x": 0.0, "y": height + GAP - HEADING * 0.5, "said": f"storage {storage.name}: {storage.size} cells"},
        ]
    )
    frame = pd.DataFrame([*elements, *cells])
    width = max(12.0, frame["right"].max())  # fewer cells are no wider
    marks = alt.Chart(headings).mark_text(align="left", fontSize=13, color=NEUTRAL)
    layers = [
        _boxes(frame, width, end),
        *_texts(frame),
        marks.encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("said:N")),
    ]
    height = round(40 * end) + 6
    chart = alt.LayerChart(layer=layers, width="container", height=height, description=_described(name, view, storage))
    return chart.configure_view(stroke=None)


def _described(name: str, view: TensorView, storage: Storage) -> str:
    """Return the alternative text: shape, strides, offset and the cells of the elements."""
    cells = view.cells.ravel().tolist()
    more = len(cells) - ROW_OF_CELLS
    listed = ", ".join(map(str, cells[:ROW_OF_CELLS])) + (f" and {more} more" if more > 0 else "")
    return (
        f"{name} of shape {view.shape}, strides {view.strides}, offset {view.offset} over {storage.size} cells of "
        f"storage {storage.name}: its elements in row order are the cells {listed or 'of nothing: it is empty'}"
    )


def _columns(view: TensorView) -> int:
    return min(view.shape[-1], ROW_OF_CELLS) if view.axes == 1 else view.shape[-1] if view.axes else 1


def _elements(view: TensorView, storage: Storage) -> tuple[list[dict[str, Any]], float]:
    """Return the boxes of the elements, and where they end; more than two axes are blocks below each other."""
    columns = max(1, _columns(view))
    found = []
    block = view.shape[-2] if view.axes > 2 else 0
    lines = 0
    for number, (indices, cell) in enumerate(np.ndenumerate(view.cells)):
        line, column = divmod(number, columns)
        lines = max(lines, line + 1)
        y = HEADING + line + (0.35 * (line // block) if block else 0)
        where = f"[{', '.join(map(str, indices))}]" if indices else "the scalar"
        found.append(_box((column, y), f"element {where}", int(cell), storage, row=line if view.axes > 1 else number))
    return found, HEADING + max(lines, 1) + 0.35 * ((prod(view.shape[:-2]) if block else 1) - 1)


def _cells(view: TensorView, storage: Storage, top: float) -> tuple[list[dict[str, Any]], float]:
    """Return the boxes of the cells, and where they end."""
    columns = max(1, _columns(view))
    rows: dict[int, int] = {}
    for number, cell in enumerate(view.cells.ravel().tolist()):
        rows.setdefault(cell, number // columns if view.axes > 1 else number)
    found = []
    for cell in range(storage.size):
        line, column = divmod(cell, ROW_OF_CELLS)
        found.append(_box((column, top + line), "a cell of the storage", cell, storage, row=rows.get(cell)))
    return found, top + max(1, -(-storage.size // ROW_OF_CELLS))


def _box(corner: tuple[int, float], what: str, cell: int, storage: Storage, *, row: int | None) -> dict[str, Any]:
    column, y = corner
    value = storage.values[cell] if storage.values is not None else None
    return {
        "x": column + 0.04,
        "right": column + 0.96,
        "y": y + 0.04,
        "bottom": y + 0.96,
        "middle": column + 0.5,
        "upper": y + 0.4,
        "lower": y + 0.76,
        "cell": cell,
        "row": None if row is None else str(row % COLORS),
        "value": "?" if value is None else f"{value:g}",
        "index": str(cell),
        "what": what,
        "touched": "touched" if row is not None else "not touched",
    }


def _boxes(frame: pd.DataFrame, width: float, height: float) -> alt.Chart:
    line = alt.ExprRef("luminance(background) > 0.5 ? '#8a93a0' : '#6d7683'")
    same = alt.selection_point(fields=["cell"], on="pointerover", clear="pointerout", empty=False, name="same")
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False))
    color = alt.Color("row:N", legend=None, scale=alt.Scale(domain=[str(number) for number in range(COLORS)]))
    return (
        alt.Chart(frame, name="boxes")
        .mark_rect(cornerRadius=4, fillOpacity=0.3)
        .encode(
            x=x,
            x2=alt.X2("right:Q"),
            y=y,
            y2=alt.Y2("bottom:Q"),
            color=alt.condition("datum.row === null", alt.value("transparent"), color),
            stroke=_channel(alt.StrokeValue, same, TEXT, line),
            strokeWidth=_channel(alt.StrokeWidthValue, same, 3, 1),
            tooltip=[
                alt.Tooltip("what:N", title="This is"),
                alt.Tooltip("cell:Q", title="Cell"),
                alt.Tooltip("value:N", title="Value"),
                alt.Tooltip("touched:N", title="By this tensor"),
            ],
        )
        .add_params(same)
    )


def _channel(kind: Callable[..., Any], when: str | alt.Parameter, then: object, otherwise: object) -> Any:
    """Return a channel of two values: Altair would look through all its classes for the one of a bare condition."""
    return kind(**alt.condition(when, alt.value(then), alt.value(otherwise)))


def _texts(frame: pd.DataFrame) -> Sequence[alt.Chart]:
    opacity = _channel(alt.OpacityValue, "datum.row === null", 0.5, 1)
    base = alt.Chart(frame).encode(x=alt.X("middle:Q"), opacity=opacity)
    values = base.mark_text(fontSize=14, fontWeight=600, color=TEXT).encode(
        y=alt.Y("upper:Q"), text=alt.Text("value:N")
    )
    return values, base.mark_text(fontSize=10, color=TEXT).encode(y=alt.Y("lower:Q"), text=alt.Text("index:N"))
