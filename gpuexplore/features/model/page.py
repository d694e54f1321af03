"""Memory: what training or serving a model needs, moment by moment, and what fits where."""

import streamlit as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.ui import show_countings, show_kinds, show_memory
from gpuexplore.features.model.ui.choice import choose, reset
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.url_widgets import show_problem

st.title("Memory")
st.caption(
    "Memory for training or serving a model, computed from its layers: the peak, when it occurs, and the "
    "largest batch that fits. Nothing is measured.",
    help=page_help("memory"),
)
open_page("memory")
said = st.container()
asked = st.container(border=True)
answer = st.container()
try:
    with asked:
        model, batch, setup, gpu, reserve = choose()
    with answer:
        said.markdown(f"#### {show_memory(model, batch, setup, gpu=gpu, reserve=reserve)}")
except InvalidInput as error:
    with answer:
        show_problem(error)
        st.info("Not computed: correct the value above, or reset all choices.")
        st.button("Reset to default", type="primary", on_click=reset)
show_kinds()
show_countings()
