"""Why a result is as it is, on a page: sentences by how grave they are, each with the figures it rests on."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import streamlit as st

from gpuexplore.analysis.diagnosis import Diagnosis, Severity, diagnose
from gpuexplore.analysis.evidence import most_worth_explaining, name_of
from gpuexplore.analysis.rates import shape_label
from gpuexplore.model import Peak, Result
from gpuexplore.ui.text import plain

ICONS: Mapping[Severity, str] = MappingProxyType(
    {
        "explains": ":material/lightbulb:",
        "doubt": ":orange[:material/warning:]",
        "wrong": ":red[:material/error:]",
    }
)


def show_diagnosis(results: Sequence[Result], own_peaks: Sequence[Peak] = (), *, running: bool = False) -> None:
    """Show what explains one of the results: the chosen one; while `running` the fastest so far.

    Args:
        results: of one run.
        own_peaks: peaks the visitor entered, instead of the device's.
    """
    first = most_worth_explaining(results)
    if first is None:
        return
    st.markdown("**Why**")
    chosen = first if running else _choose(results, first)
    found = diagnose(chosen, results, own_peaks)
    if running:
        st.caption(f"{_label(chosen, results)}, the fastest so far")
    for one in found:
        _show(one)
    if not found:
        st.caption("Nothing stands out: no peak of this device says what limits it, and no flag was raised.")


def _choose(results: Sequence[Result], first: Result) -> Result:
    ordered = [first, *(one for one in results if one is not first)]
    cases = [one.case for one in ordered]
    labels = [_label(one, results) for one in ordered]
    case = st.selectbox(
        "Result to explain", cases, key="why", format_func=lambda case: labels[cases.index(case)], width=420
    )
    return ordered[cases.index(case)] if case in cases else first


def _label(result: Result, results: Sequence[Result]) -> str:
    ending = "" if result.measurement else f" ({result.status.value.replace('_', ' ')})"
    return f"{shape_label(result.case.shape)}, {name_of(result, results)}{ending}"


def _show(one: Diagnosis) -> None:
    with st.container(gap=None):
        st.markdown(f"{ICONS[one.severity]} {plain(one.sentence)}")
        st.caption(plain(one.evidence))
