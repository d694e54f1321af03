"""The first visit: a tour of ten steps is offered, until the visitor has measured or answered something."""

import streamlit as st

from gpuexplore.errors import StoreUnavailable
from gpuexplore.served import PAGES
from gpuexplore.ui.session import owner, store

LESSONS = PAGES / "lessons.py"
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


def _is_new() -> bool:
    if KNOWN not in st.session_state:
        try:
            st.session_state[KNOWN] = bool(store().history(owner(), limit=1) or store().answers_of(owner()))
        except StoreUnavailable:
            return False
    return not st.session_state[KNOWN]
