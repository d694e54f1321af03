"""Lessons elsewhere: the tour, offered on the first visit until something is measured, and entries of the search."""

import streamlit as st

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.run.state import own_runs
from gpuexplore.ui.session import owner, store

KNOWN = "welcome.known"  # the session's key: this visitor is no newcomer


def offer() -> None:
    """Offer the tour on a first visit."""
    if not _is_new():
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            "**New here?** Guess, measure on this machine, and learn why, in ten steps and about ten minutes.",
            width="content",
        )
        if st.button("Take the tour", icon=":material/tour:", key="welcome.tour"):
            st.switch_page(file_of("lessons"), query_params={"lesson": "tour"})


def _is_new() -> bool:
    if KNOWN not in st.session_state:
        try:
            st.session_state[KNOWN] = bool(own_runs() or store().answers_of(owner()))
        except StoreUnavailable:
            return False
    return not st.session_state[KNOWN]


def entries() -> list[list[str]]:
    """Return what the search of the header lists."""
    return [[lesson.title, "Lesson", f"lessons?lesson={name}"] for name, lesson in catalog().lessons.items()]
