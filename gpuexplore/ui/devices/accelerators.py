"""The table of accelerators on a page."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.devices import Accelerator, bandwidth_of, peaks_of
from gpuexplore.model import Unit
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import show_table

SHOWN: tuple[tuple[str, Unit], ...] = (
    ("fp64", "vector"),
    ("fp32", "vector"),
    ("tf32", "matrix"),
    ("bf16", "matrix"),
    ("fp16", "matrix"),
)
MOST_NOTED = 6
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
            "Derived": st.column_config.TextColumn(help="Figures of this row that the vendor prints nowhere"),
            "Confidence": st.column_config.TextColumn(help="How sure the row is; the notes say why"),
            "Notes": st.column_config.TextColumn(width="large"),
        },
    )


def show_notes(accelerators: Sequence[Accelerator]) -> None:
    """Show in full what the rows say of themselves where there are few: a cell of the table cuts it off."""
    noted = [accelerator for accelerator in accelerators if accelerator.notes]
    if len(accelerators) <= MOST_NOTED:
        for accelerator in noted:
            st.caption(f"**{plain(accelerator.name)}**: {plain(accelerator.notes)}")


def _row(accelerator: Accelerator) -> dict[str, object]:
    rates = {(peak.dtype, peak.unit): peak for peak in peaks_of(accelerator)}
    shown = {dtype: rates.get((dtype, unit)) for dtype, unit in SHOWN}
    bandwidth = bandwidth_of(accelerator)
    figures = {**shown, "Bandwidth": bandwidth}
    return {
        "Name": accelerator.name,
        "Architecture": accelerator.architecture,
        "Year": accelerator.release_year,
        **{dtype: peak.flop_per_s if peak else None for dtype, peak in shown.items()},
        "Bandwidth": bandwidth.bytes_per_s if bandwidth else None,
        "Memory": accelerator.memory_bytes,
        "Power": accelerator.power_w,
        "Derived": ", ".join(name for name, figure in figures.items() if figure and figure.kind == "formula"),
        "Confidence": accelerator.confidence,
        "Source": accelerator.source_url,
        "Notes": accelerator.notes,
    }
