"""A what-if on a page: the sentence, the figures of one device, the trade-off, and the same across devices."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import INTERVAL, UncertainValue
from gpuexplore.analysis.prediction.calls import CALLS_WORDS
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.what_if.summary import EnteredResult, entered_results, explain_entered, summarize
from gpuexplore.analysis.what_if.what_if import WhatIf
from gpuexplore.analysis.what_if.workload import Workload
from gpuexplore.charts.what_if import (
    ComparedQuantity,
    across_devices,
    entered_shares,
    trade_off,
    what_if_speedups,
    what_if_times,
)
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.units import (
    UNKNOWN,
    format_energy,
    format_flop_per_s,
    format_money,
    format_ratio,
    format_seconds,
    format_si,
    in_one_unit,
)
from gpuexplore.ui import url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.rests_on import show_rests_on
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.what_if.choice import WhatIfChoice
from gpuexplore.ui.what_if.known import WhatIfFacts

COST = "Cost per million calls"
UNITS = {
    "Time": "s",
    "Speedup": "×",
    "MFU": "%",
    "Error": "error",
    "Memory": "B",
    "Energy": "J",
    COST: "count",
    "Peak": "FLOP/s",
}


def _in_proportion(row: WhatIf, value: float | None) -> UncertainValue | None:
    """Return a quantity that grows with the time of a row, as uncertain as that."""
    return None if value is None or row.time is None else row.time.times(value / row.time.value)


def _cost_of_million(row: WhatIf) -> float | None:
    return None if row.cost is None else row.cost * 1e6


PER: Mapping[str, ComparedQuantity] = MappingProxyType(
    {
        "time": ComparedQuantity(
            "Time", "Time", lambda row: row.credible_time, format_seconds, "s", "no time is known"
        ),
        "energy": ComparedQuantity(
            "Energy",
            "Energy at the board's power limit: an upper bound",
            lambda row: _in_proportion(row, row.energy_j),
            format_energy,
            "J",
            "the table lists no power limit",
        ),
        "cost": ComparedQuantity(
            "Cost",
            "Cost per million calls, in the currency you entered",
            lambda row: _in_proportion(row, _cost_of_million(row)),
            format_money,
            "",
            "enter a price per hour under Your measurements, peaks and prices",
        ),
    }
)


def show_summary(
    workload: Workload, rows: Sequence[WhatIf], choice: WhatIfChoice, *, said: DeltaGenerator, words: DeltaGenerator
) -> None:
    """Say in a sentence what the rows of the chosen device mean, and in some more how they compare.

    Args:
        workload: on each device in each format.
        rows: of that.
        choice: of the visitor.
        said: where the first sentence stands.
        words: where the choices are named.
    """
    own = _own(rows, choice)
    summary = summarize(own, baseline=choice.baseline, elsewhere=[row for row in rows if row not in own])
    said.markdown(f"#### {summary.headline}")
    flops = format_si(workload.flop_count, "FLOPs")
    parts = (choice.device.short_title, f"baseline {choice.baseline}", CALLS_WORDS[choice.calls])
    words.markdown(plain(f"{workload.title}: {flops} · {' · '.join(parts)}"))
    if summary.details:
        st.markdown("\n".join(f"- {sentence}" for sentence in summary.details))


def show_figures(workload: Workload, facts: WhatIfFacts, choice: WhatIfChoice) -> None:
    """Show the chosen device in full: charts, what was entered, every figure."""
    own = _own(facts.rows, choice)
    _show_entered(workload, facts, choice)
    if any(row.time for row in own):
        _charts(facts, own, choice)
    if own:
        st.markdown("**Results**")
        show_table(
            lambda: _table_rows(own),
            facts,
            UNITS,
            alt=f"Table of {len(own)} dtypes on {own[0].device.title} with time, speedup, MFU, memory and error",
            config=_columns(),
        )
    if predictions := [row.rests_on for row in own if row.rests_on]:
        largest = " of the layer with the most FLOPs" if len(workload.layers) > 1 else ""
        with st.expander(f"Basis of the predictions{largest}", icon=":material/fact_check:"):
            show_rests_on(predictions)


def _own(rows: Sequence[WhatIf], choice: WhatIfChoice) -> list[WhatIf]:
    return [row for row in rows if row.device.id == choice.device.id]


def _charts(facts: WhatIfFacts, own: Sequence[WhatIf], choice: WhatIfChoice) -> None:
    baseline = choice.baseline
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Time**")
        show_chart(lambda: what_if_times(own), facts, key="chart.what_if.time")
    with right:
        st.markdown(f"**Speedup over {baseline}**")
        if any(row.speedup for row in own):
            show_chart(lambda: what_if_speedups(own, baseline), facts, key="chart.what_if.speedup")
        else:
            why = f"No time is known for {baseline}"
            if any(row.impossible for row in own if row.dtype == baseline):
                why = f"The time entered for {baseline} is impossible, so nothing is compared with it"
            st.info(f"{why}: choose another baseline.", icon=":material/info:")
    of_calls = "" if choice.device.kind == "cpu" else f"{CALLS_WORDS[choice.calls]}, "
    st.caption(
        "● Filled: measured here. □ ◇ Hollow: recorded elsewhere or entered. ○ Hollow, bars dashed: predicted. "
        f"Predictions: {of_calls}{100 * INTERVAL:g} % prediction intervals; measurements: 95 % intervals of the median."
    )
    if any(row.speedup and row.error for row in own):
        st.markdown("**Speed against error**")
        show_chart(lambda: trade_off(own, baseline), facts, key="chart.what_if.trade_off")
        sentences = ["Error: relative to fp64 on unrounded inputs, random normal data, of the least accurate layer."]
        sentences.append("Dashed: the Pareto front of speed and accuracy.")
        if exact := [row.dtype for row in own if row.speedup and row.error == 0]:
            sentences.append(f"Not drawn, because exact: {', '.join(exact)}.")
        formats = [FORMATS[row.dtype] for row in own]
        # A typical matrix product can overflow in these
        sentences += [f"{each.name}: {each.about}." for each in formats if each.largest is not None]
        st.caption(" ".join(sentences))


def _show_entered(workload: Workload, facts: WhatIfFacts, choice: WhatIfChoice) -> None:
    own = _own(facts.rows, choice)
    found = entered_results(workload, own, choice.promised)
    if not found:
        return
    st.markdown("**Your measurements, relative to each peak**")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        show_chart(lambda: entered_shares(found), facts, key="chart.what_if.claims")
    with right:
        st.markdown("\n".join(f"- {_entered_line(entered)}" for entered in found))
        st.markdown("\n".join(f"- {sentence}" for sentence in explain_entered(own, baseline=choice.baseline)))


def _entered_line(entered: EnteredResult) -> str:
    time = entered.row.time
    if time is None:
        return f"**{entered.row.dtype}**: {entered.row.support}, {entered.row.reason}"
    known = f". Published as {plain(entered.known_as.source)}" if entered.known_as else ""
    rate = format_flop_per_s(entered.flop_per_s)
    origin = entered.row.origin.label if entered.row.origin else UNKNOWN
    device = plain(entered.row.device.title)
    wrong = f". **Impossible** on a {device}: {entered.row.impossible}" if entered.row.impossible else ""
    return f"**{entered.row.dtype}**: {format_seconds(time.value)} ({origin}), {rate}{known}{wrong}"


def _table_rows(rows: Sequence[WhatIf]) -> list[dict[str, object]]:
    """Return the rows of a table, intervals of times in the unit of the times."""
    spans = [(row.time.value, row.time.low, row.time.high) if row.time else (None, None, None) for row in rows]
    cells = in_one_unit([tuple(map(format_seconds, span)) for span in spans])
    return [
        _shown(row, f"{low} – {high}" if low != high else None) for row, (_, low, high) in zip(rows, cells, strict=True)
    ]


def _shown(row: WhatIf, interval: str | None) -> dict[str, object]:
    peak = row.peak
    speedup = row.speedup
    fits = "may not fit" if row.fits is None else "fits" if row.fits else "does not fit"
    return {
        "Dtype": row.dtype,
        "Support": row.support,
        "Time": row.time and row.time.value,
        "Time interval": interval,
        "From": row.origin.label if row.origin else None,
        "Calls": row.calls,
        "Speedup": speedup and speedup.value,
        "Speedup interval": (
            f"{format_ratio(speedup.low)} – {format_ratio(speedup.high)}"
            if speedup and speedup.low < speedup.high
            else None
        ),
        "MFU": row.mfu,
        "Error": row.error,
        "Error is": row.error_origin,
        "Memory": row.memory_bytes,
        "Fits": fits if row.device.memory_bytes else None,
        "Energy": row.energy_j,
        COST: _cost_of_million(row),
        "Peak": peak and peak.flop_per_s,
        "Peak is": f"{peak.dtype}, {PEAK_SOURCES[peak.kind].label}" if peak else None,
        "Basis": "; ".join(filter(None, (row.reason, row.basis, *row.notes))),
    }


def _columns() -> dict[str, Any]:
    text = st.column_config.TextColumn
    number = st.column_config.NumberColumn
    return {
        "Memory": number(help="Sum of all arrays: an upper bound, because layers share arrays"),
        "Error": number(help="Relative to fp64 on unrounded inputs"),
        "Error is": text(help="Expected from the format's rounding, or measured here and widened by input rounding"),
        "Energy": number(help="Time at the board's power limit: an upper bound"),
        COST: number(help="Time at the price you entered, in its currency"),
        "Calls": text(help="How calls follow each other; on a CPU one time applies to every kind"),
        "Basis": text(width="large"),
    }


def show_devices(facts: WhatIfFacts, choice: WhatIfChoice) -> None:
    """Show the same on every device that was chosen."""
    rows = facts.rows
    if len(choice.devices) < 2 or not rows:
        return
    name = url_widgets.segments("Compare", "per", list(PER), shown=lambda name: PER[name].label)
    per = PER[name]
    if any(per.of(row) for row in rows):
        show_chart(lambda: across_devices(rows, per), (facts, name), key="chart.what_if.devices")
        drawn = {row.device.title for row in rows if per.of(row)}
        names = [device for device in dict.fromkeys(row.device.title for row in rows) if device not in drawn]
        left_out = f" Not drawn: {plain(', '.join(names))}: {per.missing}." if names else ""
        st.caption(f"On GPUs, predictions are of {CALLS_WORDS[choice.calls]}.{left_out}")
    else:
        st.info(f"Nothing to draw: {per.missing}.", icon=":material/info:")
    with st.expander("Table of every device and dtype", icon=":material/table:"):
        show_table(
            lambda: [{"Device": row.device.title, **shown} for row, shown in zip(rows, _table_rows(rows), strict=True)],
            facts,
            UNITS,
            alt=f"Table of {len(rows)} combinations of device and dtype with time, speedup and MFU",
            config=_columns(),
        )
