"""A run on a page: its progress while it is measured, then the sentence, the charts and the table."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from gpuexplore.analysis.utilization import case_label
from gpuexplore.core import (
    CANCELLED_BY_ADMIN,
    CANCELLED_BY_OWNER,
    NotFound,
    Run,
    RunState,
    StoreUnavailable,
    format_whole_seconds,
)
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import may_cancel
from gpuexplore.ui.run.recorded import show_badge
from gpuexplore.ui.run.results import show_results
from gpuexplore.ui.run.state import cancel, fetch, is_mine, position, waiting_words
from gpuexplore.ui.session import is_silent, live_supervisor, note_visit, why_silent
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.pace import MISSED, PACE, in_turn
from gpuexplore.ui.undocumented import is_fragment_rerun, session_id
from gpuexplore.ui.url_widgets import show_missing, show_problem

TICK_S = 1.0
RESULTS_DRAWN = "run.results_drawn"  # in a session: when


def show_run(
    run_id: str, show: Callable[[Run], None] = show_results, *, above: Callable[[Run], None] = show_badge
) -> bool:
    """Show the run `run_id`: its progress each second, its results as often as there is time for that.

    Args:
        show: draws the results there are so far.
        above: draws what stands above it.

    Returns:
        Whether there is such a run.
    """
    try:
        run = fetch(run_id)
    except NotFound as error:
        show_missing(error)
        if st.button("Start with a new run", type="primary"):
            del st.query_params["run"]
            st.rerun()
        return False
    with st.container():  # so that what follows stays in one container while the run goes on and after it
        above(run)
    ticks = _ticks(run)
    # Draw the button that cancels the run, for who may, which no tick redraws, and return the container next to it
    row = st.container(horizontal=True, vertical_alignment="center")
    progress = row.container()
    if run.active and may_cancel(run):
        with row:
            if st.button("Cancel", icon=":material/stop:", key=f"cancel.{run.id}") and cancel(run.id):
                st.rerun()
    with progress:
        redrawn(_draw_progress, ticks.progress_s)(run_id, ticks)
    if run.results:
        redrawn(_draw_results, ticks.results_s)(run_id, ticks, show)
    return True


def show_unmeasured(runs: Iterable[Run]) -> None:
    """Show the runs that go on, and those that ended with cases without a time, with the reasons."""
    for run in runs:
        if run.active or any(result.measurement is None for result in run.results):
            show_run(run.id, _show_reasons)


def _show_reasons(run: Run) -> None:
    for result in run.results:
        if result.measurement is None:
            named = f"{case_label(result.case)} at {result.case.shape}"
            st.caption(f"{named}: {result.status.value}: {plain(result.reason or '')}.")


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Redraw intervals of a run, None for never, and whether there are results; when they change, the page reruns."""

    progress_s: float | None
    results_s: float | None
    results: bool


def _ticks(run: Run, current: _Ticks | None = None) -> _Ticks:
    """Return how often `run` is to be redrawn; never once it has ended."""
    if not run.active:
        return _Ticks(None, None, bool(run.results))
    results_s = PACE.interval_s(session_id(), current.results_s if current else None) if run.results else None
    progress_s = waiting_tick_s(run.id)
    if progress_s is None:
        progress_s = 0.25 if not run.results and is_mine(run) else TICK_S  # its owner waits for the first result
    return _Ticks(progress_s, results_s, bool(run.results))


def _is_missed(registered: _Ticks) -> bool:
    """Return whether the browser never got the whole page that was drawn last.

    Where a second fragment ticks just when a whole page was drawn for the first, Streamlit starts another runner, and
    throws away what the last one drew (https://github.com/streamlit/streamlit/issues/9921): the browser still redraws
    by what it registered before. So progress redraws itself where it need not, or results do not where they should.
    """
    if not is_fragment_rerun():
        return False
    if registered.results_s is None:
        return registered.progress_s is None
    drawn_s: float = st.session_state.get(RESULTS_DRAWN, 0.0)
    return time.monotonic() - drawn_s > MISSED * registered.results_s + 2.0  # a little late is not missed


def waiting_tick_s(run_id: str) -> float | None:
    """Return the interval of what waits behind others; None where it does not."""
    waiting = position(run_id)
    if waiting is None or waiting.position <= 1:
        return None
    return 2.0 if waiting.position <= 10 else 5.0


def _draw_progress(run_id: str, registered: _Ticks) -> None:
    note_visit()  # who waits with an open page has not gone
    try:
        with in_turn():
            run = fetch(run_id)
            if (_is_missed(registered) or _ticks(run, registered) != registered) and (
                is_mine(run) or PACE.admits_page()
            ):
                st.rerun()  # the whole page, so that the right ticks are registered
            if not run.active and registered.progress_s:
                st.progress(1.0, text="The run has ended: its results follow in a few seconds")
            elif run.active:
                st.progress(run.progress.share, text=_words(run))
            elif run.state is RunState.FAILED:
                st.error(
                    f"This run failed: {plain(run.reason or '')}. The results so far are kept below.",
                    icon=":material/error:",
                )
            elif run.state is RunState.CANCELLED:
                st.info(_cancelled(run), icon=":material/cancel:")
    except StoreUnavailable as error:  # the next tick asks again
        show_problem(error)


def _draw_results(run_id: str, registered: _Ticks, show: Callable[[Run], None]) -> None:
    st.session_state[RESULTS_DRAWN] = time.monotonic()
    try:
        with in_turn():
            _draw_results_of(fetch(run_id), registered, show)
    except StoreUnavailable as error:
        if registered.progress_s is None:  # else the progress shows it
            show_problem(error)


def _draw_results_of(run: Run, registered: _Ticks, show: Callable[[Run], None]) -> None:
    started_s = time.thread_time()
    if run.active and registered.results_s and registered.results_s > TICK_S:
        every = format_whole_seconds(registered.results_s)
        st.caption(
            f":material/hourglass_top: Many viewers: results are redrawn every {every} to save CPU time for the run."
        )
    show(run)
    if run.active:
        PACE.note(time.thread_time() - started_s)


def _words(run: Run) -> str:
    """Return how far a run is that has not ended, or what it waits for."""
    loading = "Loading the libraries: once, a few seconds"
    so_far = f"{run.progress} · " if run.progress.measured else ""
    supervisor = live_supervisor()
    if supervisor is None:
        return f"{so_far}{_why_unattended()}"
    if run.state is RunState.QUEUED:
        return loading if supervisor.state == "warming" else f"{so_far}{waiting_words(position(run.id))}"
    case = run.progress.current
    if case is None and not run.progress.measured:
        return loading
    left_s = _seconds_left(run)
    now = f" · {case.implementation} in {case.dtype} at {case.shape} on {case.device}" if case else ""
    rest = f" · about {format_whole_seconds(left_s)} left" if left_s is not None else ""
    return f"{run.progress}{now}{rest}"


def _seconds_left(run: Run) -> float | None:
    """Return about how long the run still takes, by the pace so far.

    None before the first final result, and where the clock was set back since it began.
    """
    if run.started_utc is None or run.progress.done == 0:
        return None
    elapsed = datetime.now(UTC) - datetime.fromisoformat(run.started_utc)
    left_s = elapsed.total_seconds() * (1 / run.progress.share - 1)
    return left_s if left_s >= 0 else None


def _why_unattended() -> str:
    """Return why no process measures now."""
    if not is_silent():
        return "The measuring process is starting: a few seconds"
    if trouble := why_silent():
        return f"{plain(str(trouble))} Then this run continues"
    return "The measuring process does not respond. It is replaced within half a minute, and this run continues"


def _cancelled(run: Run) -> str:
    measured = sum(result.measurement is not None for result in run.results)
    by = " by an administrator" if run.reason == CANCELLED_BY_ADMIN else ""
    kept = "before anything was measured"
    if measured:
        kept = f"after {measured} of {run.progress.total} points; those are kept below"
    why = ""
    if run.reason and run.reason not in (CANCELLED_BY_OWNER, CANCELLED_BY_ADMIN):  # the server cancelled it
        why = f" {plain(run.reason[0].upper() + run.reason[1:])}."
    return f"Cancelled{by} {kept}.{why}"
