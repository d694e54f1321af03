"""Every figure of a run in a table, one row per case: numbers that sort as numbers, in the units people read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts.points import format_contrasts
from gpuexplore.core import UNKNOWN, Measurement, Shape, format_ratio
from gpuexplore.ui.run.comparison import RunView
from gpuexplore.ui.shared.tables import table_of

MOST_LISTED = 200
UNITS = MappingProxyType(
    dict.fromkeys(("Time", "95 % low", "95 % high", "First call"), "s")
    | {"Speedup": "×", "Rate": "FLOP/s", "Bandwidth": "B/s", "MFU": "%", "Energy": "J", "Error": "error"}
)
CONFIG: Mapping[str, Any] = MappingProxyType(
    {
        "Time": st.column_config.Column(help="Median per call"),
        "95 % low": st.column_config.Column(help="Lower end of the 95 % interval of the median"),
        "95 % high": st.column_config.Column(help="Upper end of that interval"),
        "Interval for": st.column_config.Column(
            help="Scope of that interval: any process on this machine; only this run in results of earlier versions"
        ),
        "Also": st.column_config.TextColumn(help="The same call under another condition", width="medium"),
        "MFU": st.column_config.Column(help="FLOP/s reached over the peak in the column Peak"),
        "Bound": st.column_config.Column(help="What limits it, by its arithmetic intensity"),
        "Error": st.column_config.Column(help="Relative to a float64 reference"),
        "Energy": st.column_config.Column(help="Per call: power reported at the end of sampling, times the median"),
        "First call": st.column_config.Column(help="Including compilation and library start; never part of the median"),
        "Flags": st.column_config.ListColumn(help="Conditions that affect it; see Remarks for the evidence"),
        "Remarks": st.column_config.TextColumn(width="large"),
    }
)


def show_results_table(drawn: RunView) -> None:
    """Show the results as a table with status, reason, error and flags; of a large run the fastest ones."""
    results = drawn.made.get("listed", lambda: _listed(drawn.analysis))
    st.markdown("**Results**")
    if len(results) < len(drawn.analysis.results):
        st.caption(
            f"{len(results)} of {len(drawn.analysis.results)} results: the fastest of each size and dtype. "
            "The files below have all of them."
        )
    table = drawn.made.get("table", lambda: table_of([shown_row(analyzed) for analyzed in results], UNITS))
    table.show(config=CONFIG, alt=f"Table of {len(results)} results with time, rate, MFU, status and flags")


def _listed(analysis: RunAnalysis) -> tuple[AnalyzedResult, ...]:
    """Return the results to list: all, or of more than MOST_LISTED the fastest of each shape, dtype and device."""
    if len(analysis.results) <= MOST_LISTED:
        return analysis.results
    fastest: dict[tuple[Shape, str, str], AnalyzedResult] = {}
    for analyzed in analysis.results:
        point = (analyzed.case.shape, analyzed.case.dtype, analyzed.case.device)
        if _median_s(analyzed) < _median_s(fastest.get(point)):
            fastest[point] = analyzed
    return tuple(fastest.values())[:MOST_LISTED]


def _median_s(analyzed: AnalyzedResult | None) -> tuple[bool, float]:
    """Return what orders results to list: those of one sample last, for they win nothing."""
    if analyzed is None or analyzed.median_s is None:
        return True, float("inf")
    return analyzed.flag("one_sample") is not None, analyzed.median_s


def shown_row(analyzed: AnalyzedResult) -> dict[str, Any]:
    """Return a row of the table; unknown is None."""
    case = analyzed.case
    measurement = analyzed.measurement
    low, high = analyzed.ci95_s or (None, None)
    choice = analyzed.peak if analyzed.flop_count else analyzed.bandwidth
    peak = choice.peak.source if choice.peak else f"{UNKNOWN} {choice.reason}"
    return {
        "Size": shape_label(case.shape),
        "Dtype": case.dtype,
        "Implementation": case.implementation,
        "Device": case.device,
        "Status": analyzed.result.status.value.replace("_", " "),
        "Time": analyzed.median_s,
        "95 % low": low,
        "95 % high": high,
        "Interval for": measurement and _scope(measurement),
        "Also": (format_contrasts(measurement) if measurement else "") or None,
        "Speedup": analyzed.speedup and analyzed.speedup.ratio,
        "Rate": analyzed.flop_per_s or None,
        "Bandwidth": analyzed.bytes_per_s,
        "MFU": analyzed.mfu,
        "Bound": analyzed.bound,
        "Energy": analyzed.energy_j,
        "Error": analyzed.result.accuracy and analyzed.result.accuracy.relative_error,
        "Flags": [mark.replace("_", " ") for mark in analyzed.marks],
        "Samples": len(measurement.samples_s) if measurement else None,
        "First call": measurement and measurement.first_call_s,
        "Remarks": _remarks(analyzed),
        "Peak": peak,
    }


def _scope(measurement: Measurement) -> str | None:
    """Return the scope of the interval of the median; None where there is none."""
    if measurement.ci95_s is None:
        return None
    if len(measurement.processes) > 1:
        return f"{len(measurement.processes)} processes"
    return "any process" if measurement.covers_processes else "this run"


def _remarks(analyzed: AnalyzedResult) -> str:
    """Return why there is no time, or why a fraction is above 100 % and what the flags rest on."""
    above = [reason for reason in (analyzed.above_peak, analyzed.above_bandwidth) if reason]
    flags = [f"{flag.name}: {flag.evidence}" for flag in analyzed.flags]
    if analyzed.speedup and analyzed.speedup.by_round:
        flags.append(f"rounds_disagree: round by round the speedup is {format_ratio(analyzed.speedup.by_round)}")
    return analyzed.result.reason or " · ".join([*above, *flags])
