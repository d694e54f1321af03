"""One point of the atlas: every figure with its unit, who measured it and how, its source, and where to go from it."""

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode

import streamlit as st

from gpuexplore.analysis.prediction import CALLS, Prediction, predict
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.features.atlas.analysis import Point, points
from gpuexplore.features.atlas.analysis.lines import case_of
from gpuexplore.features.atlas.chart import point_id, rate_words
from gpuexplore.features.atlas.ui.known import calibration
from gpuexplore.model import Options
from gpuexplore.once import once
from gpuexplore.operations import operation_named
from gpuexplore.ui.link import href, parameters, write
from gpuexplore.ui.markdown import plain, small
from gpuexplore.ui.shared import Shared
from gpuexplore.units import format_interval, format_percent, format_seconds

POINT = "point"  # the link's parameter
PREDICTIONS: Shared[Prediction] = Shared(300)


def show_picked() -> None:
    """Show the point that the link names; nothing where it names none."""
    name = parameters().get(POINT)
    if not name:
        return
    point = points_by_id().get(name)
    if point is None:
        st.warning(
            f"No point {plain(repr(name))} is in the atlas of this version: click another.", icon=":material/link_off:"
        )
        return
    with st.container(border=True):
        _head(point)
        _figures(point)
        st.markdown(small(_told(point)))
        _ways(point)


@once
def points_by_id() -> Mapping[str, Point]:
    """Return every point by what a link calls it."""
    return {point_id(point): point for point in points()}


def href_of(point: Point) -> str:
    """Return what opens the source of a point: its file on the web, or its recorded run."""
    return point.url or href(f"benchmark?run={point.run_id}")


def ways_of(point: Point) -> Mapping[str, str]:
    """Return the pages that show the same call or device, by what their links are called."""
    here = {"op": point.operation, "device": point.spec_key}
    same = {**here, "shape": str(point.shape), "baseline": point.dtype}
    roofs = {peak.dtype for peak in point.device.peaks}
    ways = {
        "Dtype what-if": f"what-if?{urlencode(same)}",
        "Roofline": f"roofline?{urlencode({**here, 'dtype': point.dtype} if point.dtype in roofs else here)}",
    }
    if point.run_id:
        ways["Compare with"] = f"compare?{urlencode({'a': point.run_id})}"
    return {label: href(page) for label, page in ways.items()}


def _head(point: Point) -> None:
    title = operation_named(point.operation).title
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(
            f"**{plain(point.device.name)}** · {title}, {shape_label(point.shape)}, {point.dtype}", width="content"
        )
        st.button(
            "Close", icon=":material/close:", type="tertiary", key="atlas.close", on_click=write, args=(POINT, None)
        )


def _figures(point: Point) -> None:
    found = _predicted(point)
    with st.container(horizontal=True, gap="large"):
        st.metric("Measured time", format_seconds(point.time_s), width="content")
        st.metric("Rate", rate_words(point.operation, point.rate), width="content")
        st.metric(
            "Of the peak",
            format_percent(point.share) if point.share is not None else "unknown",
            help="Of the arithmetic's peak, or of the bandwidth where memory is the limit and no cache holds the data",
            width="content",
        )
        st.metric(
            "Predicted time",
            format_seconds(found.time_s),
            help=f"Of the vendor's library; 90 % interval {format_interval(found.interval_s, format_seconds)}, from "
            f"{found.basis}; calls {CALLS[point.calls]}",
            width="content",
        )


def _predicted(point: Point) -> Prediction:
    """Return the prediction of the very call, in its own conditions."""
    case = case_of(point.operation, point.shape, point.dtype, point.device)
    case = replace(case, options=Options(cache="cold" if point.cold else None))
    return PREDICTIONS.get((case, point.call), lambda: predict(case, point.device, calibration(), point.call))


def _told(point: Point) -> str:
    """Return who measured it, how and under which licence, as Markdown."""
    cited = point.citation
    whose = (
        f"Recorded by gpuexplore, {plain(cited.text)}"
        if point.origin == "recorded"
        else f"Published by **{plain(cited.name)}**, not measured by gpuexplore"
    )
    cite = "" if point.origin == "recorded" else f" Cite: {plain(cited.text)}."
    timed = f"{plain(point.conditions)}; calls {plain(CALLS[point.calls])}"
    return f"{whose}. Licence: {cited.licence}. Timed: {timed}.{cite}"


def _ways(point: Point) -> None:
    with st.container(horizontal=True, gap="small"):
        st.link_button("Open the source", href_of(point), icon=":material/open_in_new:", type="primary")
        st.button(
            "Use its shape",
            icon=":material/straighten:",
            key="atlas.use",
            on_click=write,
            args=("shape", str(point.shape)),
        )
        for label, page in ways_of(point).items():
            st.link_button(label, page)
