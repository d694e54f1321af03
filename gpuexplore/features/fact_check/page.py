"""Fact check: claims of the notebooks, checked against their own numbers."""

import streamlit as st

from gpuexplore.features.fact_check.ui import show_claims
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Fact check")
st.caption(
    "Claims and printed results of five teaching notebooks on GPUs, checked by rules against their own numbers, "
    "arithmetic, the limits of their cards, and measurements on this server.",
    help=page_help("fact-check"),
)
open_page("fact-check")
show_claims()
