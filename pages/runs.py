"""Runs: earlier runs of this server, to find, name and open."""

import streamlit as st

from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.run_list import show_runs

st.title("Runs")
st.caption("All runs on this server: find, name and open them.", help=page_help("runs"))
open_page("runs")
show_runs()
