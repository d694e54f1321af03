"""Whether runs that are queued now will be measured, and by whom."""

from collections.abc import Sequence

import streamlit as st

import gpuexplore
from gpuexplore.jobs.client import is_external
from gpuexplore.store import Supervisor
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.units import format_seconds

STATES = {"warming": "loading libraries", "ready": "ready", "measuring": "measuring"}


def show_health(supervisors: Sequence[Supervisor]) -> None:
    """Say in one line how the server is, and in a table who measures."""
    alive = [supervisor for supervisor in supervisors if supervisor.alive]
    if not alive:
        st.warning(_nobody(supervisors), icon=":material/cloud_off:")
    elif other := [supervisor for supervisor in alive if supervisor.version != gpuexplore.__version__]:
        listed = ", ".join(f"{plain(supervisor.host)} ({plain(supervisor.version)})" for supervisor in other)
        st.warning(f"Another version than this server's {gpuexplore.__version__} measures on {listed}.")
    if supervisors:
        table_of([_row(supervisor) for supervisor in supervisors], {"Silent for": "s"}).show(
            alt=f"Table of {len(supervisors)} supervisors with their devices and when they were last heard of"
        )


def _nobody(supervisors: Sequence[Supervisor]) -> str:
    waits = "Runs can be queued, and will wait"
    if supervisors:
        age_s = min(supervisor.age_s for supervisor in supervisors)
        return f"No supervisor is alive: the last one was heard of {format_seconds(age_s)} ago. {waits}."
    if is_external():
        return f"No supervisor is alive, and this server starts none: start `gpuexplore-supervisor`. {waits}."
    return f"The supervisor is being started: a few seconds. {waits}."


def _row(supervisor: Supervisor) -> dict[str, object]:
    return {
        "Host": supervisor.host,
        "State": STATES[supervisor.state] if supervisor.alive else "silent",
        "Devices": ", ".join(f"{device.id} ({device.title})" for device in supervisor.devices),
        "Silent for": max(0.0, supervisor.age_s),
        "Version": supervisor.version,
    }
