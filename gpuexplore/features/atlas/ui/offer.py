"""The atlas, offered where no GPU is."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.core.model import Device
from gpuexplore.features.atlas.analysis import measured_gpus, measured_operations
from gpuexplore.operations import operation_named
from gpuexplore.ui.navigation import file_of


def offer(devices: Sequence[Device]) -> None:
    """Offer published measurements where no GPU is: of the operation with the most of them."""
    if any(device.kind != "cpu" for device in devices):
        return
    operation = next(iter(measured_operations()))
    count = sum(number > 0 for number in measured_gpus(operation).values())
    words = f"See a {operation_named(operation).title.lower()} on {count} GPUs, as others measured it"
    if st.button(words, icon=":material/map:", key="welcome.atlas"):
        st.switch_page(file_of("atlas"), query_params={"op": operation})
