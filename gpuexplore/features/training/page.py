"""Training: small models learn here, in several interleaved precisions, alone or in several processes."""

import streamlit as st

from gpuexplore.features.training.ui import show_training
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page

st.title("Training")
st.caption(
    "Train small models on a rule, or on random labels, on this server: the modes alternate step by step on the same "
    "batches, so their losses and times can be compared.",
    help=page_help("training"),
)
open_page("training")
show_training()
