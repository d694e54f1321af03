"""Errors: what people meet in torch, provoked here on purpose, with its words, their meaning and a way out."""

import streamlit as st

from gpuexplore.features.errors.ui import show_errors
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Errors")
st.caption(
    "Errors and warnings that people meet, and that the teaching notebooks run into. Each is provoked here in the "
    "process that measures, so the words are those of the torch that is installed.",
    help=page_help("errors"),
)
open_page("errors")
show_errors()
