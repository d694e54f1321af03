"""The workload on the page of what-ifs: an operation, a list of layers, a transformer block or a run."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import streamlit as st

from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.analysis.what_if.workload import Workload, of_operation, of_run, parse_layers, transformer_block
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Run
from gpuexplore.core.units import read_whole
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import parse_shape
from gpuexplore.ui import url_widgets
from gpuexplore.ui.run.state import fetch
from gpuexplore.ui.run_head import show_small_head, title_of
from gpuexplore.ui.session import owner, store

DEFAULT_LAYERS = "linear b=8192,d=4096,k=4096 x4\nattention b=4,h=32,s=2048,d=128\nlayer_norm m=8192,n=4096 x2"
BLOCK = (  # of a model with some seven billion parameters
    ("Batch", "batch", "4"),
    ("Sequence", "seq", "2048"),
    ("Hidden size", "hidden", "4096"),
    ("Heads", "heads", "32"),
    ("Feed-forward", "ff", "16384"),
)
CHOICES = ("what", "op", "shape", "layers", "run", "at", *(name for _, name, _ in BLOCK))
LARGEST = 999_999_999


def choose_workload() -> Workload:
    """Draw the choices and return the workload.

    Raises:
        InvalidInput: it cannot be; says what is accepted.
        NotFound: there is no such run.
    """
    kind = url_widgets.segments("Workload", "what", list(KINDS), shown=lambda name: KINDS[name][0])
    return KINDS[kind][1]()


def reset_workload() -> None:
    """Go back to the default workload."""
    url_widgets.forget(*CHOICES)


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
            DEFAULT_LAYERS,
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
    batch, sequence, hidden, heads, feed_forward = _whole_numbers(typed)
    return transformer_block(batch=batch, sequence=sequence, hidden=hidden, heads=heads, feed_forward=feed_forward)


def _whole_numbers(typed: list[tuple[str, str]]) -> list[int]:
    numbers = [read_whole(text) or 0 for _, text in typed]
    bad = [entry for entry, number in zip(typed, numbers, strict=True) if not 1 <= number <= LARGEST]
    if bad:
        accepted = f"whole numbers from 1 to {LARGEST:,}"
        raise InvalidInput("\n".join(str(InvalidInput.of(label.lower(), text, accepted)) for label, text in bad))
    return numbers


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
        run = known[url_widgets.select("Run", "run", list(known), shown=lambda name: _run_label(known[name]))]
    operation, shapes = OPERATIONS[run.experiment.operation], run.experiment.shapes
    by_work = sorted(shapes, key=lambda shape: (operation.flop_count(shape), *shape), reverse=True)
    labels = {str(shape): shape for shape in by_work}
    with right:
        chosen = url_widgets.select("Shape", "at", list(labels), shown=lambda name: shape_label(labels[name]))
    show_small_head(fetch(run.id))
    return of_run(run, labels[chosen])


def _run_label(run: Run) -> str:
    return f"{title_of(run)} ({run.id})"


KINDS: Mapping[str, tuple[str, Callable[[], Workload]]] = MappingProxyType(
    {
        "operation": ("An operation", _operation),
        "block": ("A transformer block", _block),
        "layers": ("Layers", _layers),
        "run": ("A run", _run),
    }
)
