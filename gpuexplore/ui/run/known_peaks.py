"""A table of everything that the fastest result of a run can be compared with."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.analysis.model import AnalyzedResult, Context, PeakChoice, RunAnalysis
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.peak_choice import known_bandwidths, known_peaks
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.analysis.utilization.utilization import bandwidth_utilization, mfu
from gpuexplore.model import Bandwidth, Peak
from gpuexplore.ui.markdown import plain
from gpuexplore.units import UNKNOWN, format_bytes_per_s, format_flop_per_s, format_percent, in_one_unit

WHY = "Source, or why it is unknown"


def show_known_peaks(analysis: RunAnalysis) -> None:
    """Show, folded, the fastest result relative to every known peak."""
    if analysis.fastest is None or not analysis.fastest.byte_count:  # nothing is known of what it does
        return
    with st.expander("MFU against every known peak", icon=":material/percent:"):
        show_peaks_of(analysis.fastest, analysis.context)


def show_peaks_of(analyzed: AnalyzedResult, context: Context) -> None:
    """Show the tables of everything a result can be compared with: its FLOP/s, then its bytes/s."""
    name = f"{analyzed.label} at {shape_label(analyzed.case.shape)}"
    if analyzed.flop_count:
        st.markdown(f"**{name}: {format_flop_per_s(analyzed.flop_per_s)}**")
        rows = _in_one_unit([_compute_row(choice, analyzed) for choice in known_peaks(analyzed.result, context)])
        st.table(rows, hide_index=True, alt=f"MFU of {name} relative to every kind of peak; a dash is unknown")
    st.markdown(f"**{name}: {format_bytes_per_s(analyzed.bytes_per_s)}**")
    if analyzed.cache_resident_reason:
        st.caption(f"It has no share of the memory bandwidth: {analyzed.cache_resident_reason}.")
    rows = _in_one_unit([_memory_row(choice, analyzed) for choice in known_bandwidths(analyzed.result, context)])
    st.table(rows, hide_index=True, alt=f"Memory use of {name} relative to every kind of bandwidth; a dash is unknown")


def _compute_row(choice: PeakChoice[Peak], analyzed: AnalyzedResult) -> dict[str, str]:
    return {
        "Relative to": PEAK_SOURCES[choice.kind].label,
        "Peak": format_flop_per_s(choice.peak.flop_per_s if choice.peak else None),
        "MFU": format_percent(mfu(analyzed.result, choice.peak)),
        WHY: _why(choice, why_above_peak(analyzed.result, choice.peak)),
    }


def _memory_row(choice: PeakChoice[Bandwidth], analyzed: AnalyzedResult) -> dict[str, str]:
    return {
        "Relative to": PEAK_SOURCES[choice.kind].bandwidth_label,
        "Bandwidth": format_bytes_per_s(choice.peak.bytes_per_s if choice.peak else None),
        "Share": format_percent(bandwidth_utilization(analyzed.result, choice.peak)),
        WHY: _why(choice, why_above_bandwidth(analyzed.result, choice.peak)),
    }


def _in_one_unit(rows: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return rows whose columns have one unit each, and whose figures do not break."""
    cells = in_one_unit([tuple(row.values()) for row in rows])
    return [
        {
            name: cell if name in ("Relative to", WHY) else cell.replace(" ", "\N{NO-BREAK SPACE}")
            for name, cell in zip(rows[0], row, strict=True)
        }
        for row in cells
    ]


def _why(choice: PeakChoice[Peak] | PeakChoice[Bandwidth], above: str | None) -> str:
    """Return the source as Markdown that shows what users wrote as it is, after the reason for more than 100 %."""
    source = choice.peak.source if choice.peak else choice.reason or UNKNOWN
    return plain(f"{above} {source}" if above else source)
