"""Compare: two runs beside each other, case by case."""

import streamlit as st

from gpuexplore.ui.compare import show_comparison
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Compare")
st.caption(
    "Two runs beside each other: what got faster or slower, what stayed, and what cannot be told.",
    help=page_help("compare"),
)
open_page("compare")
show_comparison()
