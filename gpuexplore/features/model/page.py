"""Model: how fast a model is trained or served on any GPUs, and what memory it needs, moment by moment."""

import streamlit as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.ui import show_countings, show_memory
from gpuexplore.features.model.ui.choice import choose, choose_view, note_choices, reset
from gpuexplore.features.model.ui.speed import show_speed
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.url_widgets import show_problem

st.title("Model")
st.caption(
    "Speed and memory of a whole model, predicted from its layers. Nothing is measured.", help=page_help("model")
)
open_page("model")
view = choose_view()
if view == "speed":
    show_speed()
else:
    said, top, picture = (st.container() for _ in range(3))
    ways = st.container(border=True)
    try:
        said.markdown(f"#### {show_memory(choose(top, ways), picture)}")
    except InvalidInput as error:
        with said:
            show_problem(error)
            st.info("Not computed: correct the value below, or reset all choices.")
            st.button("Reset to default", type="primary", on_click=reset)
    show_countings()
note_choices(view)
