"""Page of the ranking of GPUs for one call."""

import streamlit as st

from gpuexplore.features.which_gpu.ui import show_which
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Which GPU")
st.caption(
    "Time, energy and price of one call on every GPU that was measured or can be rented.",
    help=page_help("which-gpu"),
)
open_page("which-gpu")
show_which()
