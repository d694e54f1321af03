"""Measuring from a page: experiments are queued, and the URL names the runs that came of it."""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import islice

import streamlit as st

from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import Device, Experiment, Result, Run
from gpuexplore.ui.identity import address
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.run.state import changed, fetch
from gpuexplore.ui.session import newest_result, owner, store
from gpuexplore.ui.url_widgets import show_missing, show_problem

MEASURING = "measuring"  # the URL's parameter of runs that a page starts in addition to what it shows


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
