"""The table of accelerators on a page."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.devices import Accelerator, bandwidth_of, peaks_of
from gpuexplore.model import Unit
from gpuexplore.ui.shared.tables import show_table

SHOWN: tuple[tuple[str, Unit], ...] = (
    ("fp64", "vector"),
    ("fp32", "vector"),
    ("tf32", "matrix"),
    ("bf16", "matrix"),
    ("fp16", "matrix"),
)
RATE_WIDTH = 110  # pixels: a column whose first rows are unknown would be too narrow for the others
UNITS = {
    **{dtype: "FLOP/s" for dtype, _ in SHOWN},
    "Bandwidth": "B/s",
    "Memory": "B",
    "Power": "W",
}


def show_accelerators(accelerators: Sequence[Accelerator]) -> None:
    """Show `accelerators` as a table with peaks, memory and the source of each row."""
    show_table(
        lambda: [_row(accelerator) for accelerator in accelerators],
        tuple(accelerator.key for accelerator in accelerators),
        UNITS,
        alt=f"Table of {len(accelerators)} accelerators with dense peaks by dtype, memory and source",
        config={
            **{dtype: st.column_config.Column(width=RATE_WIDTH) for dtype, _ in SHOWN},
            "Year": st.column_config.NumberColumn(format="%d"),
            "Source": st.column_config.LinkColumn(display_text="source"),
            "Confidence": st.column_config.TextColumn(help="How sure the row is; the notes say why"),
            "Notes": st.column_config.TextColumn(width="large"),
        },
    )


def _row(accelerator: Accelerator) -> dict[str, object]:
    rates = {(peak.dtype, peak.unit): peak.flop_per_s for peak in peaks_of(accelerator)}
    bandwidth = bandwidth_of(accelerator)
    return {
        "Name": accelerator.name,
        "Architecture": accelerator.architecture,
        "Year": accelerator.release_year,
        **{dtype: rates.get((dtype, unit)) for dtype, unit in SHOWN},
        "Bandwidth": bandwidth.bytes_per_s if bandwidth else None,
        "Memory": accelerator.memory_bytes,
        "Power": accelerator.power_w,
        "Confidence": accelerator.confidence,
        "Source": accelerator.source_url,
        "Notes": accelerator.notes,
    }
