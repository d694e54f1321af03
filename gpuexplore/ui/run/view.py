"""A run on a page: its progress while it is measured, then the sentence, the charts and the table."""

from collections.abc import Callable

import streamlit as st

from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.model import Case, Run, RunState
from gpuexplore.ui.identity import is_admin, may_cancel
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.recorded import show_badge
from gpuexplore.ui.run.results import show_results
from gpuexplore.ui.run.state import fetch, seconds_left
from gpuexplore.ui.session import live_supervisor, owner, store
from gpuexplore.units import format_seconds

TICK_S = 1.0
IMPATIENT_TICK_S = 0.25  # until there is something to see


def show_run(run_id: str, show: Callable[[Run], None] = show_results) -> None:
    """Show the run `run_id`; it redraws itself until it has ended.

    Args:
        show: draws the results there are so far.
    """
    try:
        run = fetch(run_id)
    except NotFound as error:
        _not_found(error)
        return
    draw = st.fragment(_draw, run_every=_tick_s(run))
    draw(run_id, _tick_s(run), show)


def _tick_s(run: Run) -> float | None:
    """Return how often the run is to be drawn: fast until its first result, never once it has ended."""
    if not run.active:
        return None
    return TICK_S if run.results else IMPATIENT_TICK_S


def _draw(run_id: str, registered_tick_s: float | None, show: Callable[[Run], None]) -> None:
    run = fetch(run_id)
    if _tick_s(run) != registered_tick_s:
        st.rerun()  # the whole page, so that the right tick is registered
    show_badge(run)
    if run.active:
        _progress(run)
    elif run.state is RunState.FAILED:
        st.error(
            f"This run failed: {plain(run.reason or '')}. What was measured before is kept below.",
            icon=":material/error:",
        )
    elif run.state is RunState.CANCELLED:
        st.info(_cancelled(run), icon=":material/cancel:")
    if run.results:
        show(run)


def _not_found(error: NotFound) -> None:
    st.warning(f"{plain(str(error))}. The link may come from another server.", icon=":material/link_off:")
    if st.button("Start with a new run", type="primary"):
        del st.query_params["run"]
        st.rerun()


def _progress(run: Run) -> None:
    if not may_cancel(run):
        _bar(run)
        return
    bar, cancel = st.columns([6, 1], vertical_alignment="center")
    with bar:
        _bar(run)
    with cancel:
        if st.button("Cancel", icon=":material/stop:", width="stretch", key=f"cancel.{run.id}"):
            _cancel(run)


def _bar(run: Run) -> None:
    st.progress(run.progress.done / run.progress.total, text=_words(run))


def _words(run: Run) -> str:
    if live_supervisor() is None:
        return "The measuring process is being started: a few seconds"
    if run.state is RunState.QUEUED:
        return _waiting(run.id)
    left = seconds_left(run)
    now = f" · {_point(run.progress.current)}" if run.progress.current else ""
    rest = f" · about {format_seconds(round(left) or 1)} left" if left is not None else ""
    return f"{run.progress.done} of {run.progress.total} measured{now}{rest}"


def _waiting(run_id: str) -> str:
    supervisor, position = live_supervisor(), store().position(run_id)
    if supervisor is not None and supervisor.state == "warming":
        return "The libraries are being loaded, and this machine's ceilings measured: once, a few seconds"
    if position is None or position.position == 1:
        return "Next in the queue"
    return f"Waiting: number {position.position} in the queue"


def _point(case: Case) -> str:
    return f"{case.implementation} in {case.dtype} at {case.shape} on {case.device}"


def _cancel(run: Run) -> None:
    try:
        store().request_cancel(run.id, owner(), admin=is_admin())
    except InvalidInput as error:
        st.error(plain(str(error)))
        return
    st.rerun()


def _cancelled(run: Run) -> str:
    measured = sum(result.measurement is not None for result in run.results)
    return f"Cancelled after {measured} of {run.progress.total} points; those are kept below."
