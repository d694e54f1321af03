"""A trace on a page: the headline, a bar for each operation, and a table with ways to measure and predict the same."""

import shlex
from urllib.parse import urlencode

import streamlit as st

from gpuexplore.analysis.prediction import USUAL_CALLS
from gpuexplore.features.trace.analysis import TraceRow, TraceTable, headline, notes
from gpuexplore.features.trace.analysis.report import dtype_words, kind_of_calls, predict_command, shape_words, target
from gpuexplore.features.trace.chart import time_by_operation
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import Row as Cells
from gpuexplore.ui.shared.tables import table_of

MOST_ROWS = 300  # in the table: the others took less
UNITS = {
    "Time": "s",
    "Share": "%",
    "FLOPs of a call": "FLOP",
    "FLOP/s": "FLOP/s",
    "Bytes/s": "B/s",
    "Of the roof": "%",
    "CPU time": "s",
}
LINKS = {"Measure": "measure", "Predict": "predict"}  # columns, with what their links are called


def show_trace(table: TraceTable) -> None:
    """Draw what a trace says, its chart and its table."""
    st.markdown(f"#### {plain(headline(table))}")
    st.caption(plain(" ".join(notes(table))))
    rows = [row for row in table.rows if row.time_s]
    if not rows:
        return
    show_chart(lambda: time_by_operation(table), (table.name, table.rows), key="chart.trace")
    _show_table(table, rows)
    _show_commands(table, rows)


def _show_table(table: TraceTable, rows: list[TraceRow]) -> None:
    st.subheader("Operations", anchor="operations")
    shown = [_cells(table, row) for row in rows[:MOST_ROWS]]
    links = {name: st.column_config.LinkColumn(display_text=words) for name, words in LINKS.items()}
    names = {name: st.column_config.TextColumn(width="medium") for name in ("Operation", "Shapes")}
    alt = f"Table of {len(shown)} operations with shape, dtype, calls, time, work and share of the roof"
    table_of(shown, UNITS).show(alt=alt, config={**names, **links})
    if len(rows) > MOST_ROWS:
        st.caption(f"{len(rows) - MOST_ROWS:,} more rows took less; `gpuexplore trace FILE --json` has all.")


def _cells(table: TraceTable, row: TraceRow) -> Cells:
    return {
        "Operation": row.operation,
        "Shapes": shape_words(row),
        "Dtype": dtype_words(row),
        "Calls": row.calls,
        "Time": row.time_s,
        "Share": row.share,
        "Of the roof": row.roof_share,
        "Measure": measure_link(row),
        "Predict": predict_link(table, row),
        "Bound": row.least.bound if row.least else None,
        "FLOPs of a call": row.flop_count,
        "FLOP/s": row.flop_per_s,
        "Bytes/s": row.bytes_per_s,
        "CPU time": row.self_cpu_s if row.gpu_s is not None else None,
    }


def measure_link(row: TraceRow) -> str | None:
    """Return the link to the page that measures the same, relative to this one; None where nothing of ours does."""
    return f"./?{urlencode(row.counterpart.query)}" if row.counterpart else None


def predict_link(table: TraceTable, row: TraceRow) -> str | None:
    """Return the link to the page that predicts the same on the trace's GPU, or on the page's own choice of GPUs."""
    ours = row.counterpart
    if ours is None:
        return None
    query = {"op": ours.operation, "shape": str(ours.shape), "baseline": ours.dtype}
    if table.on.device:
        query["device"] = target(table) or ""
    if kind_of_calls(table) != USUAL_CALLS:
        query["calls"] = kind_of_calls(table)
    return f"./what-if?{urlencode(query)}"


def _show_commands(table: TraceTable, rows: list[TraceRow]) -> None:
    with st.expander("The same from a shell", icon=":material/terminal:"):
        ours = [(row.counterpart, predict_command(table, row)) for row in rows[:MOST_ROWS]]
        commands = [command for found, predict in ours if found for command in (found.run_command, predict) if command]
        lines = dict.fromkeys((f"gpuexplore trace {shlex.quote(table.name)}", *commands))
        st.code("\n".join(lines), language="bash")
