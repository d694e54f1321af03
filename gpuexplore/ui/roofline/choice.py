"""What a roofline is asked to show: a device, a dtype, whose runs; all of it in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gpuexplore.devices import ACCELERATORS, as_device
from gpuexplore.dtypes import FORMATS
from gpuexplore.model import Device
from gpuexplore.ui import url_widgets

ALL = "all"
RUNS = {"mine": "My runs", "all": "Everybody's", "none": "None"}
RECORDED = {"on": "Shown", "off": "Hidden"}
TABLE = {accelerator.key: accelerator for accelerator in ACCELERATORS}


@dataclass(frozen=True, slots=True)
class RooflineChoice:
    """What a visitor chose.

    Attributes:
        device: of this machine, or a row of the table.
        here: whether it can be measured on this machine.
        dtype: the only one, or None for all.
        runs: whose, a key of RUNS.
        recorded: whether results recorded on other hardware are drawn.
        operation: the only one, or None for all.
    """

    device: Device
    here: bool
    dtype: str | None
    runs: str
    recorded: bool
    operation: str | None


def choose(devices: Sequence[Device]) -> RooflineChoice:
    """Draw the choices and return them."""
    known = {device.id: device for device in devices}
    with st.container(border=True):
        problems = st.container()  # the columns are too narrow for sentences
        place, dtypes, operations, whose, recordings = st.columns([4, 2, 3, 3, 2], gap="medium")
        with place:
            name = url_widgets.select(
                "Device", "device", [*known, *TABLE], shown=lambda key: _label(key, known), problems=problems
            )
        device = known[name] if name in known else as_device(TABLE[name])
        with dtypes:
            present = [dtype for dtype in FORMATS if any(peak.dtype == dtype for peak in device.peaks)]
            dtype = url_widgets.select("Dtype", "dtype", [ALL, *present], problems=problems)
        with operations:
            operation = url_widgets.operation(ALL, problems=problems)
        with whose:
            runs = url_widgets.select("Runs", "runs", list(RUNS), shown=RUNS.__getitem__, problems=problems)
        with recordings:
            recorded = url_widgets.select(
                "Recorded runs", "recorded", list(RECORDED), shown=RECORDED.__getitem__, problems=problems
            )
    return RooflineChoice(
        device=device,
        here=name in known,
        dtype=None if dtype == ALL else dtype,
        runs=runs,
        recorded=recorded == "on",
        operation=None if operation == ALL else operation,
    )


def _label(name: str, known: dict[str, Device]) -> str:
    return f"{known[name].title} (this machine, {name})" if name in known else TABLE[name].name
