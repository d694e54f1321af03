"""Runs: what was measured here before, found by what it is, named by whoever measured it."""

import streamlit as st

from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.run_list import show_runs

st.title("Runs")
st.caption("Everything that was measured on this server: find it, name it, open it.", help=page_help("runs"))
open_page("runs")
show_runs()
