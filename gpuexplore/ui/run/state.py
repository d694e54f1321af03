"""Runs as pages see them: queued, and named in the URL; read bit by bit while they grow, once for all who watch.

A recorded run is read whole.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Lock

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.core import (
    Case,
    Device,
    Experiment,
    GpuExploreError,
    InvalidInput,
    NotFound,
    Result,
    Run,
    RunState,
    format_whole_seconds,
)
from gpuexplore.recorded import RUN_PREFIX, recorded_run
from gpuexplore.request import Request, from_experiment
from gpuexplore.shapes import split
from gpuexplore.store import Description, ListedRun, WaitingRun, Wanted
from gpuexplore.store.tolerant_decode import check_known
from gpuexplore.ui.identity import address
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check, is_admin
from gpuexplore.ui.session import newest_result, owner, store
from gpuexplore.ui.shared import Shared, moment, shared_values
from gpuexplore.ui.url_widgets import show_missing, show_problem

RUNS: Shared[Run] = Shared(500)
MEASURING = "measuring"  # the URL's parameter of runs that a page starts in addition to what it shows
UNCHANGED_LOOKS = 200  # for so many a run that waits is not read again


@shared_values(50)  # at most some megabytes each
def _arrivals(run_id: str) -> Callable[[Run], tuple[Result, ...]]:
    """Return a function that reads the results of one run, each once; safe to ask from several threads.

    They come in the order of the experiment of the run it is given, as one object while none changed.
    """
    lock = Lock()
    last = 0
    counts = (0, 0)  # final and provisional results
    seen: dict[Case, Result] = {}
    ordered: tuple[Result, ...] = ()

    def results_of(run: Run) -> tuple[Result, ...]:
        nonlocal last, counts, ordered
        with lock:
            now = (run.progress.done, run.progress.provisional)
            if now != counts:
                for number, result in store().results_after(run_id, last):
                    last = number
                    seen[result.case] = result
                counts = now
                ordered = tuple(seen[case] for case in run.experiment.cases() if case in seen)
                if not run.active:  # then the provisional ones are final too (see the store)
                    ordered = tuple(replace(result, provisional=False) for result in ordered)
            return ordered

    return results_of


def fetch(run_id: str) -> Run:
    """Return the run with its results in the order of the experiment.

    Raises:
        NotFound: there is no such run, or another version made it of what this one does not know.
    """
    if run_id.startswith(RUN_PREFIX):
        return recorded_run(run_id)
    if run_id in _queue():
        run = RUNS.get((run_id, "waits", moment(UNCHANGED_LOOKS)), lambda: _read(run_id))
        if run.state is RunState.QUEUED:
            return run
    return RUNS.get((run_id, moment()), lambda: _read(run_id))


def _read(run_id: str) -> Run:
    run = store().load_summary(run_id)
    check_known(run_id, run.experiment)
    results = _arrivals(run_id)(run) if run.progress.measured else ()
    provisional = sum(result.provisional for result in results)
    progress = replace(run.progress, done=len(results) - provisional, provisional=provisional)
    return replace(run, results=results, progress=progress)


@shared_values(100, looks=1)
def fetch_activity(run_id: str) -> ActivityRun:
    """Return an activity with what was observed so far, read once for all who watch it.

    Raises:
        NotFound: there is none with this id.
    """
    return store().load_activity(run_id)


def own_runs() -> Sequence[ListedRun]:
    """Return the visitor's newest runs, newest first."""
    return _runs_of(owner())


@shared_values(1000, looks=5)
def _runs_of(name: str) -> Sequence[ListedRun]:
    return store().listed(Wanted(owner=name), limit=30)


def position(run_id: str) -> WaitingRun | None:
    """Return the position of a run in the queue; None when it does not wait."""
    return _queue().get(run_id)


def askers(run: Run) -> tuple[str, ...]:
    """Return who asked for a run besides its owner."""
    if run.id.startswith(RUN_PREFIX) or run.origin:
        return ()
    return _askers_of(run.id)


@shared_values(500, looks=3)
def _askers_of(run_id: str) -> tuple[str, ...]:
    return store().askers_of(run_id)


def is_mine(run: Run) -> bool:
    """Return whether the visitor asked for a run: as its owner, or while that of another user was active."""
    return run.owner == owner() or owner() in askers(run)


def waiting_words(waiting: WaitingRun | None) -> str:
    """Return ``Waiting for 3 runs, the leader's first: starts in about 20 s``, or what else is known.

    Args:
        waiting: its position in the queue; None where the work has just left it.
    """
    if waiting is None:
        return "Next in the queue"
    if waiting.restriction:
        return f"Waiting: {plain(waiting.restriction)}"
    if waiting.expected_start_s is None:
        return f"Waiting for {plain(', '.join(waiting.devices))}: no connected host has it"
    when = f", expected to start in about {format_whole_seconds(waiting.expected_start_s)}"
    before = waiting.position - 1
    where = f"Waiting for {before} run{'s' * (before > 1)} before it" if before else "Next in the queue"
    leader = ", the leader's first" if before and _is_behind_leader(waiting) else ""
    return f"{where}{leader}{when if waiting.expected_start_s else ''}"


def _is_behind_leader(waiting: WaitingRun) -> bool:
    """Return whether a run of who leads a room goes before this one on one of its devices."""
    if waiting.of_leader:
        return False
    leading = (run for run in _queue().values() if run.of_leader and run.position < waiting.position)
    return any(not set(run.devices).isdisjoint(waiting.devices) for run in leading)


@shared_values(1, looks=3)
def _queue() -> Mapping[str, WaitingRun]:
    return {run.id: run for run in store().waiting(5000)}  # more than the limits of the queue let in


def describe(run_id: str, description: Description) -> bool:
    """Write down title, tags or note of a run; return whether that was done. If not, the page shows why."""
    try:
        store().describe(run_id, owner(), description, admin=is_admin())
    except GpuExploreError as error:
        st.toast(plain(str(error)), icon=":material/error:", duration="long")
        return False
    changed()
    return True


def changed() -> None:
    """Forget what was looked up of runs: one was started or cancelled."""
    RUNS.forget()
    fetch_activity.forget()
    _queue.forget()
    _askers_of.forget()


def cancel(*run_ids: str) -> bool:
    """Cancel runs or activities; return whether that was done. If not, the page shows why."""
    try:
        ask = partial(store().request_cancel, admin=is_admin(), address=address())
        go_on = [run_id for run_id in run_ids if not ask(run_id, owner())]
    except GpuExploreError as error:
        show_problem(error)
        return False
    if go_on:
        st.toast("Not cancelled: other users share this run.", icon=":material/group:", duration="long")
    changed()
    return True


def request_of(run: Run, device_ids: Collection[str]) -> Request:
    """Return the request that repeats `run`; a recorded run on those of its devices that are here, else on all."""
    request = from_experiment(run.experiment)
    if not run.id.startswith(RUN_PREFIX):
        return request
    return replace(request, devices=",".join(device for device in split(request.devices) if device in device_ids))


def start(experiments: Sequence[Experiment], devices: Sequence[Device], parameter: str = MEASURING) -> None:
    """Queue `experiments` on `devices` and show the page again, or say why one of them cannot be run.

    Args:
        parameter: of the URL, which then names the runs.
    """

    def queued() -> Sequence[str]:
        check(Right.MEASURE)
        for experiment in experiments:
            check_limits(experiment, devices)
        seconds = {experiment: estimate(experiment, devices).seconds for experiment in experiments}
        return store().submit_all(seconds, owner(), address=address())

    queue_and_show(queued, parameter)


def queue_and_show(queue: Callable[[], Sequence[str]], parameter: str) -> None:
    """Queue by `queue`, and show the page again with the runs in its URL, or say why nothing was queued."""
    try:
        with st.spinner("Queuing: the database is busy …"):  # shown where it takes longer than half a second
            queued = queue()
    except InvalidInput as error:
        show_problem(error)
        return
    st.query_params[parameter] = ".".join(queued)
    changed()
    st.rerun()


def started(parameter: str = MEASURING) -> list[Run]:
    """Return the runs that were started here, as far as they can be found; the others are named."""
    found = []
    named = filter(None, re.split("[.,]", st.query_params.get(parameter, "")))
    for run_id in islice(named, 8):
        try:
            found.append(fetch(run_id))
        except NotFound as error:
            show_missing(error)
    return found


def show_what_ended(runs: Sequence[Run], shown: Collection[Result]) -> None:
    """Show the page again, once, when a run ended after the page had read `shown`: nothing else would redraw it."""
    ended = tuple(run for run in runs if not run.active)
    ids = tuple(run.id for run in ended)
    key = "measuring.ended"
    if ids == st.session_state.get(key, ()):
        return
    st.session_state[key] = ids
    known = {_moment(result) for result in shown}
    if any(_moment(result) not in known for run in ended for result in run.results if result.measurement):
        newest_result.forget()
        st.rerun()


def _moment(result: Result) -> tuple[object, ...]:
    return (result.case, result.environment and result.environment.started_utc)
