"""Fact check: what the notebooks claim, and what follows from their own numbers."""

import streamlit as st

from gpuexplore.features.fact_check.ui import show_claims
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Fact check")
st.caption(
    "What five teaching notebooks on GPUs say and print, judged by rules: from their own numbers, from arithmetic, "
    "from what their cards can do, and from what is measured here.",
    help=page_help("fact-check"),
)
open_page("fact-check")
show_claims()
