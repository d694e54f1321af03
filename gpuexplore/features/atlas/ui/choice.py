"""What the atlas is asked: an operation, dtypes, GPUs, what is drawn, and a shape; all of it in the URL."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType

import streamlit as st

from gpuexplore.analysis.prediction import CALLS, Calls
from gpuexplore.devices import ACCELERATORS
from gpuexplore.errors import InvalidInput
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.defaults import (
    dtypes_of,
    measured_gpus,
    measured_operations,
    usual_calls,
    usual_dtype,
    usual_gpus,
    usual_shape,
)
from gpuexplore.features.atlas.chart import SHOWN, Show
from gpuexplore.model import Shape
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import parse_shape
from gpuexplore.ui import url_widgets

NAMES = {row.key: row.name for row in ACCELERATORS}
MOST_SERIES = 7  # as many colours as the theme has
_CALLS: Mapping[str, str] = MappingProxyType(
    {"graph": "In a CUDA graph", "queued": "Queued", "single": "One at a time"}
)
_LABELS: Mapping[str, str] = MappingProxyType({name: quantity.label for name, quantity in SHOWN.items()})


@dataclass(frozen=True, slots=True)
class AtlasChoice:
    """What a visitor chose.

    Attributes:
        operation: its name.
        shown: dtype and GPU of what is drawn, by their names, each once: at most MOST_SERIES.
        show: what is drawn upwards.
        calls: how calls follow one another where they are predicted.
        shape: the one in question.
    """

    operation: str
    shown: tuple[tuple[str, str], ...]
    show: Show
    calls: Calls
    shape: Shape

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that are drawn."""
        return tuple(dict.fromkeys(dtype for dtype, _ in self.shown))

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs that are drawn."""
        return tuple(dict.fromkeys(gpu for _, gpu in self.shown))


def choose() -> AtlasChoice:
    """Draw the choices and return them."""
    with st.container(border=True):
        problems = st.container()  # the columns are too narrow for sentences
        left, middle, right = st.columns([4, 3, 5], gap="medium")
        with left:
            operation = url_widgets.select(
                "Operation", "op", list(measured_operations()), shown=_counted, problems=problems
            )
        with middle:
            usual = usual_dtype(operation)
            dtypes = url_widgets.several("Dtypes", "dtype", dtypes_of(operation), default=(usual,)) or [usual]
        with right:
            counts, default = measured_gpus(operation), usual_gpus(operation, tuple(dtypes))
            gpus = url_widgets.several("GPUs", "gpus", list(counts), default=default, shown=NAMES.__getitem__)
        shown = [(dtype, gpu) for dtype in dtypes for gpu in gpus or default]
        if len(shown) > MOST_SERIES:
            with problems:
                url_widgets.show_problem(_too_many(shown))
        found = points(operation, gpus or default, dtypes)
        left, middle, right = st.columns([4, 3, 5], gap="medium")
        with left:
            show = url_widgets.segments("Show", "show", list(SHOWN), shown=_LABELS.__getitem__)
        with middle:
            usual_first = sorted(CALLS, key=lambda name: name != usual_calls(found))
            calls = url_widgets.select(
                "Predicted calls", "calls", usual_first, shown=_CALLS.__getitem__, problems=problems
            )
        with right:
            shape = _shape(operation, usual_shape(operation, found), problems)
    return AtlasChoice(
        operation,
        tuple(shown[:MOST_SERIES]),
        next(name for name in SHOWN if name == show),
        next(name for name in CALLS if name == calls),
        shape,
    )


def _shape(operation: str, usual: Shape, problems: AbstractContextManager[object]) -> Shape:
    typed = url_widgets.shape(str(usual))
    try:
        return parse_shape(typed, OPERATIONS[operation], measured=False)
    except InvalidInput as error:
        with problems:
            url_widgets.show_problem(error)
        return usual


def _counted(operation: str) -> str:
    """Return an operation's title with the number of its measurements."""
    count = measured_operations()[operation]
    return (
        f"{OPERATIONS[operation].title} ({count:,} measured)" if count else f"{OPERATIONS[operation].title} (predicted)"
    )


def _too_many(shown: Sequence[tuple[str, str]]) -> InvalidInput:
    accepted = f"at most {MOST_SERIES} combinations of GPU and dtype: the first count"
    return InvalidInput.of("gpus and dtype", f"{len(shown)} of them", accepted)
