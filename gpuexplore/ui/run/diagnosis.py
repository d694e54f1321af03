"""Why a result is as it is, on a page: sentences by how grave they are, each with the figures it rests on."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import streamlit as st

from gpuexplore.analysis.diagnosis import Diagnosis, Severity, diagnose
from gpuexplore.analysis.run.evidence import headline_result, name_of
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against, knowing
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.model import Result
from gpuexplore.ui.markdown import plain

WIDTH = 420  # pixels: a shape, an implementation, a dtype and a device fit
ICONS: Mapping[Severity, str] = MappingProxyType(
    {
        "explains": ":material/lightbulb:",
        "doubt": ":orange[:material/warning:]",
        "wrong": ":red[:material/error:]",
    }
)


def show_diagnosis(results: Sequence[Result], against: Against = USUAL, *, running: bool = False) -> None:
    """Show what explains one of the results: the chosen one; while `running` the fastest so far.

    Args:
        results: of one run.
        against: what the results are held against.
    """
    first = headline_result(results)
    if first is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**Why**", width="content")
        chosen = first if running else _choose(results, first)
        if running:
            st.caption(f"{_label(chosen, results)}, the fastest so far")
    found = diagnose(chosen, results, knowing(against, results))
    for one in found:
        _show(one)
    if not found:
        st.caption("Nothing stands out: no peak of this device says what limits it, and no flag was raised.")


def _choose(results: Sequence[Result], first: Result) -> Result:
    """Return the result the visitor chose; another run, with another `first`, starts anew with that one."""
    by_label = {_label(one, results): one for one in (first, *results)}
    label = st.selectbox(
        "Result to explain",
        list(by_label),
        key=f"why.{_label(first, results)}",
        label_visibility="collapsed",
        width=WIDTH,
    )
    return by_label.get(label, first)


def _label(result: Result, results: Sequence[Result]) -> str:
    ending = "" if result.measurement else f" ({result.status.value.replace('_', ' ')})"
    return f"{shape_label(result.case.shape)}, {name_of(result, results)}{ending}"


def _show(one: Diagnosis) -> None:
    with st.container(gap=None):
        st.markdown(f"{ICONS[one.severity]} {plain(one.sentence)}")
        st.caption(plain(one.evidence))
