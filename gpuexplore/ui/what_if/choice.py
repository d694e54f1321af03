"""The choices of the page of what-ifs: devices, formats and baseline, each in the URL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import CALLS, USUAL_CALLS, Calls
from gpuexplore.analysis.prediction.request import calls_named
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.ui import url_widgets

TABLE = {accelerator.key: accelerator for accelerator in ACCELERATORS}
DEFAULT_DEVICE = "h100-sxm5-80gb"
DEFAULT_BASELINE = "fp32"
MOST_OTHERS = 12
CALL_TITLES = {"graph": "CUDA graph", "queued": "Queued", "single": "Single"}
TIMES, PEAKS, PRICE = "fp32:1.7327,bf16:3.874", "fp32:8e12,bf16:16e12", "t4:0.35,h100-sxm5-80gb:2.50"
NOTEBOOK = {"op": "linear", "shape": "notebook-linear", "device": "t4", "gpus": "", "times": TIMES, "peaks": PEAKS}
PRESETS = {"A notebook's T4": NOTEBOOK, "A transformer block": {"what": "block"}}


@dataclass(frozen=True, slots=True)
class WhatIfChoice:
    """The choices apart from the workload.

    Attributes:
        device: the one in question.
        others: further devices to compare with.
        dtypes: names of formats.
        baseline: the format speedups are against.
        calls: how calls follow one another.
        times_s: seconds entered for `device`, by dtype.
        promised: FLOP/s entered for `device`, by dtype.
        prices_per_hour: entered, by the id of a device.
    """

    device: Device
    others: tuple[Device, ...]
    dtypes: tuple[str, ...]
    baseline: str
    calls: Calls
    times_s: Mapping[str, float] = field(hash=False)
    promised: Mapping[str, float] = field(hash=False)
    prices_per_hour: Mapping[str, float] = field(hash=False)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Every device chosen, each once."""
        return tuple({device.id: device for device in (self.device, *self.others)}.values())


def offer_presets() -> None:
    """Draw a button for each example worth a look; it replaces the URL's parameters."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("For example:", width="content")
        for label, query in PRESETS.items():
            st.button(label, type="tertiary", icon=":material/bookmark:", on_click=_take, args=(query,))


def _take(query: Mapping[str, str]) -> None:
    st.query_params.from_dict(query)


def draw_choice(here: Sequence[Device], elsewhere: DeltaGenerator) -> WhatIfChoice:
    """Draw the choices and return them.

    Args:
        here: the devices of this machine.
        elsewhere: where the choice of further devices is drawn: next to what it decides.
    """
    known = {device.id: device for device in here}
    names = [DEFAULT_DEVICE, *known, *(key for key in TABLE if key != DEFAULT_DEVICE)]

    def shown(name: str) -> str:
        return f"{known[name].title} ({name}, here)" if name in known else TABLE[name].name

    def device_of(name: str) -> Device:
        return known[name] if name in known else as_device(TABLE[name])

    problems = st.container()  # the columns are too narrow for sentences
    left, middle, right = st.columns([4, 2, 7], gap="medium")
    with left:
        device = url_widgets.select("Device", "device", names, shown=shown, problems=problems)
    with middle:
        baseline = url_widgets.select("Baseline dtype", "baseline", _baseline_first(), problems=problems)
    with right:
        dtypes = url_widgets.several("Dtypes", "dtype", list(FORMATS), default=list(FORMATS))
    calls = _choose_calls()
    with elsewhere:
        others = url_widgets.several(
            "Compare with",
            "gpus",
            names,
            default=("b200-sxm-180gb", "a100-sxm4-80gb", "l4", "rtx-4090", "t4"),
            shown=shown,
        )
        if len(others) > MOST_OTHERS:
            url_widgets.show_problem(
                InvalidInput.of("gpus", f"{len(others)} of them", f"at most {MOST_OTHERS}: only the first are used")
            )
    times_s, promised, prices = _entered(names)
    return WhatIfChoice(
        device=device_of(device),
        others=tuple(device_of(other) for other in others[:MOST_OTHERS]),
        dtypes=tuple(dtype for dtype in FORMATS if dtype in dtypes),
        baseline=baseline,
        calls=calls,
        times_s=times_s,
        promised=promised,
        prices_per_hour=prices,
    )


def _choose_calls() -> Calls:
    """Draw the choice of how calls follow one another, with what it means."""
    kinds = sorted(CALL_TITLES, key=lambda kind: kind != USUAL_CALLS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = calls_named(url_widgets.segments("Calls", "calls", kinds, shown=CALL_TITLES.__getitem__))
        st.caption(f"{CALLS[chosen][0].upper()}{CALLS[chosen][1:]}.")
    return chosen


def _baseline_first() -> list[str]:
    return sorted(FORMATS, key=lambda name: name != DEFAULT_BASELINE)


def _entered(names: Sequence[str]) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Draw what a visitor may know from elsewhere; what cannot be used of it is named, the rest counts."""
    asked = any(name in st.query_params for name in ("times", "peaks", "price"))
    with st.expander("Your measurements, peaks and prices", icon=":material/edit_note:", expanded=asked):
        times, peaks, price = st.columns(3, gap="medium")
        with times:
            about = "Seconds of the whole workload on the device."
            times_s = _numbers("times", "Times measured elsewhere (s)", about, TIMES, names=list(FORMATS))
        with peaks:
            about = "Peaks that the vendor or others claim for the device."
            promised = _numbers("peaks", "Advertised peaks (FLOP/s)", about, PEAKS, names=list(FORMATS))
        with price:
            prices = _numbers("price", "Price per hour", "Per device key, in any currency.", PRICE, names=names)
    return times_s, promised, prices


def _numbers(name: str, label: str, about: str, example: str, *, names: Sequence[str]) -> dict[str, float]:
    """Draw a field of numbers by name, like the example, and return them."""
    typed = url_widgets.text(label, name, "", help=f"{about} Like `{example}`.", placeholder=example)
    found, problems = named_numbers(name, typed, names, example)
    for problem in problems:
        url_widgets.show_problem(InvalidInput(problem))
    return found
