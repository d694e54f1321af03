"""One run as a page sees it: fetched bit by bit while it grows, or read whole where it is a recorded one."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime

import streamlit as st

from gpuexplore.model import Result, Run
from gpuexplore.recorded import RUN_PREFIX, recorded_run
from gpuexplore.request import Request, from_experiment, split
from gpuexplore.store.tolerant_decode import check_known
from gpuexplore.ui.session import store


def fetch(run_id: str) -> Run:
    """Return the run with its results in the order of the experiment; only new results are read.

    Raises:
        NotFound: there is no such run, or another version made it of what this one does not know.
    """
    if run_id.startswith(RUN_PREFIX):
        return recorded_run(run_id)
    seen: tuple[Result, ...] = st.session_state.get(_key(run_id), ())
    summary = store().load_summary(run_id)
    check_known(run_id, summary.experiment)
    seen = (*seen, *store().results_after(run_id, len(seen)))
    st.session_state[_key(run_id)] = seen
    place = {case: index for index, case in enumerate(summary.experiment.cases())}
    ordered = tuple(sorted(seen, key=lambda result: place[result.case]))
    return replace(summary, results=ordered)


def request_of(run: Run, device_ids: Collection[str]) -> Request:
    """Return the request that repeats `run`; a recorded run on those of its devices that are here, else on all."""
    request = from_experiment(run.experiment)
    if not run.id.startswith(RUN_PREFIX):
        return request
    return replace(request, devices=",".join(device for device in split(request.devices) if device in device_ids))


def seconds_left(run: Run, now: datetime | None = None) -> float | None:
    """Return about how long the run still takes, by the pace so far; None before the first results."""
    if run.started_utc is None or run.progress.done == 0:
        return None
    elapsed = (now or datetime.now(UTC)) - datetime.fromisoformat(run.started_utc)
    return elapsed.total_seconds() / run.progress.done * (run.progress.total - run.progress.done)


def _key(run_id: str) -> str:
    return f"results.{run_id}"
