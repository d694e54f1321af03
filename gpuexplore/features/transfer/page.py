"""Transfers: what moving data to a GPU costs, what a call costs, and from which size that pays against this CPU."""

import streamlit as st

from gpuexplore.features.transfer.ui import choose, show_transfers
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Transfers")
st.caption(
    "A GPU computes on its own memory: data have to get there and back, and each call has to be launched. What that "
    "costs, and from which size or after how many uses it pays against this CPU.",
    help=page_help("transfers"),
)
open_page("transfers")
with st.container(border=True):
    asked = choose()
show_transfers(asked)
