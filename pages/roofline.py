"""Roofline: what limits each operation on a local or hypothetical device, and how close it comes to that."""

import streamlit as st

from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.roofline import (
    choose,
    offer,
    recorded_example,
    restore_after_back,
    show_progress,
    show_roofline,
    view_of,
)
from gpuexplore.ui.run.recorded import ICON
from gpuexplore.ui.session import known_devices

st.title("Roofline")
st.caption(
    "Operations with few FLOPs per byte are limited by memory bandwidth (slopes), operations with many by peak compute "
    "(flat roofs).",
    help=page_help("roofline"),
)
open_page("roofline")


def open_benchmark() -> None:
    """Draw the button that leads to the page where runs are made."""
    if st.button("Run a benchmark", type="primary", icon=":material/timer:"):
        st.switch_page(file_of("benchmark"))


def show_actions() -> None:
    """Draw what measures the chosen device, where it is of this machine."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if view.roofs and not any(point.origin == "live" for point in view.points):
            open_benchmark()
            none = "Runs are hidden." if choice.runs == "none" else "None of your runs is on this roofline yet."
            st.caption(none, width="content")
        offer(choice.device)
    show_progress()


restore_after_back()
devices = known_devices()
choice = choose(devices)
view = view_of(choice)
said = st.container()
example = None if view.points or view.measured or not choice.here else recorded_example(choice)
if example:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Recorded example", icon=ICON, color="violet")
        st.caption(
            f"{example.device.title}, by gpuexplore on another machine. {choice.device.short_title} follows below."
        )
    show_roofline(view_of(example), example, said)
    st.subheader(choice.device.short_title, anchor=False)
    show_actions()
if not view.roofs:
    st.info(
        f"No roof of {choice.device.short_title} is known. A CPU's are measured during its first run; a GPU's come "
        "from the table of accelerators.",
        icon=":material/roofing:",
    )
    open_benchmark()
    st.stop()
if not choice.here and not view.measured:
    labels = {"recorded": "recorded elsewhere by gpuexplore", "published": "published by others"}
    origins = [words for origin, words in labels.items() if any(point.origin == origin for point in view.points)]
    shown = f"The points are results {' and '.join(origins)}." if origins else ""
    st.info(
        f"No measurements of {choice.device.short_title} on this server: its peaks come from the table of "
        f"accelerators. {shown or 'No result from elsewhere matches these choices.'}",
        icon=":material/info:",
    )
show_roofline(view, choice, st.container() if example else said)
if choice.here and not example:
    show_actions()
if all(device.kind == "cpu" for device in devices):
    st.caption("No CUDA device was found in this machine; any GPU of the table can be chosen above.")
