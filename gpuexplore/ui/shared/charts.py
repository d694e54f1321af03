"""Charts on a page, made once for all who look at the same thing: making one takes a twentieth of a second."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import Any, Literal

import altair as alt
import pyarrow as pa
import streamlit as st

from gpuexplore.charts.quick_altair import quick_altair
from gpuexplore.ui.shared import Shared

Spec = Mapping[str, Any]
Drawn = alt.TopLevelMixin | dict[str, Any]  # by Altair, or Vega-Lite with the rows of its layers in it
CHARTS: Shared[Spec] = Shared(300)
_ALTAIR = Lock()  # its settings are those of the process


def show_chart(build: Callable[[], Drawn], of: Hashable, *, key: str, on_select: Any = "ignore") -> Any:
    """Show a chart, and return what was selected in it.

    Args:
        build: makes the chart.
        of: everything that decides how it looks.
        key: of the element; with `of` it names the chart for all visitors.
        on_select: as in Streamlit.
    """
    return show_spec(chart_of(build, of, key=key), key=key, on_select=on_select)


def chart_of(build: Callable[[], Drawn], of: Hashable, *, key: str) -> Spec:
    """Return a chart as `show_spec` takes it, made once for all who look at the same thing; see `show_chart`."""
    return CHARTS.get((key, of), lambda: spec_of(build))


def show_spec(
    spec: Spec, *, key: str, on_select: Any = "ignore", height: Literal["content", "stretch"] = "content"
) -> Any:
    """Show a chart that `spec_of` made."""
    return st.vega_lite_chart(dict(spec), key=key, on_select=on_select, height=height)


def spec_of(build: Callable[[], Drawn]) -> Spec:
    """Return a chart as Streamlit sends it: Vega-Lite, unchecked (tests do that), and its data as Arrow streams."""
    named: list[tuple[Any, str]] = []
    streams: dict[str, bytes] = {}
    with _ALTAIR, quick_altair(), alt.data_transformers.enable(ARROW, named=named, streams=streams):
        found: dict[str, Any] = made if isinstance(made := build(), dict) else made.to_dict(validate=False)
    for part in (found, *found.get("layer", ())):
        if "values" in part.get("data", {}):
            part["data"] = _named(_columns(part["data"]["values"]), streams)
    values = found.get("datasets", {}).items()
    found["datasets"] = {name: _stream(_columns(records)) for name, records in values} | streams
    return found


def _named(table: pa.Table, streams: dict[str, bytes]) -> dict[str, str]:
    """Put a table among `streams`, and return the name it has there, which goes by its content."""
    data = _stream(table)
    name = f"data-{sha256(data).hexdigest()[:32]}"
    streams[name] = data
    return {"name": name}


def _name_frame(frame: Any, *, named: list[tuple[Any, str]], streams: dict[str, bytes]) -> dict[str, str]:
    """Put the data of a layer among `streams`, and return its name there: most layers share theirs."""
    if (name := next((known for other, known in named if other is frame), "")) == "":
        name = _named(pa.table({column: _array(frame[column].tolist()) for column in frame}), streams)["name"]
        named.append((frame, name))
    return {"name": name}


def _array(values: list[Any]) -> pa.Array:
    """Return a column; words that repeat are sent once."""
    array = pa.array(values, from_pandas=True)
    repeats = pa.types.is_string(array.type) and 4 * len(set(values)) < len(values)
    return array.dictionary_encode() if repeats else array


def _columns(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = dict.fromkeys(name for record in records for name in record)
    return pa.table({name: _array([record.get(name) for record in records]) for name in names})


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


ARROW = "gpuexplore-arrow"
alt.data_transformers.register(ARROW, _name_frame)
