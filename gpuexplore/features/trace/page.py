"""Trace: where the time of a torch.profiler trace goes, and how near the roof its operations come."""

import streamlit as st

from gpuexplore.features.trace.ui import choose_trace, show_trace
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Traces")
st.caption(
    "A trace of torch.profiler as a table of operations: their time, and the share of the roof they reach. "
    "Nothing is measured.",
    help=page_help("trace"),
)
open_page("trace")
said = st.container()
table = choose_trace()
if table is not None:
    show_trace(table, said)
