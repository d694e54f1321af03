"""Whether runs that are queued now will be measured, and by whom."""

from collections.abc import Sequence

import streamlit as st

import gpuexplore
from gpuexplore.jobs.server_settings import is_external
from gpuexplore.store import Supervisor
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.units import format_whole_seconds

STATES = {"warming": "loading libraries", "ready": "ready", "measuring": "measuring"}


def show_health(supervisors: Sequence[Supervisor]) -> None:
    """Say in a sentence what keeps runs from being measured as they should; nothing when all is well."""
    alive = [supervisor for supervisor in supervisors if supervisor.alive]
    if not alive:
        st.warning(_nobody(supervisors), icon=":material/cloud_off:")
    elif other := [supervisor for supervisor in alive if supervisor.version != gpuexplore.__version__]:
        listed = ", ".join(f"{plain(supervisor.host)} ({plain(supervisor.version)})" for supervisor in other)
        st.warning(f"Another version than this server's {gpuexplore.__version__} measures on {listed}.")


def show_hosts(supervisors: Sequence[Supervisor]) -> None:
    """Show who measures on what; who was replaced by another one of its host is left out."""
    served = {supervisor.host for supervisor in supervisors if supervisor.alive}
    shown = [supervisor for supervisor in supervisors if supervisor.alive or supervisor.host not in served]
    if not shown:
        return
    st.subheader("Hosts", anchor="hosts")
    table_of([_row(supervisor) for supervisor in shown], {"Silent for": "s"}).show(
        alt=f"Table of {len(shown)} hosts that measure, with their state, devices and version"
    )


def _nobody(supervisors: Sequence[Supervisor]) -> str:
    waits = "Runs can be queued meanwhile, and wait"
    if supervisors:
        age_s = min(supervisor.age_s for supervisor in supervisors)
        return (
            f"The measuring process does not answer: it was last heard of {format_whole_seconds(age_s)} ago. It is "
            "replaced within half a minute, and its runs go on."
        )
    if is_external():
        return f"Nothing measures, and this server starts nothing: start `gpuexplore-supervisor`. {waits}."
    return f"The measuring process is being started: a few seconds. {waits}."


def _row(supervisor: Supervisor) -> dict[str, object]:
    return {
        "Host": supervisor.host,
        "State": STATES[supervisor.state] if supervisor.alive else "silent",
        "Devices": ", ".join(f"{device.id} ({device.title})" for device in supervisor.devices),
        "Silent for": None if supervisor.alive else round(supervisor.age_s),
        "Version": supervisor.version,
    }
