"""Transfers: what moving data to a GPU costs, what a call costs, and from which size that pays against this CPU."""

import streamlit as st

from gpuexplore.features.transfer.ui import choose, show_transfers
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Transfers")
st.caption(
    "The cost of moving data to a GPU and back and of launching calls, and from which size on that pays.",
    help=page_help("transfers"),
)
open_page("transfers")
picture = st.container()
with st.container(border=True):
    asked = choose()
show_transfers(asked, picture)
