"""The atlas on a page: the chart whose points name their source, what it shows, and its points in a table."""

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import CALLS
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core.units import format_interval, format_seconds
from gpuexplore.features.atlas.analysis import measured_operations, points
from gpuexplore.features.atlas.chart import PICKED, atlas, shown_at, source_label
from gpuexplore.features.atlas.ui.picked import POINT, AtlasChoice, AtlasFacts, href_of
from gpuexplore.operations import OPERATIONS
from gpuexplore.ui.link import parameters, write
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import Spec, chart_of, show_spec
from gpuexplore.ui.shared.tables import show_table

KEY = "chart.atlas"
FIRST = "atlas.first"  # the session's key of the point that the link named when this chart was drawn first


def show_atlas(choice: AtlasChoice, facts: AtlasFacts, said: DeltaGenerator) -> None:
    """Show the chart and what is to be known about it; a click on a point writes the point to the URL.

    Args:
        choice: of the visitor.
        facts: of that choice.
        said: where the sentence on the predictions of its shape stands.
    """
    times = sorted(
        (found.time_s, plain(series.name), format_interval(found.interval_s, format_seconds))
        for series, found in zip(facts.series, facts.predictions, strict=True)
        if found.time_s and found.interval_s
    )
    if times:
        (time_s, name, interval), *slower = times
        rest = "".join(f", {other} {format_seconds(other_s)}" for other_s, other, _ in slower)
        what = f"{OPERATIONS[choice.operation].title}, {shape_label(choice.shape)}"
        said.markdown(f"#### {what}: predicted fastest on {name}, {format_seconds(time_s)} ({interval}){rest}.")
    if not facts.points:
        st.info(_nothing(choice), icon=":material/info:")
    if not facts.points and not any(series.line for series in facts.series):
        return
    spec = chart_of(
        lambda: atlas(choice.operation, facts.series, facts.points, choice.show, at=facts.at),
        (facts, choice.show),
        key=KEY,
    )
    key = f"{KEY}.{choice.operation}.{choice.show}"
    event: Any = show_spec(_with_picked(spec, key), key=key, on_select="rerun")
    found = _followed(event)
    if found and st.session_state.get("atlas.seen") != (key, found):
        write(POINT, found)
    st.session_state["atlas.seen"] = (key, found)
    st.caption(" ".join(_sentences(choice, facts)))


def _sentences(choice: AtlasChoice, facts: AtlasFacts) -> list[str]:
    """Return notes on the chart, a sentence each."""
    found = facts.points
    drawn = [point for point in facts.points if shown_at(point, choice.show) is not None]
    published = [point for point in found if point.origin == "published"]
    names = dict.fromkeys(point.citation.name for point in published)
    said = []
    if published:
        said.append(f"Published by {plain(_listed(list(names)))}, not measured by gpuexplore.")
    if found:
        said.append("Click a point to see its source.")
    said.append(
        f"Dashed: predicted; calls are {plain(CALLS[choice.calls])}. Lines keep the proportions of "
        f"{shape_label(choice.shape)}, the dotted line: points of other shapes can lie off them."
    )
    if len(drawn) < len(found):
        said.append(f"{len(found) - len(drawn)} points are left out: a cache may have held their data.")
    if any((point.share or 0) > 1.05 for point in drawn):
        said.append("Above 100 %: clocks above the rated one, or an algorithm that needs fewer operations.")
    return said


def _nothing(choice: AtlasChoice) -> str:
    title = OPERATIONS[choice.operation].title
    dtypes = " or ".join(choice.dtypes)
    known = points(choice.operation)
    there = [
        f"{dtype} on {len({point.spec_key for point in known if point.dtype == dtype})} GPUs"
        for dtype in dict.fromkeys(point.dtype for point in known)
    ]
    measured = [OPERATIONS[name].title for name, count in measured_operations().items() if count]
    where = f"Measured: {_listed(there)}." if there else f"Measured operations: {_listed(measured)}."
    return f"{title} in {dtypes} was not measured on these GPUs: only predictions are drawn. {where}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def _with_picked(spec: Spec, key: str) -> Spec:
    """Return the chart with the point selected that the link named when the session drew this chart first."""
    first: dict[str, str] = st.session_state.setdefault(FIRST, {})
    named = first.setdefault(key, parameters().get(POINT, ""))
    if not named:
        return spec
    selected = [{**each, "value": [{"id": named}]} if each["name"] == PICKED else each for each in spec["params"]]
    return {**spec, "params": selected}


def _followed(event: Any) -> str | None:
    """Return what a link calls the point that was clicked; None without a click on one."""
    return next((each["id"] for each in (event.get("selection", {}).get(PICKED) or []) if each.get("id")), None)


def show_points(facts: AtlasFacts) -> None:
    """Show every measured point that is drawn in a table, on a click."""
    count = len(facts.points)
    if not count:
        return
    table = st.expander(
        f"Measured: {count} points in a table, each with its source",
        icon=":material/table:",
        on_change="rerun",
        key="atlas.table",
    )
    if not table.open:
        return
    with table:
        show_table(
            lambda: [
                {
                    "GPU": point.device.name,
                    "Dtype": point.dtype,
                    "Shape": shape_label(point.shape),
                    "Time": point.time_s,
                    "Compute rate": point.rate if point.is_product else None,
                    "Memory rate": None if point.is_product else point.rate,
                    "Of the peak": point.share,
                    "From": source_label(point),
                    "Source": href_of(point),
                    "Licence": point.citation.licence,
                    "Timed": point.conditions,
                }
                for point in facts.points
            ],
            facts,
            {"Time": "s", "Compute rate": "FLOP/s", "Memory rate": "B/s", "Of the peak": "%"},
            alt=f"Table of {count} measured points with time, rate, share of the peak and source",
            config={
                "Source": st.column_config.LinkColumn(display_text="open"),
                "Of the peak": st.column_config.NumberColumn(
                    help="Share of the compute peak, or of the memory bandwidth where that is the limit"
                ),
            },
        )
