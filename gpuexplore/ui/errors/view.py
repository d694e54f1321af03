"""One error that people meet: what provokes it, what torch says to it here, what that means and what to do instead."""

from collections.abc import Sequence
from datetime import timedelta

import streamlit as st

from gpuexplore.activity import ActivityRun, of_kind
from gpuexplore.measure.provoke import ERRORS
from gpuexplore.measure.provoke.contract import PeopleMeet, Provoked, Said
from gpuexplore.model import Device
from gpuexplore.serialization import decode
from gpuexplore.ui.activity.newest import newest_done
from gpuexplore.ui.activity.view import show_activity, start_activity, started_activity
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.url_widgets import select

KIND = "provoke"
EXPECTED_S = 1.0
KNOWN_FOR = timedelta(days=30)  # after that somebody provokes it again


def show_errors() -> None:
    """Show the error that is chosen, and the words of torch as they were provoked on this server."""
    error = ERRORS[select("Error", "error", list(ERRORS), shown=lambda name: ERRORS[name].title)]
    device = _device(known_devices())
    st.subheader(error.title, anchor="error")
    st.caption(f"Rows of the notebooks: {', '.join(error.rows)}.")
    provoking, instead = st.columns(2, gap="medium")
    with provoking:
        st.markdown(":material/close: **What provokes it**")
        st.code(error.code, language="python", wrap_lines=True)
    with instead:
        st.markdown(f":material/check: **Instead.** {plain(error.instead)}")
        st.code(error.instead_code, language="python", wrap_lines=True)
    st.markdown("**What torch says**")
    _show_words(error, device)
    st.markdown(f"**What it means.** {plain(error.meaning)}")


def _device(devices: Sequence[Device]) -> Device:
    """Return where to provoke it: a choice where there are several devices."""
    by_id = {device.id: device for device in devices}
    return devices[0] if len(devices) == 1 else by_id[select("On", "device", list(by_id))]


def _show_words(error: PeopleMeet, device: Device) -> None:
    asked = of_kind(KIND, {"name": error.name}, device=device.id, expected_s=EXPECTED_S)
    started = started_activity(KIND)
    run: ActivityRun | None = started if started is not None and started.activity == asked else None
    if run is not None:
        show_activity(run, _draw)
    elif run := newest_done(asked, KNOWN_FOR):
        _draw(run)
    again = run is not None and not run.active
    if run is None:
        st.caption("Not provoked on this server yet.")
    label = f"Provoke it{' again' if again else ''} on {device.id}"
    disabled = run is not None and run.active
    if st.button(label, type="secondary" if again else "primary", icon=":material/bolt:", disabled=disabled):
        start_activity(asked)


def _draw(run: ActivityRun) -> None:
    for payload in run.payloads:
        found = decode(Provoked, dict(payload))
        for said in found.said:
            st.code(_words(said), language=None, wrap_lines=True)
        if found.reason:
            st.info(f"Not provoked: {plain(found.reason)}.", icon=":material/info:")
        st.caption(f"torch {plain(found.torch)} on {plain(found.device)}, provoked on this server.")


def _words(said: Said) -> str:
    return f"{said.type}: {said.message}"
