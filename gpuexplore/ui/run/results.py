"""Results on a page: what they mean, how they look, every figure in a table, and ways to export them."""

from collections.abc import Callable

import streamlit as st

from gpuexplore import charts
from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.utilization.rates import has_nominal_flops
from gpuexplore.charts.export import EXPORTS, export
from gpuexplore.charts.mfu import mfu_left_out
from gpuexplore.charts.speedup import speedup_left_out
from gpuexplore.model import Run
from gpuexplore.request import as_command, as_python, from_experiment
from gpuexplore.ui.run.comparison import Drawn, choose_comparison
from gpuexplore.ui.run.conditions import show_conditions
from gpuexplore.ui.run.diagnosis import show_diagnosis
from gpuexplore.ui.run.known_peaks import show_known_peaks
from gpuexplore.ui.run.live_charts import Drawing, MadeChart, live_charts, show_made
from gpuexplore.ui.run.table import show_results_table
from gpuexplore.ui.shared.replay import draw_once

_Rows = tuple[tuple[MadeChart | None, ...], ...]
MIME = {".csv": "text/csv", ".json": "application/json", ".parquet": "application/vnd.apache.parquet"}
TIME = Drawing("time", "Time per call", charts.time, charts.time_notes)
SPEEDUP = Drawing("speedup", "Speedup", charts.speedup, speedup_left_out)
MFU = Drawing("mfu", "MFU: fraction of the peak that was reached", charts.mfu, mfu_left_out)
MACHINE_MEANS = "Intervals and conclusions allow for it; a flag stands on a result where it is worse than in the rest"
COMPUTE_RATE = Drawing("rate", "Compute rate", charts.throughput)
MEMORY_RATE = Drawing("bandwidth", "Memory bandwidth", charts.bandwidth)


def show_results(run: Run) -> None:
    """Show the results a run has so far; while they come, below the choices, what is the same for all."""
    sentences = st.container()
    drawn = choose_comparison(run)
    analysis = drawn.analysis
    with sentences:
        details = "\n".join(f"- {sentence}" for sentence in analysis.summary.details)
        st.markdown(f"#### {analysis.summary.headline}\n\n{details}")
        show_machines(analysis)
    rows = _rows(run, drawn)
    if run.active:
        draw_once((drawn, rows), lambda: _show_growing(run, drawn, rows))
        return
    draw_once((drawn, rows), lambda: _show_charts(run, analysis, rows))
    show_diagnosis(analysis)
    draw_once((drawn, "table"), lambda: show_results_table(drawn))
    _export(run, analysis)
    draw_once((drawn, "sources"), lambda: _show_sources(run, analysis))


def show_machines(analysis: RunAnalysis) -> None:
    """Say once by how much times vary on each device, the evidence on demand."""
    for note in analysis.machines:
        with st.expander(note.sentence, icon=":material/info:"):
            st.markdown("\n".join(f"- {detail}." for detail in (*note.details, MACHINE_MEANS)))


def _show_growing(run: Run, drawn: Drawn, rows: _Rows) -> None:
    _show_charts(run, drawn.analysis, rows)
    show_diagnosis(drawn.analysis, running=True)
    show_results_table(drawn)
    show_conditions(run)


def _show_sources(run: Run, analysis: RunAnalysis) -> None:
    show_known_peaks(analysis)
    show_conditions(run)


def _rows(run: Run, drawn: Drawn) -> _Rows:
    """Return two rows of charts as they are now; where no result has an MFU, the second row is the rate alone."""
    analysis = drawn.analysis
    if analysis.fastest is None:
        return ()
    rate = MEMORY_RATE if _is_memory_bound(analysis) else COMPUTE_RATE
    second = [*([MFU] if any(analyzed.mfu is not None for analyzed in analysis.shown) else []), rate]
    made = live_charts(drawn).refresh(run, drawn, [TIME, SPEEDUP, *second])
    return tuple(made[:2]), tuple(made[2:])


def _show_charts(run: Run, analysis: RunAnalysis, rows: _Rows) -> None:
    for row in rows:
        for column, chart in zip(st.columns(len(row), gap="medium"), row, strict=True):
            if chart:
                with column:
                    show_made(chart, run)
    has_mfu = any(analyzed.mfu is not None for analyzed in analysis.shown)
    if rows and not has_mfu and any(analyzed.flop_count for analyzed in analysis.results):
        st.caption("There is no chart of MFU: the peak is unknown for every result.")


def _is_memory_bound(analysis: RunAnalysis) -> bool:
    fastest = analysis.fastest
    if fastest is None or fastest.bound == "compute":
        return False
    counts_nothing = not fastest.flop_count or has_nominal_flops(fastest.case)
    unknown = fastest.limits.one_thread and not fastest.operation.is_matrix_product
    return fastest.bound in ("memory", "cache") or counts_nothing or unknown


def _export(run: Run, analysis: RunAnalysis) -> None:
    st.markdown("**Export**")
    name = f"gpuexplore-{run.experiment.operation}-{run.id}"
    with st.container(horizontal=True):
        for suffix in EXPORTS:
            st.download_button(
                suffix.removeprefix(".").upper() if suffix != ".parquet" else "Parquet",
                _content(run, suffix, analysis),
                file_name=f"{name}{suffix}",
                mime=MIME[suffix],
                icon=":material/download:",
                on_click="ignore",
            )
        request = from_experiment(run.experiment)
        with st.popover("Copy as command", icon=":material/terminal:"):
            st.code(as_command(request), language="bash", wrap_lines=True)
        with st.popover("Copy as Python", icon=":material/code:"):
            st.code(as_python(request), language="python", wrap_lines=True)


def _content(run: Run, suffix: str, analysis: RunAnalysis) -> Callable[[], bytes]:
    """Return a function that makes the file only when it is asked for."""
    return lambda: export(suffix, run.experiment, analysis)
