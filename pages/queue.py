"""Queue: what is measured where, who waits, and how the server is."""

import streamlit as st

from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.queue import show_queue

st.title("Queue")
st.caption("What is measured where, who waits and how long, and how the server is.", help=page_help("queue"))
open_page("queue")
show_queue()
