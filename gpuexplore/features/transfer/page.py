"""Transfers: what moving data to a GPU costs, what a call costs, and from which size that pays against this CPU."""

import streamlit as st

from gpuexplore.features.transfer.ui import choose, show_transfers
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Transfers")
st.caption(
    "A GPU computes in its own memory: data have to be transferred there and back, and each call has to be launched. "
    "The cost of that, and the size or the number of uses from which the GPU beats this CPU.",
    help=page_help("transfers"),
)
open_page("transfers")
said = st.container()
with st.container(border=True):
    asked = choose()
show_transfers(asked, said)
