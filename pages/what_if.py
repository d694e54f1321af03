"""Dtype what-if: one workload in every number format, on a local or hypothetical device, and on others."""

import streamlit as st

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.url_widgets import choices_in_a_line, forget, show_problem
from gpuexplore.ui.what_if.choice import BLOCK, choose_workload, draw_choice
from gpuexplore.ui.what_if.known import facts_of, offer_measuring
from gpuexplore.ui.what_if.view import show_devices, show_figures, show_summary

st.title("Dtype what-if")
st.caption(
    "Time, memory and error of a workload in other number formats, on a local or hypothetical device: measured where "
    "measurements exist, predicted elsewhere.",
    help=page_help("what-if"),
)
open_page("what-if")
said = st.container()
asked = st.container()
answer = st.container()
elsewhere = st.container()
here = known_devices()
elsewhere.subheader("The same on other devices", anchor="devices")
with asked, choices_in_a_line() as (words, _):
    workload = None
    try:
        workload = choose_workload()
    except (InvalidInput, NotFound) as error:
        show_problem(error)
    choice = draw_choice(here, elsewhere)

if workload is None:
    with answer:
        st.info("Nothing to predict yet: correct the workload above, or reset it.")
        chosen = ("what", "op", "shape", "layers", "run", "at", *(name for _, name, _ in BLOCK))
        st.button("Reset to default", type="primary", on_click=forget, args=chosen)
    st.stop()

facts = facts_of(workload, here, choice)
with answer:
    offer_measuring(workload, facts)
    show_figures(workload, facts, choice)
    show_summary(workload, facts.rows, choice, said=said, words=words)
with elsewhere:
    show_devices(facts, choice)
