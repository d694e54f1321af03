"""Why a result is as it is, on a page: sentences by how grave they are, each with the figures it rests on."""

from collections.abc import Mapping
from types import MappingProxyType

import streamlit as st

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis, RunAnalysis, Severity
from gpuexplore.analysis.run.summary_rules import phases_said
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.url_widgets import select

ICONS: Mapping[Severity, str] = MappingProxyType(
    {
        "explains": ":material/lightbulb:",
        "doubt": ":orange[:material/warning:]",
        "wrong": ":red[:material/error:]",
    }
)


def show_diagnosis(analysis: RunAnalysis, *, running: bool = False) -> None:
    """Show what explains one of the results: the chosen one; while `running` the fastest so far."""
    first = analysis.headline_result
    if first is None:
        return
    st.markdown("**What limits this result**")
    if running:
        st.caption(f"{_label(first)}, the fastest so far")
    chosen = first if running else _choose(analysis, first)
    if phases := phases_said(chosen):
        st.markdown(f":material/timeline: {plain(phases)}")
    for diagnosis in chosen.diagnoses:
        _show(diagnosis)
    if not chosen.diagnoses:
        st.caption("Nothing stands out: no peak of this device says what limits it, and no flag was raised.")


def _choose(analysis: RunAnalysis, first: AnalyzedResult) -> AnalyzedResult:
    """Return the result the URL names: the first one where it names none."""
    by_label = {_label(analyzed): analyzed for analyzed in (first, *analysis.results)}
    return by_label[select("Result", "explain", list(by_label))]


def _label(analyzed: AnalyzedResult) -> str:
    status = analyzed.result.status.value.replace("_", " ")
    return f"{shape_label(analyzed.case.shape)}, {analyzed.label}{'' if analyzed.measurement else f' ({status})'}"


def _show(diagnosis: Diagnosis) -> None:
    with st.container(gap=None):
        st.markdown(f"{ICONS[diagnosis.severity]} {plain(diagnosis.sentence)}")
        st.caption(plain(diagnosis.evidence))
