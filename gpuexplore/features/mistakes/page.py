"""Timing mistakes: the usual ways to get a wrong number, each made here next to the right one."""

import streamlit as st

from gpuexplore.features.mistakes.ui import show_mistakes
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Timing mistakes")
st.caption(
    "Each is reproduced next to the right way; the wrong number is shown, but never stored as a result.",
    help=page_help("timing-mistakes"),
)
open_page("timing-mistakes")
show_mistakes()
