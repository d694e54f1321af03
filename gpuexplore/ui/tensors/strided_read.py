"""Where the measurement of reading strided stands on this page: nothing yet, waiting, measured or failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from gpuexplore.analysis.tensors import TensorView
from gpuexplore.kernels.strided_sum import AXES, MOST_CELLS
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.units import format_interval, format_ratio

STATE = "tensors.strided_read"  # the session's key of the state
WAYS: Mapping[str, str] = {
    "loop": "A loop in row order, on one thread",
    "copy": "torch's copy into a contiguous tensor, which may go through it in another order",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """It is queued or being measured; `where` says which, in words."""

    where: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What `gpuexplore.measure.strided_read` reported."""

    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """It ended without a time; `reason` is fit to be shown."""

    reason: str


State = Waiting | Measured | Failed | None  # None: nobody has asked


def arguments_of(view: TensorView) -> dict[str, str] | None:
    """Return what `gpuexplore.measure.strided_read` takes for a tensor; None for one it cannot read."""
    if not 0 < view.axes <= AXES or not 0 < max(view.span, view.element_count) <= MOST_CELLS:
        return None
    return {"shape": ",".join(map(str, view.shape)), "strides": ",".join(map(str, view.strides))}


def state_of(view: TensorView) -> State:
    """Return where the measurement of `view` stands; another tensor's does not count."""
    shape_and_strides, state = st.session_state.get(STATE, (None, None))
    return state if shape_and_strides == arguments_of(view) else None


def show_measured(view: TensorView) -> None:
    """Show where the measurement stands, or what it found."""
    state = state_of(view)
    if isinstance(state, Measured):
        _show_report(state.report)
    elif isinstance(state, Waiting):
        st.info(f"{plain(state.where)}", icon=":material/hourglass_top:")
    elif isinstance(state, Failed):
        st.error(f"It could not be measured: {plain(state.reason)}", icon=":material/error:")
    else:
        st.caption("Not measured yet.")


def _show_report(report: Mapping[str, Any]) -> None:
    device = report["environment"]["device"]["name"]
    for way, title in WAYS.items():
        found = report["ratios"][way]
        between = format_interval(found["ci95"], format_ratio)
        st.markdown(f"- {title}: **{format_ratio(found['median'])}** the time of the contiguous one ({between}, 95 %)")
    show_table(
        lambda: _rows(report["readings"]),
        repr(report["readings"]),
        {"Median": "s", "Low": "s", "High": "s", "Bandwidth": "B/s"},
        alt=f"Table of the times to read the tensor contiguous and strided on {device}",
    )
    for flag in _flags(report["readings"]):
        st.warning(plain(flag), icon=":material/warning:")
    st.caption(f"Measured on {plain(device)} with {report['cache']} caches; the interval of each median is 95 %.")


def _flags(readings: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Return what casts doubt on the readings, the same evidence once."""
    found: dict[str, list[str]] = {}
    for reading, measured in readings.items():
        for flag in measured["flags"]:
            found.setdefault(f"{flag['name']}: {flag['evidence']}", []).append(reading)
    return [f"{words} ({', '.join(names)})" for words, names in found.items()]


def _rows(readings: Mapping[str, Mapping[str, Any]]) -> Sequence[dict[str, object]]:
    return [
        {
            "Read": name,
            "Median": found["median_s"],
            "Low": found["ci95_s"] and found["ci95_s"][0],
            "High": found["ci95_s"] and found["ci95_s"][1],
            "Bandwidth": found["bytes_per_s"],
            "Samples": found["n"],
        }
        for name, found in readings.items()
    ]
