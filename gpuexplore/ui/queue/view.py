"""What runs where, and who waits: one's own runs stand out, and can be cancelled."""

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from gpuexplore.errors import GpuExploreError
from gpuexplore.model import Run
from gpuexplore.operations import operation_named
from gpuexplore.store import WaitingRun
from gpuexplore.ui.identity import is_admin, owner
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.queue.health import show_health
from gpuexplore.ui.session import note_visit, store
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import show_problem
from gpuexplore.units import format_seconds

BENCHMARK = Path(__file__).parents[3] / "pages" / "benchmark.py"
TICK_S = 2.0
MOST_WAITING = 100
YOURS = "yours"
UNKNOWN_START = "no host that is alive has its devices"


def show_queue() -> None:
    """Show the queue; it redraws itself, for somebody else may queue a run at any moment."""
    st.fragment(_draw, run_every=TICK_S)()


def _draw() -> None:
    note_visit()
    try:
        running, waiting = store().running(), store().waiting(MOST_WAITING)
        count, supervisors = store().queue_length(), store().supervisors()
    except GpuExploreError as error:
        show_problem(error)
        return
    show_health(supervisors)
    st.subheader(f"Being measured: {len(running)}" if running else "Nothing is being measured", anchor="running")
    for run in running:
        _show_running(run)
    st.subheader(f"Waiting: {count}" if count else "Nobody waits", anchor="waiting")
    if waiting:
        _show_own(waiting)
        _show_waiting(waiting, count)
    elif not running:
        st.caption("The next run starts as soon as it is queued.")
        if st.button("Measure something", type="primary", icon=":material/play_arrow:"):
            st.switch_page(BENCHMARK)


def _show_running(run: Run) -> None:
    operation = operation_named(run.experiment.operation).title
    devices = ", ".join(run.experiment.devices)
    done = run.progress.done / run.progress.total
    words = f"{operation} on {plain(devices)} · {run.progress.done} of {run.progress.total} points"
    whose = " · **yours**" if run.owner == owner() else ""
    bar, button = st.columns([6, 1], vertical_alignment="center")
    bar.progress(done, text=f"{words} · {format_seconds(run.device_s)} of the device so far{whose}")
    if run.owner == owner() or is_admin():
        with button:
            _cancel_button(run.id)


def _show_own(waiting: Sequence[WaitingRun]) -> None:
    """Show the visitor's own runs, each with a link and a way to cancel it; to an administrator, everybody's."""
    for run in waiting:
        mine = run.owner == owner()
        if not (mine or is_admin()):
            continue
        with st.container(border=True):
            text, link, button = st.columns([4, 2, 1], vertical_alignment="center")
            whose = "Your run" if mine else "A visitor's run"
            text.markdown(f"**{whose} is number {run.position}** · {_start(run)}")
            if link.button("Open", icon=":material/visibility:", key=f"open.{run.id}"):
                st.switch_page(BENCHMARK, query_params={"run": run.id})
            with button:
                _cancel_button(run.id)


def _show_waiting(waiting: Sequence[WaitingRun], count: int) -> None:
    table_of([_row(run) for run in waiting], {"Expected start": "s", "Expected time": "s"}).show(
        alt=f"Table of {len(waiting)} waiting runs with position, expected start, expected time and devices"
    )
    if count > len(waiting):
        st.caption(f"{count - len(waiting):,} more runs wait behind these.")
    st.caption(
        "Whoever used the devices least in the last hour comes first. A run that held its devices for 5 seconds "
        "lets others go first between two groups of its points, and goes on afterwards with what it has."
    )


def _row(run: WaitingRun) -> dict[str, object]:
    return {
        "Position": run.position,
        "Whose": YOURS if run.owner == owner() else "",
        "Expected start": None if run.expected_start_s is None else round(run.expected_start_s),
        "Expected time": run.estimated_s,
        "Devices": ", ".join(run.devices),
    }


def _start(run: WaitingRun) -> str:
    if run.expected_start_s is None:
        return UNKNOWN_START
    return f"expected to start {_in(run.expected_start_s)}"


def _in(seconds: float) -> str:
    return "now" if seconds < 1 else f"in about {format_seconds(round(seconds))}"


def _cancel_button(run_id: str) -> None:
    if st.button("Cancel", icon=":material/stop:", width="stretch", key=f"cancel.{run_id}"):
        try:
            store().request_cancel(run_id, owner(), admin=is_admin())
        except GpuExploreError as error:
            show_problem(error)
            return
        st.rerun()
