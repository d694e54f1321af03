"""The first visit: a tour of ten steps until the visitor has measured something, and the atlas where no GPU is."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.analysis.atlas.defaults import measured_gpus, measured_operations
from gpuexplore.errors import StoreUnavailable
from gpuexplore.model import Device
from gpuexplore.operations import operation_named
from gpuexplore.served import PAGES
from gpuexplore.ui.session import owner, store

LESSONS, ATLAS = PAGES / "lessons.py", PAGES / "atlas.py"
TOUR = "tour"
KNOWN = "welcome.known"  # the session's key: this visitor is no newcomer


def offer_tour() -> None:
    """Offer the tour to whoever is here for the first time."""
    if not _is_new():
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            "**New here?** Guess, measure on this machine, and learn why, in ten steps and about ten minutes.",
            width="content",
        )
        if st.button("Take the tour", icon=":material/tour:", key="welcome.tour"):
            st.switch_page(LESSONS, query_params={"lesson": TOUR})


def offer_atlas(devices: Sequence[Device]) -> None:
    """Offer what others measured on GPUs to whoever has none: the operation that was measured most."""
    if any(device.kind != "cpu" for device in devices):
        return
    operation = next(iter(measured_operations()))
    count = sum(number > 0 for number in measured_gpus(operation).values())
    words = f"See a {operation_named(operation).title.lower()} on {count} GPUs, as others measured it"
    if st.button(words, icon=":material/map:", key="welcome.atlas"):
        st.switch_page(ATLAS, query_params={"op": operation})


def _is_new() -> bool:
    if KNOWN not in st.session_state:
        try:
            st.session_state[KNOWN] = bool(store().history(owner(), limit=1) or store().answers_of(owner()))
        except StoreUnavailable:
            return False
    return not st.session_state[KNOWN]
