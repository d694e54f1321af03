"""Queue: running and queued measurements, and the state of the server."""

import streamlit as st

from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.queue import show_queue

st.title("Queue")
st.caption("Running and queued measurements, waiting times, and the state of the server.", help=page_help("queue"))
open_page("queue")
show_queue()
