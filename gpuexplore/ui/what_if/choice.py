"""The choices of the page of what-ifs, each in the URL: devices, formats, baseline; the workload, of four kinds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import CALLS, USUAL_CALLS, Calls
from gpuexplore.analysis.prediction.request import calls_named
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.analysis.what_if.workload import Workload, of_operation, of_run, parse_layers, transformer_block
from gpuexplore.core import Device, InvalidInput, read_whole
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.hardware import NEWEST_FIRST, as_device
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import parse_shape
from gpuexplore.ui import url_widgets
from gpuexplore.ui.run.state import fetch
from gpuexplore.ui.run_head import show_small_head, title_of
from gpuexplore.ui.session import owner, store

CALL_TITLES = {"graph": "CUDA graph", "queued": "Queued", "single": "Single", "cold": "Cold kernel"}
TIMES = "fp32:1.7327,bf16:3.874"
PEAKS = "fp32:8e12,bf16:16e12"
NOTEBOOK = {"op": "linear", "shape": "notebook-linear", "device": "t4", "gpus": "", "times": TIMES, "peaks": PEAKS}


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


def _offer_presets() -> None:
    """Draw a button for each example worth a look; it replaces the URL's parameters."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("For example:", width="content")
        for label, query in {"A notebook's T4": NOTEBOOK, "A transformer block": {"what": "block"}}.items():
            take = st.query_params.from_dict
            st.button(label, type="tertiary", icon=":material/bookmark:", on_click=take, args=(query,))


def draw_choice(here: Sequence[Device], elsewhere: DeltaGenerator) -> WhatIfChoice:
    """Draw the choices and return them.

    Args:
        here: the devices of this machine.
        elsewhere: where the choice of further devices is drawn: next to what it decides.
    """
    known = {device.id: device for device in here}
    table = {accelerator.key: accelerator for accelerator in NEWEST_FIRST}
    names = list(dict.fromkeys(("h100-sxm5-80gb", *known, *table)))

    def shown(name: str) -> str:
        return f"{known[name].title} ({name}, here)" if name in known else table[name].name

    def device_of(name: str) -> Device:
        return known[name] if name in known else as_device(table[name])

    left, right = st.columns([2, 1], gap="medium")
    with left:
        device = url_widgets.select("Device", "device", names, shown=shown)
    with right:
        baseline = url_widgets.select("Baseline dtype", "baseline", list(dict.fromkeys(("fp32", *FORMATS))))
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
        most = 12
        if len(others) > most:
            url_widgets.show_problem(
                InvalidInput.of("gpus", f"{len(others)} of them", f"at most {most}: only the first are used")
            )
    times_s, promised, prices = _entered(names)
    return WhatIfChoice(
        device=device_of(device),
        others=tuple(device_of(other) for other in others[:most]),
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
            example = "t4:0.35,h100-sxm5-80gb:2.50"
            prices = _numbers("price", "Price per hour", "Per device key, in any currency.", example, names=names)
    return times_s, promised, prices


def _numbers(name: str, label: str, about: str, example: str, *, names: Sequence[str]) -> dict[str, float]:
    """Draw a field of numbers by name, like the example, and return them."""
    typed = url_widgets.text(label, name, "", help=f"{about} Like `{example}`.", placeholder=example)
    found, problems = named_numbers(name, typed, names, example)
    for problem in problems:
        url_widgets.show_problem(InvalidInput(problem))
    return found


BLOCK = (  # of a model with some seven billion parameters
    ("Batch", "batch", "4"),
    ("Sequence", "seq", "2048"),
    ("Hidden size", "hidden", "4096"),
    ("Heads", "heads", "32"),
    ("Feed-forward", "ff", "16384"),
)


def choose_workload() -> Workload:
    """Draw the choices and return the workload.

    Raises:
        InvalidInput: it cannot be; says what is accepted.
        NotFound: there is no such run.
    """
    _offer_presets()
    kind = url_widgets.segments("Workload", "what", list(KINDS), shown=lambda name: KINDS[name][0])
    return KINDS[kind][1]()


def _operation() -> Workload:
    left, right = st.columns([2, 3], gap="medium")
    with left:
        operation = OPERATIONS[url_widgets.operation()]
    with right:
        shape = url_widgets.shape("4096")
    st.caption(f"{operation.formula}. {operation.about}")
    return of_operation(operation, parse_shape(shape, operation, measured=False))


def _layers() -> Workload:
    return parse_layers(
        url_widgets.lines(
            "Layers",
            "layers",
            "linear b=8192,d=4096,k=4096 x4\nattention b=4,h=32,s=2048,d=128\nlayer_norm m=8192,n=4096 x2",
            help="One layer per line: an operation; its shape, size or preset; and `x2` to repeat it.",
        )
    )


def _block() -> Workload:
    columns = st.columns(len(BLOCK), gap="small")
    typed = []
    for column, (label, name, default) in zip(columns, BLOCK, strict=True):
        with column:
            typed.append((label, url_widgets.text(label, name, default, help="A whole number from 1.")))
    st.caption("Forward pass: norms, attention without a mask, a two-layer MLP, residual sums.")
    largest = 999_999_999
    numbers = [read_whole(text) or 0 for _, text in typed]
    bad = [entry for entry, number in zip(typed, numbers, strict=True) if not 1 <= number <= largest]
    if bad:
        accepted = f"whole numbers from 1 to {largest:,}"
        raise InvalidInput("\n".join(str(InvalidInput.of(label.lower(), text, accepted)) for label, text in bad))
    batch, sequence, hidden, heads, feed_forward = numbers
    return transformer_block(batch=batch, sequence=sequence, hidden=hidden, heads=heads, feed_forward=feed_forward)


def _run() -> Workload:
    recent = store().history(owner(), limit=20)
    asked = st.query_params.get("run")
    known = {run.id: run for run in recent}
    if asked and asked not in known:
        known[asked] = fetch(asked)
    if not known:
        raise InvalidInput("you have no runs yet: measure one on the page Benchmark, or open a link to one")
    left, right = st.columns([2, 3], gap="medium")
    with left:
        labels = {run.id: f"{title_of(run)} ({run.id})" for run in known.values()}
        run = known[url_widgets.select("Run", "run", list(known), shown=labels.__getitem__)]
    operation = OPERATIONS[run.experiment.operation]
    by_work = sorted(run.experiment.shapes, key=lambda shape: (operation.flop_count(shape), *shape), reverse=True)
    shapes = {str(shape): shape for shape in by_work}
    with right:
        chosen = url_widgets.select("Shape", "at", list(shapes), shown=lambda name: shape_label(shapes[name]))
    show_small_head(fetch(run.id))
    return of_run(run, shapes[chosen])


KINDS: Mapping[str, tuple[str, Callable[[], Workload]]] = MappingProxyType(
    {
        "operation": ("An operation", _operation),
        "block": ("A transformer block", _block),
        "layers": ("Layers", _layers),
        "run": ("A run", _run),
    }
)
