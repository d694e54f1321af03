"""Compare: two runs side by side, case by case."""

import streamlit as st

from gpuexplore.ui.compare import show_comparison
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Compare")
st.caption(
    "Two runs side by side: what got faster or slower, what is unchanged, and what is inconclusive.",
    help=page_help("compare"),
)
open_page("compare")
show_comparison()
