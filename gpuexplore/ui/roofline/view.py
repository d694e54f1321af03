"""A roofline on a page: the chart whose points open their run, what it says, and its figures in tables."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from gpuexplore.analysis.roofline.points import Point
from gpuexplore.analysis.roofline.roofs import Roof
from gpuexplore.analysis.roofline.summary import explain
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.charts.roofline import OPENED, roofline
from gpuexplore.charts.roofline_frames import basis, roof_above
from gpuexplore.model import Origin
from gpuexplore.operations import operation_named
from gpuexplore.served import PAGES
from gpuexplore.ui.known_results import MOST_RESULTS
from gpuexplore.ui.roofline.choice import RooflineChoice
from gpuexplore.ui.roofline.points import View
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

BENCHMARK = PAGES / "benchmark.py"
LEFT = "roofline.left"  # the session's key of the run that was opened, and of the URL's parameters before
READING = (
    "Thick lines: matrix units and memory; thin ones: vector units and caches. Diamonds: ridge points, in FLOP/byte."
)
POINT_UNITS = {"Rate": "FLOP/s", "Of its roof": "%", "Intensity": "FLOP/byte", "Time": "s"}
ROOF_UNITS = {"Compute": "FLOP/s", "Bandwidth": "B/s"}


def show_roofline(view: View, choice: RooflineChoice) -> None:
    """Show the chart, its sentences and its tables; a click on a point opens its run."""
    event: Any = show_chart(
        lambda: roofline(view.roofs, view.points), view, key=f"chart.roofline.{choice.device.id}", on_select="rerun"
    )
    if run := run_of(event):
        st.session_state[LEFT] = run, st.query_params.to_dict()
        st.switch_page(BENCHMARK, query_params={"run": run})
    st.caption(" ".join((READING, *how_to_read(view.points), *left_out(view))))
    if sentences := explain(view.roofs, view.points):
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
    _show_points(view)
    _show_roofs(view)


def restore_after_back() -> None:
    """Give the page the choices it had when a point was opened: Streamlit puts an entry without them in between.

    Once only, so that going back further does not end here.
    """
    run, query = st.session_state.pop(LEFT, (None, {}))
    if run and st.query_params.get("run") == run:
        st.query_params.from_dict(query)


def run_of(event: Any) -> str | None:
    """Return the run of the point that was clicked; None without a click, or where the point has no run."""
    picked = event.get("selection", {}).get(OPENED) or []
    return next((point["run"] for point in picked if point.get("run")), None)


def nothing_here(name: str, points: Sequence[Point]) -> str:
    """Return what is shown of a device that nobody measured on this server."""
    labels = {Origin.RECORDED: "recorded elsewhere by gpuexplore", Origin.PUBLISHED: "published by others"}
    origins = [words for origin, words in labels.items() if any(point.origin == origin for point in points)]
    shown = (
        f"The points are results {' and '.join(origins)}."
        if origins
        else "No result from elsewhere matches these choices."
    )
    return f"Nothing has been measured on {name} here: its peaks are those of the table of accelerators. {shown}"


def no_run_shown(hidden: bool) -> str:
    """Return why no run of this server is on the roofline."""
    return "Runs are hidden." if hidden else "None of your runs is on this roofline yet."


def how_to_read(points: Sequence[Point]) -> tuple[str, ...]:
    """Return what there is to know about the points that are drawn, a sentence each."""
    opens = "A click on a point opens its run." if any(point.run for point in points) else None
    elsewhere = any(point.origin is not Origin.LIVE for point in points)
    hollow = "Hollow points were not measured here." if elsewhere else None
    return tuple(sentence for sentence in (opens, hollow) if sentence)


def left_out(view: View) -> tuple[str, ...]:
    """Return what the chart does not show, a sentence each."""
    count, many = view.without_flops, view.without_flops > 1
    none = f"{count} result{'s'[:many]} without FLOPs, such as copies, {'have' if many else 'has'} no place here."
    bounded = f"Shown are at most the newest {MOST_RESULTS} results; older ones are not."
    others = (f"{number} recorded, left out: {reason}." for reason, number in view.other_processors.items())
    return (*((none,) if count else ()), *((bounded,) if view.truncated else ()), *others)


def open_benchmark() -> None:
    """Draw the button that leads to the page where runs are made."""
    if st.button("Run a benchmark", type="primary", icon=":material/timer:"):
        st.switch_page(BENCHMARK)


def _show_points(view: View) -> None:
    if not view.points:
        return
    count = len(view.points)
    with st.expander(f"Results: {count} in a table", icon=":material/table:"):
        show_table(
            lambda: [
                _point(point) for point in sorted(view.points, key=lambda point: point.fraction or 0.0, reverse=True)
            ],
            view,
            POINT_UNITS,
            alt=f"Table of {count} points with intensity, rate and share of the roof above",
            config={"Of its roof": st.column_config.NumberColumn(help="Rate over the attainable at this intensity")},
        )


def _point(point: Point) -> dict[str, object]:
    return {
        "Case": point.label,
        "From": point.origin.label,
        "Operation": operation_named(point.operation).title,
        "Shape": shape_label(point.shape),
        "Rate": point.flop_per_s,
        "Of its roof": point.fraction,
        "Roof": roof_above(point),
        "Intensity": point.intensity,
        "Time": point.time_s,
        "Run": point.run,
        "Source": point.source,
    }


def _show_roofs(view: View) -> None:
    count = len(view.roofs)
    with st.expander(f"Roofs: {count} with their sources", icon=":material/roofing:"):
        show_table(
            lambda: [_roof(roof) for roof in view.roofs],
            view,
            ROOF_UNITS,
            alt=f"Table of {count} roofs with rate, kind and source",
        )


def _roof(roof: Roof) -> dict[str, object]:
    computes = roof.kind == "compute"
    return {
        "Roof": roof.label,
        "Compute": roof.rate if computes else None,
        "Bandwidth": None if computes else roof.rate,
        "Kind": basis(roof) if roof.reached else PEAK_SOURCES[roof.peak_kind].label,
        "Source": roof.source,
    }
