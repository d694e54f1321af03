"""Every figure of a run in a table, one row a case, in the units people read."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from gpuexplore.analysis.run.flat_rows import Row, rows
from gpuexplore.analysis.utilization.peak_choice import Against
from gpuexplore.charts.points import contrasts_said
from gpuexplore.model import Result
from gpuexplore.units import UNKNOWN, format_percent, format_ratio, format_seconds, format_work_rate


def show_table(results: Sequence[Result], *, baseline: str | None, against: Against) -> None:
    """Show the results as a table with status, reason, error and flags."""
    found = rows(results, baseline=baseline, against=against)
    frame = pd.DataFrame([_shown(row, result) for row, result in zip(found, results, strict=True)])
    if not any(frame["Also"]):
        frame = frame.drop(columns="Also")
    st.markdown("**Every point**")
    st.dataframe(
        frame,
        hide_index=True,
        column_config={
            "Time": st.column_config.TextColumn(help="Median seconds per call"),
            "95 % interval": st.column_config.TextColumn(help="Of the median, by order statistics"),
            "Also": st.column_config.TextColumn(help="The same call under another condition", width="medium"),
            "MFU": st.column_config.TextColumn(help="FLOP/s reached over the peak named at the right"),
            "Error": st.column_config.NumberColumn(format="%.1e", help="Relative to a float64 reference"),
            "First call": st.column_config.TextColumn(help="With compilation and library start, never in the median"),
            "Flags": st.column_config.ListColumn(help="Conditions to know of; the evidence is under Remarks"),
            "Remarks": st.column_config.TextColumn(width="large"),
        },
        alt=f"Table of {len(found)} measured points with time, rate, MFU, status and flags",
    )


def _shown(row: Row, result: Result) -> Row:
    interval = None
    if row["ci95_low_s"] is not None:
        interval = f"{format_seconds(row['ci95_low_s'])} – {format_seconds(row['ci95_high_s'])}"
    return {
        "Size": row["size"],
        "Dtype": row["dtype"],
        "Implementation": row["implementation"],
        "Device": row["device"],
        "Status": row["status"].replace("_", " "),
        "Time": format_seconds(row["median_s"]),
        "95 % interval": interval,
        "Also": contrasts_said(result.measurement) if result.measurement else "",
        "Speedup": format_ratio(row["speedup"]),
        "Rate": format_work_rate(row["flop_per_s"], row["bytes_per_s"]),
        "MFU": format_percent(row["mfu"]),
        "Error": row["relative_error"],
        "Flags": [flag.name.replace("_", " ") for flag in result.flags],
        "Samples": row["sample_count"],
        "First call": format_seconds(row["first_call_s"]),
        "Remarks": _remarks(row, result),
        "Peak": _peak(row),
    }


def _remarks(row: Row, result: Result) -> str:
    """Return why there is no time, or why a share is above 100 % and what the flags rest on."""
    above = [row[name] for name in ("above_peak", "above_bandwidth") if row[name]]
    return result.reason or " · ".join([*above, *(f"{flag.name}: {flag.evidence}" for flag in result.flags)])


def _peak(row: Row) -> str:
    if not row["flop_count"]:
        return row["bandwidth_source"] or f"{UNKNOWN} {row['bandwidth_unknown']}"
    return row["peak_source"] or f"{UNKNOWN} {row['peak_unknown']}"
