"""Devices: what this machine has, peaks of one's own, and every accelerator of the table."""

import streamlit as st

from gpuexplore.hardware import ACCELERATORS, search
from gpuexplore.ui.devices import edit_own_peaks, show_accelerators, show_calibration, show_device, show_warming_up
from gpuexplore.ui.glossary import page_help
from gpuexplore.ui.link import open_page
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices, live_supervisor
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.url_widgets import is_usable

st.title("Devices")
st.caption("The devices of this machine, their peaks and the source of each figure.", help=page_help("devices"))
open_page("devices")

devices = known_devices()
supervisor = live_supervisor()
if supervisor is None:
    st.warning(
        "The measuring process is not running, so measured peaks may be missing. It starts with the first run.",
        icon=":material/hourglass_empty:",
    )
elif supervisor.state == "warming":
    redrawn(show_warming_up, 1.0)()
for device in devices:
    show_device(device)
if all(device.kind == "cpu" for device in devices):
    st.caption(
        "No CUDA device was found, so everything runs on the CPU. To use a GPU, install NVIDIA's driver and restart."
    )

st.subheader("Calibration", anchor="calibration")
st.caption("Measures a device for about a minute, and shows what that changes in its predictions.")
show_calibration(devices)

with st.expander("Custom peak", icon=":material/edit:"):
    edit_own_peaks(devices)

st.subheader("Accelerators to compare with", anchor="accelerators")
query = st.text_input(
    "Search",
    key="q",
    bind="query-params",
    placeholder="H100, RTX 40, Blackwell, gfx942, ...",
    icon=":material/search:",
)
query = query if query and is_usable("q", query) else ""
found = search(query)
if found:
    show_accelerators(found)
    st.caption(
        f"{len(found)} of {len(ACCELERATORS)}. Dense peaks per device: fp64 and fp32 of the vector units; tf32, bf16 "
        "and fp16 of the matrix units, accumulating in fp32. A dash: no such unit, or its rate is unknown."
    )
else:
    st.info(
        f"None of the {len(ACCELERATORS)} accelerators matches {plain(repr(query))}. Try part of a name: `A100`.",
        icon=":material/search_off:",
    )
