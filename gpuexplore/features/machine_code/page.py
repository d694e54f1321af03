"""Kernels: how our kernels cover their output and fill a GPU, and how close they come to the vendor's library."""

import streamlit as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.machine_code.ui import choose, choose_view
from gpuexplore.features.machine_code.ui.facts import show_blocks, show_launch
from gpuexplore.features.machine_code.ui.interpreter import show_interpreter
from gpuexplore.features.machine_code.ui.ladder import show_ladder
from gpuexplore.features.machine_code.ui.machine_code import show_exhibits, show_machine_code, show_ptx, show_source
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.later import redraw_when_made
from gpuexplore.ui.url_widgets import show_problem

st.title("Kernels")
st.caption(
    "Our own kernels, from the naive loop to the hardware's limit: launch, occupancy and speed on any NVIDIA GPU.",
    help=page_help("kernels"),
)
open_page("kernels")

devices = known_devices()
try:
    choice = choose(devices)
except InvalidInput as error:
    show_problem(error)
    st.stop()

geometry = choice.implementation.geometry
view = choose_view(choice)
if choice.gpu and choice.launch and geometry:
    if view == "interpreter":
        show_interpreter(choice, geometry, choice.gpu)
    elif view == "launch":
        st.subheader(f"{choice.implementation.name} on {choice.gpu.name}", anchor="launch")
        show_launch(choice, choice.launch, choice.gpu)
        show_blocks(choice, geometry, choice.gpu, devices)
        show_exhibits(choice, choice.launch, choice.gpu)
if view == "ladder":
    show_ladder(choice, devices)
elif view == "code":
    if choice.gpu:
        show_machine_code(choice, choice.gpu)
        show_ptx(choice, choice.gpu)
    show_source(choice.operation, choice.implementation)
redraw_when_made()
