"""Measuring the roofs of a device at a click: large products and a triad, with their progress."""

import streamlit as st

from gpuexplore.analysis.estimate import refuse
from gpuexplore.analysis.roof_experiments import roof_experiments
from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.jobs.client import ensure_supervisor
from gpuexplore.model import Device, Run
from gpuexplore.operations import operation_named
from gpuexplore.ui.choices import show_problem
from gpuexplore.ui.run_view import show_run
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.text import plain

PARAMETER, BETWEEN = "measuring", "."


def offer(device: Device) -> None:
    """Draw the button that measures the roofs of `device`."""
    if not st.button("Measure this device's roofs", icon=":material/roofing:", help=_help(device)):
        return
    experiments = roof_experiments(device)
    try:
        for one in experiments:
            refuse(one, [device])
    except InvalidInput as error:
        show_problem(error)
        return
    st.query_params[PARAMETER] = BETWEEN.join(store().submit(one, owner()) for one in experiments)
    ensure_supervisor()
    st.rerun()


def show_progress() -> None:
    """Show the runs that measure roofs, until they have ended."""
    for run_id in filter(None, st.query_params.get(PARAMETER, "").split(BETWEEN)):
        try:
            store().load_summary(run_id)
        except NotFound as error:
            st.warning(f"{plain(str(error))}. The link may come from another server.", icon=":material/link_off:")
        else:
            show_run(run_id, _told)


def _help(device: Device) -> str:
    titles = " and ".join(
        f"{operation_named(one.operation).title.lower()} at {one.shapes[0]}" for one in roof_experiments(device)
    )
    return f"Runs {titles} with the usual implementations: the best become roofs. Usually under a minute."


def _told(run: Run) -> None:
    if not run.active:
        title = operation_named(run.experiment.operation).title
        st.caption(f":material/check: {title}: measured. The best of it is on the chart, drawn with dots.")
