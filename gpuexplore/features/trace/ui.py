"""A trace on a page: the headline, a bar for each operation, and a table with ways to measure and predict the same."""

import shlex
from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import urlencode

import streamlit as st

from gpuexplore.analysis.prediction import USUAL_CALLS
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.features.trace.analysis.events import MOST_BYTES as MOST_COMMAND_BYTES
from gpuexplore.features.trace.analysis.headline import (
    dtype_words,
    headline,
    kind_of_calls,
    notes,
    predict_command,
    shape_words,
    target,
)
from gpuexplore.features.trace.analysis.table import CPU, TraceRow, TraceTable
from gpuexplore.features.trace.chart import time_by_operation
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.jobs.reading import read_apart
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import Row as Cells
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import select, show_problem

MOST_BYTES = 40_000_000  # unpacked: reading more stalls all other visitors; the command takes more
GPUS = {accelerator.key: accelerator.name for accelerator in ACCELERATORS}
TABLES: Shared[tuple[TraceTable, bool]] = Shared(32)
MOST_ROWS = 300  # in the table: the others took less
UNITS = {
    "Time": "s",
    "Share": "%",
    "FLOPs per call": "FLOP",
    "FLOP/s": "FLOP/s",
    "Bytes/s": "B/s",
    "Of the roof": "%",
    "CPU time": "s",
}


def show_trace(table: TraceTable) -> None:
    """Draw what a trace says, its chart and its table."""
    st.markdown(f"#### {plain(headline(table))}")
    st.caption(plain(" ".join(notes(table))))
    rows = [row for row in table.rows if row.time_s]
    if not rows:
        return
    show_chart(lambda: time_by_operation(table), (table.name, table.rows), key="chart.trace")
    st.subheader("Operations", anchor="operations")
    shown = [_cells(table, row) for row in rows[:MOST_ROWS]]
    links = {name: st.column_config.LinkColumn(display_text=name.lower()) for name in ("Measure", "Predict")}
    names = {name: st.column_config.TextColumn(width="medium") for name in ("Operation", "Shapes")}
    alt = f"Table of {len(shown)} operations with shape, dtype, calls, time, work and share of the roof"
    table_of(shown, UNITS).show(alt=alt, config={**names, **links})
    if len(rows) > MOST_ROWS:
        st.caption(f"{len(rows) - MOST_ROWS:,} more rows took less; `gpuexplore trace FILE --json` has all.")
    with st.expander("The same as a command", icon=":material/terminal:"):
        ours = [(row.counterpart, predict_command(table, row)) for row in rows[:MOST_ROWS]]
        commands = [command for found, predict in ours if found for command in (found.run_command, predict) if command]
        lines = dict.fromkeys((f"gpuexplore trace {shlex.quote(table.name)}", *commands))
        st.code("\n".join(lines), language="bash")


def _cells(table: TraceTable, row: TraceRow) -> Cells:
    return {
        "Operation": row.operation,
        "Shapes": shape_words(row),
        "Dtype": dtype_words(row),
        "Calls": row.calls,
        "Time": row.time_s,
        "Share": row.share,
        "Of the roof": row.roof_share,
        "Measure": f"./?{urlencode(row.counterpart.query)}" if row.counterpart else None,
        "Predict": _predict_link(table, row),
        "Bound": row.least.bound if row.least else None,
        "FLOPs per call": row.flop_count,
        "FLOP/s": row.flop_per_s,
        "Bytes/s": row.bytes_per_s,
        "CPU time": row.self_cpu_s if row.gpu_s is not None else None,
    }


def _predict_link(table: TraceTable, row: TraceRow) -> str | None:
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


def choose_trace() -> TraceTable | None:
    """Draw the field of the file and the choice of the device; return the table, None without one that can be read."""
    file = st.file_uploader("Trace of torch.profiler", type=["json", "gz"], key="trace.file")
    if file is None:
        select("Taken on", "device", ["", CPU, *GPUS], shown=_device_title)
        st.caption(
            f"Up to {st.get_option('server.maxUploadSize')} MB as uploaded (gzip makes it about ten times "
            f"smaller) and {MOST_BYTES // 1_000_000} MB unpacked. From a shell `gpuexplore trace FILE` takes up to "
            f"{MOST_COMMAND_BYTES // 1_000_000} MB, and prints JSON. The file is not stored."
        )
        _explain()
        return None
    content = file.getvalue()
    try:
        return _chosen(file.name, content)
    except InvalidInput as error:
        show_problem(error)
        _explain()
        return None


def _explain() -> None:
    st.info("To record a trace, wrap a training step or any other torch code:", icon=":material/add_chart:")
    st.code(
        "with torch.profiler.profile(record_shapes=True) as prof:\n"
        "    step()  # a few calls of the code to profile, after some warm-up calls\n"
        'prof.export_chrome_trace("trace.json.gz")\n',
        language="python",
    )


def _chosen(name: str, content: bytes) -> TraceTable:
    """Return the table of a file, with the roof of the device that is chosen for it.

    Raises:
        InvalidInput: it is no trace.
    """
    digest = sha256(content).hexdigest()
    with st.spinner(f"Reading {plain(name)} …"):
        found, on_gpu = TABLES.get((name, digest, ""), lambda: _read(name, content, ""))
    options = ["", *(GPUS if on_gpu else (CPU,))]
    chosen = select("Taken on", "device", options, shown=_device_title)
    if not chosen:
        return found
    here = known_devices() if chosen == CPU else ()
    return TABLES.get((name, digest, chosen, here), lambda: _read(name, content, chosen, here))[0]


def _device_title(key: str) -> str:
    if not key:
        return "what the trace says"
    return "this server's CPU" if key == CPU else GPUS.get(key, key)


def _read(name: str, content: bytes, chosen: str, here: Sequence[Device] = ()) -> tuple[TraceTable, bool]:
    """Return the table, and whether anything ran on a GPU."""
    taken_on = tuple(here) if chosen == CPU else chosen
    read = "gpuexplore.features.trace.analysis.table:read_table"
    found: tuple[TraceTable, bool] = read_apart(read, name, content, MOST_BYTES, taken_on)
    return found
