"""What of an experiment is slow, named before it is run, with buttons that leave it out."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.analysis.run.estimate import CostEstimate
from gpuexplore.errors import StoreUnavailable
from gpuexplore.model import Device, Experiment, Result
from gpuexplore.ui.benchmark.settings import key
from gpuexplore.ui.known_results import measured_results


def measured_on(device: Device) -> list[Result]:
    """Return what was measured on `device` before; nothing while the database is away."""
    try:
        return [result for _, result in measured_results(device).found]
    except StoreUnavailable:
        return []


def offer_to_leave_out(expected: CostEstimate, experiment: Experiment) -> None:
    """Name the slowest part of an experiment, where one stands out, beside buttons for the rest without it."""
    if not expected.slow:
        return
    part = expected.slow[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/hourglass: {part.of(expected.seconds)}.", width="content")
        _offer("dtypes", part.dtype, experiment.dtypes)
        _offer("implementations", part.implementation, experiment.implementations)


def _offer(name: str, slow: str, chosen: Sequence[str]) -> None:
    rest = [value for value in chosen if value != slow]
    if rest:
        st.button(f"Leave out {slow}", key=f"slow.{name}", on_click=_choose, args=(name, rest))


def _choose(name: str, rest: list[str]) -> None:
    st.session_state[key(name)] = rest
