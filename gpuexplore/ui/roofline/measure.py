"""Measuring the roofs of a device at a click: large products and a triad, with their progress."""

import streamlit as st

from gpuexplore.analysis.roofs import roof_experiments
from gpuexplore.model import Device, Run
from gpuexplore.operations import operation_named
from gpuexplore.ui.run.submit import start, started
from gpuexplore.ui.run.view import show_run


def offer(device: Device) -> None:
    """Draw the button that measures the roofs of `device`."""
    if st.button("Measure this device's roofs", icon=":material/roofing:", help=_help(device)):
        start(roof_experiments(device), [device])


def show_progress() -> None:
    """Show the runs that measure roofs, until they have ended."""
    for run in started():
        show_run(run.id, _told)


def _help(device: Device) -> str:
    titles = " and ".join(
        f"{operation_named(roof_experiment.operation).title.lower()} at {roof_experiment.shapes[0]}"
        for roof_experiment in roof_experiments(device)
    )
    return f"Runs {titles} with the default implementations: the best results become roofs. Usually a minute or two."


def _told(run: Run) -> None:
    if not run.active:
        title = operation_named(run.experiment.operation).title
        st.caption(f":material/check: {title}: measured. Its best result is the dotted roof on the chart.")
