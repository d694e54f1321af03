"""The page Roofline: roofs and results of a device in a chart whose points open their run, sentences and tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from gpuexplore.analysis.model import Context
from gpuexplore.analysis.roofline import Point, explain, point_of, published_points, without_flops
from gpuexplore.analysis.roofs import Roof, roof_experiments, roofs
from gpuexplore.analysis.run.analyze import analyze_alone
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.utilization import device_of, shape_label
from gpuexplore.charts.roofline import OPENED, roofline
from gpuexplore.charts.roofline_frames import basis, roof_above
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Device, Origin, Result, Run
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.hardware.identity import OTHER_PROCESSOR, same_device, why_other_device
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results, run_id
from gpuexplore.ui import url_widgets
from gpuexplore.ui.known_results import MOST_RESULTS, NOTHING, DeviceResults, measured_results
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.run.submit import start, started
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.session import owner
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

ALL = "all"
RUNS = {"mine": "My runs", "all": "Everybody's", "none": "None"}
RECORDED = {"on": "Shown", "off": "Hidden"}
TABLE = {accelerator.key: accelerator for accelerator in ACCELERATORS}


@dataclass(frozen=True, slots=True)
class RooflineChoice:
    """A visitor's choices.

    Attributes:
        device: of this machine, or a row of the table.
        here: whether it can be measured on this machine.
        dtype: the only one, or None for all.
        runs: whose, a key of RUNS.
        recorded: whether results recorded on other hardware are drawn.
        operation: the only one, or None for all.
    """

    device: Device
    here: bool
    dtype: str | None
    runs: str
    recorded: bool
    operation: str | None


def choose(devices: Sequence[Device]) -> RooflineChoice:
    """Draw the choices and return them."""
    known = {device.id: device for device in devices}
    with st.container(border=True):
        problems = st.container()  # the columns are too narrow for sentences
        device_column, dtypes, operations, whose, recordings = st.columns([4, 2, 3, 3, 2], gap="medium")
        with device_column:
            name = url_widgets.select(
                "Device",
                "device",
                [*known, *TABLE],
                shown=lambda key: f"{known[key].title} (this machine, {key})" if key in known else TABLE[key].name,
                problems=problems,
            )
        device = known[name] if name in known else as_device(TABLE[name])
        with dtypes:
            present = [dtype for dtype in FORMATS if any(peak.dtype == dtype for peak in device.peaks)]
            dtype = url_widgets.select("Dtype", "dtype", [ALL, *present], problems=problems)
        with operations:
            operation = url_widgets.operation(ALL, problems=problems)
        with whose:
            runs = url_widgets.select("Runs", "runs", list(RUNS), shown=RUNS.__getitem__, problems=problems)
        with recordings:
            recorded = url_widgets.select(
                "Recorded runs", "recorded", list(RECORDED), shown=RECORDED.__getitem__, problems=problems
            )
    return RooflineChoice(
        device=device,
        here=name in known,
        dtype=None if dtype == ALL else dtype,
        runs=runs,
        recorded=recorded == "on",
        operation=None if operation == ALL else operation,
    )


Found = tuple[tuple[str, Result], ...]
LEFT = "roofline.left"  # the session's key of the run that was opened, and of the URL's parameters before
READING = (
    "Thick lines: matrix units and memory; thin ones: vector units and caches. Diamonds: ridge points, in FLOP/byte."
)


@dataclass(frozen=True, slots=True, eq=False)
class RooflineView:
    """Everything that is drawn: one object for all who look at the same.

    Attributes:
        roofs: of the chosen dtype, and the bandwidths.
        points: newest of each case, of the chosen dtype and operation.
        measured: results of this device there are, whatever was chosen.
        without_flops: chosen results that compute nothing and so are no points.
        truncated: there are older results that are not shown.
        other_processors: recorded results of other processors of this name, counted by how they differ.
    """

    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    measured: int
    without_flops: int
    truncated: bool
    other_processors: Mapping[str, int] = field(default_factory=dict)


VIEWS: Shared[RooflineView] = Shared(100)


def view_of(choice: RooflineChoice) -> RooflineView:
    """Return what the choices ask for."""
    all_results, live = measured_results(choice.device), _live(choice)
    runs = tuple(dict.fromkeys(run for run, _ in live.found))  # of whom they are does not matter to what is drawn
    key = (choice, all_results, runs, len(live.found))
    return VIEWS.get(key, lambda: _view(choice, all_results.found, live.found))


def _live(choice: RooflineChoice) -> DeviceResults:
    if choice.runs == "none":
        return NOTHING
    return measured_results(choice.device, None if choice.runs == "all" else owner())


def _view(choice: RooflineChoice, all_results: Found, live: Found) -> RooflineView:
    recorded = _recorded(choice.device)
    shown: dict[Origin, Found] = {Origin.LIVE: live, Origin.RECORDED: recorded if choice.recorded else ()}
    all_roofs = roofs(
        choice.device, (result for _, result in all_results), (result for _, result in shown[Origin.RECORDED])
    )
    points = [point for origin, found in shown.items() for point in _points_of(found, all_roofs, origin=origin)]
    points += published_points(choice.device, all_roofs)
    return RooflineView(
        roofs=tuple(roof for roof in all_roofs if roof.dtype is None or choice.dtype in (None, roof.dtype)),
        points=tuple(point for point in points if _wanted(point.dtype, point.operation, choice)),
        measured=len(all_results),
        without_flops=without_flops(
            result
            for found in shown.values()
            for _, result in found
            if _wanted(result.case.dtype, result.case.operation, choice)
        ),
        truncated=max(len(all_results), len(live)) == MOST_RESULTS,
        other_processors=_other_processors(choice.device) if choice.recorded else {},
    )


def _recorded(device: Device) -> Found:
    return tuple(
        (run_id(recording, result), result)
        for recording, result in recorded_results()
        if same_device(device_of(result), device)
    )


def _other_processors(device: Device) -> Mapping[str, int]:
    reasons = (why_other_device(device_of(result), device) for _, result in recorded_results())
    return Counter(reason for reason in reasons if reason and reason.startswith(OTHER_PROCESSOR))


def _points_of(found: Found, all_roofs: tuple[Roof, ...], *, origin: Origin) -> list[Point]:
    """Return the newest of each case as a point; the newest come first."""
    newest = {result.case: (run, result) for run, result in reversed(found)}
    context = Context(origin=origin)
    found_points = (point_of(analyze_alone(result, context), all_roofs, run=run) for run, result in newest.values())
    return [point for point in found_points if point is not None]


def _wanted(dtype: str, operation: str, choice: RooflineChoice) -> bool:
    return choice.dtype in (None, dtype) and choice.operation in (None, operation)


def show_roofline(view: RooflineView, choice: RooflineChoice) -> None:
    """Show the chart, its sentences and its tables; a click on a point opens its run."""
    event: Any = show_chart(
        lambda: roofline(view.roofs, view.points), view, key=f"chart.roofline.{choice.device.id}", on_select="rerun"
    )
    if run := run_of(event):
        st.session_state[LEFT] = run, st.query_params.to_dict()
        st.switch_page(file_of("benchmark"), query_params={"run": run})
    st.caption(" ".join((READING, *_how_to_read(view.points), *left_out(view))))
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
    """Return what is shown of a device without measurements on this server."""
    labels = {Origin.RECORDED: "recorded elsewhere by gpuexplore", Origin.PUBLISHED: "published by others"}
    origins = [words for origin, words in labels.items() if any(point.origin == origin for point in points)]
    shown = (
        f"The points are results {' and '.join(origins)}."
        if origins
        else "No result from elsewhere matches these choices."
    )
    return f"No measurements of {name} on this server: its peaks come from the table of accelerators. {shown}"


def no_run_shown(hidden: bool) -> str:
    """Return why no run of this server is on the roofline."""
    return "Runs are hidden." if hidden else "None of your runs is on this roofline yet."


def _how_to_read(points: Sequence[Point]) -> tuple[str, ...]:
    """Return what there is to know about the points that are drawn, a sentence each."""
    opens = "Click a point to open its run." if any(point.run for point in points) else None
    elsewhere = any(point.origin is not Origin.LIVE for point in points)
    hollow = "Hollow points were not measured on this server." if elsewhere else None
    return tuple(sentence for sentence in (opens, hollow) if sentence)


def left_out(view: RooflineView) -> tuple[str, ...]:
    """Return what the chart does not show, a sentence each."""
    count, many = view.without_flops, view.without_flops > 1
    none = f"{count} result{'s'[:many]} without FLOPs, such as copies, {'are' if many else 'is'} not drawn."
    bounded = f"Only the newest {MOST_RESULTS} results are shown."
    others = (f"{number} recorded results left out: {reason}." for reason, number in view.other_processors.items())
    return (*((none,) if count else ()), *((bounded,) if view.truncated else ()), *others)


def open_benchmark() -> None:
    """Draw the button that leads to the page where runs are made."""
    if st.button("Run a benchmark", type="primary", icon=":material/timer:"):
        st.switch_page(file_of("benchmark"))


def _show_points(view: RooflineView) -> None:
    if not view.points:
        return
    count = len(view.points)
    with st.expander(f"Results: {count} in a table", icon=":material/table:"):
        show_table(
            lambda: [
                _point(point) for point in sorted(view.points, key=lambda point: point.fraction or 0.0, reverse=True)
            ],
            view,
            {"Rate": "FLOP/s", "Share of roof": "%", "Intensity": "FLOP/byte", "Time": "s"},
            alt=f"Table of {count} points with intensity, rate and share of the roof above",
            config={"Share of roof": st.column_config.NumberColumn(help="Rate over the attainable at this intensity")},
        )


def _point(point: Point) -> dict[str, object]:
    return {
        "Case": point.label,
        "From": point.origin.label,
        "Operation": operation_named(point.operation).title,
        "Shape": shape_label(point.shape),
        "Rate": point.flop_per_s,
        "Share of roof": point.fraction,
        "Roof": roof_above(point),
        "Intensity": point.intensity,
        "Time": point.time_s,
        "Run": point.run,
        "Source": point.source,
    }


def _show_roofs(view: RooflineView) -> None:
    count = len(view.roofs)
    with st.expander(f"Roofs: {count} with their sources", icon=":material/roofing:"):
        show_table(
            lambda: [_roof(roof) for roof in view.roofs],
            view,
            {"Compute": "FLOP/s", "Bandwidth": "B/s"},
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


def offer(device: Device) -> None:
    """Draw the button that measures the roofs of `device`, by large products and a triad."""
    if st.button("Measure this device's roofs", icon=":material/roofing:", help=_help(device)):
        start(roof_experiments(device), [device])


def show_progress() -> None:
    """Show the runs that measure roofs, until they have ended."""
    for run in started():
        show_run(run.id, _show_result_count)


def _help(device: Device) -> str:
    titles = " and ".join(
        f"{operation_named(roof_experiment.operation).title.lower()} at {roof_experiment.shapes[0]}"
        for roof_experiment in roof_experiments(device)
    )
    return f"Runs {titles} with the default implementations: the best results become roofs. Usually a minute or two."


def _show_result_count(run: Run) -> None:
    if not run.active:
        title = operation_named(run.experiment.operation).title
        st.caption(f":material/check: {title}: measured. Its best result is the dotted roof on the chart.")
