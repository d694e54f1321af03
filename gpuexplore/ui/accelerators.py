"""The table of accelerators on a page."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from gpuexplore.devices import Accelerator, bandwidth_of, peaks_of
from gpuexplore.model import Unit
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s

SHOWN: tuple[tuple[str, Unit], ...] = (
    ("fp64", "vector"),
    ("fp32", "vector"),
    ("tf32", "matrix"),
    ("bf16", "matrix"),
    ("fp16", "matrix"),
)


def show_accelerators(accelerators: Sequence[Accelerator]) -> None:
    """Show `accelerators` as a table with peaks, memory and the source of each row."""
    st.dataframe(
        pd.DataFrame([_row(one) for one in accelerators]),
        hide_index=True,
        column_config={
            "Source": st.column_config.LinkColumn(display_text="source"),
            "Confidence": st.column_config.TextColumn(help="How sure the row is; the notes say why"),
            "Notes": st.column_config.TextColumn(width="large"),
        },
        alt=f"Table of {len(accelerators)} accelerators with dense peaks by dtype, memory and source",
    )


def _row(one: Accelerator) -> dict[str, object]:
    rates = {(peak.dtype, peak.unit): peak.flop_per_s for peak in peaks_of(one)}
    bandwidth = bandwidth_of(one)
    return {
        "Name": one.name,
        "Architecture": one.architecture,
        "Year": one.release_year,
        **{dtype: format_flop_per_s(rates.get((dtype, unit))) for dtype, unit in SHOWN},
        "Bandwidth": format_bytes_per_s(bandwidth.bytes_per_s if bandwidth else None),
        "Memory": format_bytes(one.memory_bytes),
        "Power": f"{one.power_w:g} W" if one.power_w else None,
        "Confidence": one.confidence,
        "Source": one.source_url,
        "Notes": one.notes,
    }
