"""A trace on a page: the headline, a bar for each operation, and a table with ways to measure and predict the same."""

import shlex
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

import altair as alt
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import USUAL_CALLS
from gpuexplore.charts.series import NEUTRAL
from gpuexplore.core import Device, InvalidInput, format_percent, format_seconds
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
from gpuexplore.hardware import NEWEST_FIRST
from gpuexplore.jobs.reading import read_apart
from gpuexplore.ui.link import href
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import pages
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import Row as Cells
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import choices_in_a_line, select, show_problem

MOST_BYTES = 40_000_000  # unpacked: reading more stalls all other visitors; the command takes more
GPUS = {accelerator.key: accelerator.name for accelerator in NEWEST_FIRST}
TABLES: Shared[tuple[TraceTable, bool]] = Shared(32)
EXAMPLE = (
    "Not a trace of yours: two training steps of a `TransformerEncoderLayer` (256 wide, 8 heads, batch 4 × 128 tokens) "
    "in fp32 with AdamW, by torch 2.13.0 on one thread of an Intel Xeon (Sapphire Rapids), 2026-11-30."
)
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


def show_trace(table: TraceTable, said: DeltaGenerator) -> None:
    """Draw what a trace says, in `said` as a sentence, its chart and its table."""
    said.markdown(f"#### {plain(headline(table))}")
    rows = [row for row in table.rows if row.time_s]
    if rows:
        show_chart(lambda: _time_by_operation(table), (table.name, table.rows), key="chart.trace")
    st.caption(plain(" ".join(notes(table))))
    if not rows:
        return
    if "model" in pages():
        st.markdown("A step of a whole model: its prediction takes a trace on the page [Model](./model).")
    st.subheader("Operations", anchor="operations")
    shown: list[Cells] = [
        {
            "Operation": row.operation,
            "Shapes": shape_words(row),
            "Dtype": dtype_words(row),
            "Calls": row.calls,
            "Time": row.time_s,
            "Share": row.share,
            "Of the roof": row.roof_share,
            "Measure": href(f"benchmark?{urlencode(row.counterpart.query)}") if row.counterpart else None,
            "Predict": _predict_link(table, row),
            "Bound": row.least.bound if row.least else None,
            "FLOPs per call": row.flop_count,
            "FLOP/s": row.flop_per_s,
            "Bytes/s": row.bytes_per_s,
            "CPU time": row.self_cpu_s if row.gpu_s is not None else None,
        }
        for row in rows[:MOST_ROWS]
    ]
    links = {name: st.column_config.LinkColumn(display_text=name.lower()) for name in ("Measure", "Predict")}
    names = {name: st.column_config.TextColumn(width=170) for name in ("Operation", "Shapes")}
    alt = f"Table of {len(shown)} operations with shape, dtype, calls, time, work and share of the roof"
    table_of(shown, UNITS).show(alt=alt, config={**names, **links})
    if len(rows) > MOST_ROWS:
        st.caption(f"{len(rows) - MOST_ROWS:,} more rows took less; `gpuexplore trace FILE --json` has all.")
    with st.expander("The same as a command", icon=":material/terminal:"):
        ours = [(row.counterpart, predict_command(table, row)) for row in rows[:MOST_ROWS]]
        commands = [command for found, predict in ours if found for command in (found.run_command, predict) if command]
        st.code("\n".join(dict.fromkeys((f"gpuexplore trace {shlex.quote(table.name)}", *commands))), language="bash")


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
    """Draw the field of the file and the choice of the device; return the table, None of a file that cannot be read.

    Without a file it is that of a recorded example, which is labelled.
    """
    with choices_in_a_line("Upload a trace") as (words, _):
        file = st.file_uploader("Trace of torch.profiler", type=["json", "gz"], key="trace.file")
        st.caption(
            f"Up to {st.get_option('server.maxUploadSize')} MB as uploaded (gzip makes it about ten times "
            f"smaller) and {MOST_BYTES // 1_000_000} MB unpacked. From a shell `gpuexplore trace FILE` takes up to "
            f"{MOST_COMMAND_BYTES // 1_000_000} MB, and prints JSON. The file is not stored."
        )
        st.expander("Record a trace of your own", icon=":material/add_chart:").code(
            "with torch.profiler.profile(record_shapes=True) as prof:\n"
            "    step()  # a few calls of the code to profile, after some warm-up calls\n"
            'prof.export_chrome_trace("trace.json.gz")\n',
            language="python",
        )
        if file is None:
            select("Taken on", "device", ["", CPU, *GPUS], shown=_device_title)
            words.badge("Recorded example", icon=":material/inventory_2:", color="violet")
            words.caption(EXAMPLE)
            return TABLES.get(
                (EXAMPLE, "", ""),
                lambda: _read(
                    "transformer-layer.json.gz", Path(__file__).with_name("example.json.gz").read_bytes(), ""
                ),
            )[0]
        words.markdown(f"**{plain(file.name)}**")
        try:
            return _chosen(file.name, file.getvalue())
        except InvalidInput as error:
            show_problem(error)
            return None


def _chosen(name: str, content: bytes) -> TraceTable:
    """Return the table of a file, with the roof of the device that is chosen for it.

    Raises:
        InvalidInput: it is no trace.
    """
    digest = sha256(content).hexdigest()
    with st.spinner(f"Reading {plain(name)} …"):
        found, on_gpu = TABLES.get((name, digest, ""), lambda: _read(name, content, ""))
    chosen = select("Taken on", "device", ["", *(GPUS if on_gpu else (CPU,))], shown=_device_title)
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


# The chart of the time by operation: a bar for each, coloured by its kind.


MOST_BARS = 12  # the others are one bar
OF_NO_KIND = "other"


def _time_by_operation(table: TraceTable) -> alt.LayerChart:
    """Return the share of the time that each operation took, the largest on top."""
    frame = _bars_of(table)
    scale = alt.Scale(domain=[0, 1.15 * max(frame["share"], default=1.0)], nice=False)
    base = alt.Chart(frame).encode(
        x=alt.X("share:Q", title=_title(table), scale=scale, axis=alt.Axis(format=".0%", tickCount=6)),
        y=alt.Y(
            "operation:N",
            title=None,
            sort=list(frame["operation"]),
            axis=alt.Axis(
                labelLimit=alt.ExprRef("containerSize()[0] < 500 ? 130 : 260"), labelOverlap=False, labelFlush=False
            ),
        ),
    )
    kinds = sorted(dict.fromkeys(frame["kind"]), key=lambda kind: kind == OF_NO_KIND)  # the others last
    legend = alt.Legend(title=None, orient="top", columns=alt.ExprRef("containerSize()[0] < 500 ? 1 : 3"))
    drawn = base.mark_bar(height={"band": 0.6}).encode(
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds), legend=legend),
        tooltip=[
            alt.Tooltip("operation:N", title="Operation"),
            alt.Tooltip("kind:N", title="Kind"),
            alt.Tooltip("shown:N", title="Time"),
            alt.Tooltip("label:N", title="Share"),
        ],
    )
    figures = ", ".join(frame["operation"] + " " + frame["label"])
    described = f"of {format_seconds(table.total_s)}: {figures or 'nothing took any'}."
    labels = base.mark_text(align="left", dx=5, fontSize=13, color=NEUTRAL).encode(text=alt.Text("label:N"))
    chart: alt.LayerChart = alt.LayerChart(layer=[drawn, labels]).properties(
        width="container", height=26 * len(frame) + 120, description=f"{_title(table)} by operation, {described}"
    )
    return chart


def _bars_of(table: TraceTable) -> pd.DataFrame:
    """Return a bar for each operation, whatever its shapes, the longest first; beyond MOST_BARS they are one."""
    groups: dict[str, list[TraceRow]] = defaultdict(list)
    for row in table.rows:
        if row.time_s:
            groups[row.operation].append(row)
    columns = ["operation", "kind", "time_s", "share"]
    bars = [
        (name, rows[0].kind or OF_NO_KIND, sum(row.time_s for row in rows), sum(row.share or 0.0 for row in rows))
        for name, rows in groups.items()
    ]
    frame = pd.DataFrame(bars, columns=columns).sort_values("time_s", ascending=False, kind="stable")
    rest = frame[MOST_BARS:]
    if len(rest):
        others = ("all others", OF_NO_KIND, rest["time_s"].sum(), rest["share"].sum())
        frame = pd.concat([frame[:MOST_BARS], pd.DataFrame([others], columns=columns)])
    return frame.assign(label=frame["share"].map(format_percent), shown=frame["time_s"].map(format_seconds))


def _title(table: TraceTable) -> str:
    return f"Share of the {'CPU' if table.busy_s is None else 'kernel'} time"
