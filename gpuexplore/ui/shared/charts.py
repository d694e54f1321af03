"""Charts on a page, made once for all who look at the same thing: making one takes a tenth of a second of a core."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import altair as alt
import pyarrow as pa
import streamlit as st

from gpuexplore.ui.shared import Shared

Spec = Mapping[str, Any]
CHARTS: Shared[Spec] = Shared(300)


def show_chart(build: Callable[[], alt.TopLevelMixin], of: Hashable, *, key: str, on_select: Any = "ignore") -> Any:
    """Show a chart, and return what was selected in it.

    Args:
        build: makes the chart.
        of: everything that decides how it looks.
        key: of the element; with `of` it names the chart for all visitors.
        on_select: as in Streamlit.
    """
    return show_spec(CHARTS.get((key, of), lambda: spec_of(build())), key=key, on_select=on_select)


def show_spec(spec: Spec, *, key: str, on_select: Any = "ignore") -> Any:
    """Show a chart that `spec_of` made."""
    return st.vega_lite_chart(dict(spec), key=key, on_select=on_select)


def spec_of(chart: alt.TopLevelMixin) -> Spec:
    """Return a chart as Streamlit sends it: Vega-Lite, unchecked (tests do that), and its data as Arrow streams."""
    found: dict[str, Any] = chart.to_dict(validate=False)
    found["datasets"] = {name: _arrow(records) for name, records in found.get("datasets", {}).items()}
    return found


def _arrow(records: Sequence[Mapping[str, Any]]) -> bytes:
    names = dict.fromkeys(name for record in records for name in record)
    table = pa.table({name: [record.get(name) for record in records] for name in names})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
