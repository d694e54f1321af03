"""What stands above a run that several asked for: that it is measured once, and the way to one of one's own."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.model import Device, Run
from gpuexplore.ui.run.state import askers, is_mine
from gpuexplore.ui.run.submit import start
from gpuexplore.ui.session import owner


def show_askers(run: Run, devices: Sequence[Device]) -> None:
    """Say to whoever asked for a run that others did too; one who does not own it may measure their own."""
    others = len(askers(run))
    if not others or not is_mine(run):
        return
    who = "1 other" if others == 1 else f"{others} others"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        how = "is measured" if run.active else "was measured"
        st.caption(f":material/group: {who} asked for the same: it {how} once for all.", width="content")
        if run.owner != owner() and st.button("Measure my own", icon=":material/play_arrow:"):
            start([run.experiment], devices, "run")
