"""Measuring on the page what would confirm a claim: a button, and the runs that were started."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.analysis.fact_check.claim import Claim
from gpuexplore.analysis.fact_check.measured import experiments
from gpuexplore.model import Device, Result, Run
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.submit import show_what_ended, start, started
from gpuexplore.ui.run.view import show_run


def offer_measuring(claim: Claim, devices: Sequence[Device], shown: Sequence[Result]) -> None:
    """Draw the button that measures what would confirm `claim`, and the progress of what was started.

    Args:
        claim: the one that is explained.
        devices: that can be measured.
        shown: the results that its verdict rests on.
    """
    runs = started()
    show_what_ended(runs, shown)
    wanted = experiments(claim, devices)
    if wanted and not any(run.active for run in runs) and st.button("Measure it here", icon=":material/timer:"):
        start(wanted, devices)
    if claim.checks and not wanted:
        st.caption("No device of this server can measure it.")
    for run in runs:
        if run.active or any(result.measurement is None for result in run.results):
            show_run(run.id, _not_measured)


def _not_measured(run: Run) -> None:
    for result in run.results:
        if result.measurement is None:
            st.caption(f"{result.case.implementation}: {result.status.value}: {plain(result.reason or '')}.")
