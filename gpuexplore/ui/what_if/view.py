"""A what-if on a page: the sentence, the figures of one device, the trade-off, and the same across devices."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.what_if.summary import explain_entered, interval_words, summarize
from gpuexplore.analysis.what_if.user_claims import UserClaim, claims
from gpuexplore.analysis.what_if.what_if import Span, WhatIf
from gpuexplore.analysis.what_if.workload import Workload
from gpuexplore.charts.axes import si_label
from gpuexplore.charts.user_claims import claim_shares
from gpuexplore.charts.what_if import (
    Quantity,
    across_devices,
    trade_off,
    what_if_speedups,
    what_if_times,
)
from gpuexplore.dtypes import FORMATS
from gpuexplore.ui import url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.what_if.choice import Places
from gpuexplore.units import (
    UNKNOWN,
    format_bytes,
    format_energy,
    format_flop_per_s,
    format_money,
    format_percent,
    format_ratio,
    format_seconds,
    format_si,
)

MILLION = 1e6
MARKS = "● Filled: measured here. □ ◇ Hollow: recorded elsewhere or entered. ○ Hollow, bars dashed: predicted."
WIDE = 190  # pixels of a figure with its interval
FITS: Mapping[bool | None, str] = MappingProxyType({True: "fits", False: "does not fit", None: "may not fit"})


def _energy(row: WhatIf) -> Span | None:
    if row.energy_j is None or row.time is None:
        return None
    return row.time.times(row.energy_j / row.time.value)


def _cost(row: WhatIf) -> Span | None:
    if row.cost is None or row.time is None:
        return None
    return row.time.times(row.cost / row.time.value * MILLION)


PER: Mapping[str, Quantity] = MappingProxyType(
    {
        "time": Quantity("Time", "Time", lambda row: row.time, format_seconds, si_label("s"), "no time is known"),
        "energy": Quantity(
            "Energy",
            "Energy at the board's power limit: an upper bound",
            _energy,
            format_energy,
            si_label("J"),
            "the table states no power limit",
        ),
        "cost": Quantity(
            "Cost",
            "Price of a million runs, in the currency you entered",
            _cost,
            format_money,
            "format(datum.value, ',~r')",
            "enter a price per hour under Times, peaks and prices",
        ),
    }
)


def show_summary(workload: Workload, rows: Sequence[WhatIf], places: Places) -> None:
    """Say in a sentence what the rows of the chosen device mean, and in some more what stands against others."""
    summary = summarize(_own(rows, places), baseline=places.baseline)
    st.markdown(f"#### {summary.headline}")
    st.caption(f"{workload.title}: {format_si(workload.flop_count, 'FLOPs')}.")
    if summary.details:
        st.markdown("\n".join(f"- {sentence}" for sentence in summary.details))


def show_figures(workload: Workload, rows: Sequence[WhatIf], places: Places) -> None:
    """Show the chosen device in full: charts, what was entered, every figure."""
    own = _own(rows, places)
    _claims(workload, own, places)
    if any(one.time for one in own):
        _charts(own, places.baseline)
    if own:
        st.markdown("**Every dtype**")
        st.dataframe(_table(own), hide_index=True, column_config=_columns(), alt=_alt(own))


def _own(rows: Sequence[WhatIf], places: Places) -> list[WhatIf]:
    return [row for row in rows if row.device.id == places.device.id]


def _charts(own: Sequence[WhatIf], baseline: str) -> None:
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Time**")
        _draw(what_if_times(own), "chart.what_if.time")
    with right:
        st.markdown(f"**Speedup over {baseline}**")
        if any(one.speedup for one in own):
            _draw(what_if_speedups(own, baseline), "chart.what_if.speedup")
        else:
            st.info(f"No time is known for {baseline}: choose another baseline.", icon=":material/info:")
    st.caption(f"{MARKS} {interval_words()}; those of measurements are 95 % intervals of the median.")
    if any(one.speedup and one.error for one in own):
        st.markdown("**Speed against error**")
        _draw(trade_off(own, baseline), "chart.what_if.trade_off")
        st.caption(
            "Error: relative to fp64 on inputs nobody rounded, random normal data, of the least exact layer. "
            "The dashed line joins the dtypes that no other beats in both. "
            + " ".join((*_exact(own), *(f"{name}: {FORMATS[name].about}." for name in _narrow(own))))
        )


def _draw(chart: alt.LayerChart, key: str) -> None:
    """Show a chart without checking it against Vega-Lite's schema, which takes longer than all the rest: tests do."""
    st.vega_lite_chart(chart.to_dict(validate=False), key=key)


def _exact(own: Sequence[WhatIf]) -> list[str]:
    names = [one.dtype for one in own if one.speedup and one.error == 0]
    return [f"Not drawn, because it loses nothing: {', '.join(names)}."] if names else []


def _narrow(own: Sequence[WhatIf]) -> list[str]:
    """Return the formats a usual product can overflow in."""
    return [one.dtype for one in own if FORMATS[one.dtype].largest is not None]


def _claims(workload: Workload, own: Sequence[WhatIf], places: Places) -> None:
    found = claims(workload, own, places.promised)
    if not found:
        return
    st.markdown("**What was entered, against each peak**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _draw(claim_shares(found), "chart.what_if.claims")
    with right:
        st.markdown("\n".join(f"- {_claim(one)}" for one in found))
        st.markdown("\n".join(f"- {one}" for one in explain_entered(own, baseline=places.baseline)))


def _claim(claim: UserClaim) -> str:
    time = claim.row.time
    if time is None:
        return f"**{claim.row.dtype}**: {claim.row.support}, {claim.row.reason}"
    known = f". Published as {plain(claim.known_as.source)}" if claim.known_as else ""
    rate = format_flop_per_s(claim.flop_per_s)
    origin = claim.row.origin.label if claim.row.origin else UNKNOWN
    return f"**{claim.row.dtype}**: {format_seconds(time.value)} ({origin}), {rate}{known}"


def _table(rows: Sequence[WhatIf]) -> pd.DataFrame:
    frame = pd.DataFrame([_shown(row) for row in rows])
    return frame.drop(columns=[name for name in ("Cost of a million",) if frame[name].isna().all()])


def _shown(row: WhatIf) -> dict[str, object]:
    peak = row.peak
    memory = format_bytes(row.memory_bytes)
    return {
        "Dtype": row.dtype,
        "Support": row.support,
        "Time": _with_interval(row.time, format_seconds),
        "From": row.origin.label if row.origin else UNKNOWN,
        "Speedup": _with_interval(row.speedup, format_ratio),
        "MFU": format_percent(row.mfu),
        "Error": row.error,
        "Error is": row.error_origin,
        "Memory": f"{memory}, {FITS[row.fits]}" if row.device.memory_bytes else memory,
        "Energy": format_energy(row.energy_j),
        "Cost of a million": None if row.cost is None else format_money(row.cost * MILLION),
        "Peak": f"{format_flop_per_s(peak.flop_per_s)} in {peak.dtype}, {PEAK_SOURCES[peak.kind].label}"
        if peak
        else UNKNOWN,
        "Basis": "; ".join(filter(None, (row.reason, row.basis, *row.notes))),
    }


def _with_interval(span: Span | None, words: Callable[[float], str]) -> str:
    if span is None:
        return UNKNOWN
    return (
        f"{words(span.value)} ({words(span.low)} – {words(span.high)})" if span.low < span.high else words(span.value)
    )


def _columns() -> dict[str, Any]:
    text = st.column_config.TextColumn
    return {
        "Time": text(width=WIDE),
        "Speedup": text(width=WIDE),
        "Memory": text(help="Of all arrays at once: an upper bound, because layers share arrays"),
        "Error": st.column_config.NumberColumn(format="%.1e", help="Relative to fp64 on unrounded inputs"),
        "Error is": text(help="Expected from the format's rounding, or measured here and widened by input rounding"),
        "Energy": text(help="Time at the board's power limit: an upper bound"),
        "Cost of a million": text(help="Time at the price you entered, in its currency"),
        "Basis": text(width="large"),
    }


def _alt(rows: Sequence[WhatIf]) -> str:
    return f"Table of {len(rows)} dtypes on {rows[0].device.title} with time, speedup, MFU, memory and error"


def show_devices(rows: Sequence[WhatIf], places: Places) -> None:
    """Show the same on every device that was chosen."""
    if len(places.devices) < 2 or not rows:
        return
    name = url_widgets.segments("Compare", "per", list(PER), shown=lambda name: PER[name].label)
    per = PER[name]
    if any(per.of(row) for row in rows):
        _draw(across_devices(rows, per), "chart.what_if.devices")
        if names := _left_out(rows, per):
            st.caption(f"Not drawn: {plain(', '.join(names))}: {per.missing}.")
    else:
        st.info(f"Nothing to draw: {per.missing}.", icon=":material/info:")
    frame = pd.DataFrame([{"Device": row.device.title, **_shown(row)} for row in rows])
    shown = ["Device", "Dtype", "Support", "Time", "From", "Speedup", "MFU", "Memory", "Energy", "Peak", "Basis"]
    if any(row.cost is not None for row in rows):
        shown.insert(-1, "Cost of a million")
    with st.expander("Every device and dtype in a table", icon=":material/table:"):
        alt = f"Table of {len(rows)} combinations of device and dtype with time, speedup and MFU"
        st.dataframe(frame[shown], hide_index=True, column_config=_columns(), alt=alt)


def _left_out(rows: Sequence[WhatIf], per: Quantity) -> list[str]:
    devices = dict.fromkeys(row.device.title for row in rows)
    drawn = {row.device.title for row in rows if per.of(row)}
    return [device for device in devices if device not in drawn]
