"""One device of this machine on a page: its facts, its peaks and their sources."""

import streamlit as st

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.devices import TORCH_KINDS
from gpuexplore.model import Device, Peak, PeakKind
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s

HEADLINES = ("fp32", "bf16", "fp16")


def show_device(device: Device) -> None:
    """Show a device as a card."""
    with st.container(border=True):
        st.subheader(device.title, anchor=device.id.replace(":", "-"))
        st.caption(" · ".join(_facts(device)))
        columns = st.columns(len(HEADLINES) + 1)
        for column, dtype in zip(columns, HEADLINES, strict=False):
            peak = device.peak(dtype, "matrix")
            column.metric(f"{dtype} matmul", format_flop_per_s(peak.flop_per_s if peak else None), help=_source(peak))
        bandwidth = device.bandwidth
        columns[-1].metric(
            "Memory",
            format_bytes_per_s(bandwidth.bytes_per_s if bandwidth else None),
            help=f"{_kind_words(bandwidth.kind)}: {bandwidth.source}" if bandwidth else "unknown",
        )
        for note in device.notes:
            st.caption(note)
        if device.peaks:
            with st.expander("Every peak and its source", icon=":material/receipt_long:"):
                show_table(
                    lambda: [_peak(peak) for peak in device.peaks],
                    device.peaks,
                    {"Peak": "FLOP/s"},
                    alt=f"Peaks of {device.title} with kind and source",
                )


def _facts(device: Device) -> list[str]:
    unit = "cores" if device.kind == "cpu" else "multiprocessors"
    found = [
        f"`{device.id}`",
        f"{device.cores} {unit}" if device.cores else None,
        f"{format_bytes(device.memory_bytes)} memory" if device.memory_bytes else None,
        f"{format_bytes(device.cache_bytes)} last-level cache" if device.cache_bytes else None,
        f"{_generation(device)} {device.compute_capability}" if device.compute_capability else None,
        f"driver {device.driver}" if device.driver else None,
        f"native: {', '.join(device.native)}" if device.native else None,
    ]
    return [fact for fact in found if fact]


def _generation(device: Device) -> str:
    return "architecture" if device.kind in TORCH_KINDS else "compute capability"


def _kind_words(kind: PeakKind) -> str:
    return PEAK_SOURCES[kind].label


def _source(peak: Peak | None) -> str:
    return f"{_kind_words(peak.kind)}: {peak.source}" if peak else "no peak is known for this dtype"


def _peak(peak: Peak) -> dict[str, object]:
    return {
        "Dtype": peak.dtype,
        "Units": peak.unit,
        "Peak": peak.flop_per_s,
        "Kind": _kind_words(peak.kind),
        "Source": peak.source,
    }
