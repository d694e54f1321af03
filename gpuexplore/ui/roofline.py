"""The page Roofline: roofs and results of a device in a chart whose points open their run, sentences and tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.model import Context
from gpuexplore.analysis.roofline import Point, explain, point_of, published_points, without_flops
from gpuexplore.analysis.roofs import Roof, roof_experiments, roofs
from gpuexplore.analysis.run.analyze import analyze_alone
from gpuexplore.analysis.utilization import PEAK_SOURCES, device_of, shape_label
from gpuexplore.charts.roofline import OPENED, basis, roof_above, roofline
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Device, Origin, Result, Run
from gpuexplore.hardware import NEWEST_FIRST, OTHER_PROCESSOR, as_device, same_device, why_other_device
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results, run_id
from gpuexplore.ui import url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.run.state import start, started
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.session import MOST_RESULTS, NOTHING, measured_results, owner
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table


@dataclass(frozen=True, slots=True)
class _Choice:
    """A visitor's choices.

    Attributes:
        device: of this machine, or a row of the table.
        here: whether it can be measured on this machine.
        dtype: the only one, or None for all.
        runs: whose: `mine`, `all` or `none`.
        recorded: whether results recorded on other hardware are drawn.
        operation: the only one, or None for all.
    """

    device: Device
    here: bool
    dtype: str | None
    runs: str
    recorded: bool
    operation: str | None


def choose(devices: Sequence[Device]) -> _Choice:
    """Draw the choices and return them."""
    known = {device.id: device for device in devices}
    table = {accelerator.key: accelerator for accelerator in NEWEST_FIRST}
    owners = {"mine": "My runs", "all": "All users'", "none": "None"}
    states = {"on": "Shown", "off": "Hidden"}
    with url_widgets.choices_in_a_line() as (words, _):
        name = url_widgets.select(
            "Device",
            "device",
            [*known, *table],
            shown=lambda key: f"{known[key].short_title} (this machine, {key})" if key in known else table[key].name,
        )
        device = known[name] if name in known else as_device(table[name])
        left, right = st.columns(2, gap="medium")
        with left:
            present = [dtype for dtype in FORMATS if any(peak.dtype == dtype for peak in device.peaks)]
            dtype = url_widgets.select("Dtype", "dtype", ["all", *present])
            only_others = not measured_results(device, owner()).found and measured_results(device).found
            first = ["all"] if only_others else []
            runs = url_widgets.select("Runs", "runs", [*dict.fromkeys((*first, *owners))], shown=owners.__getitem__)
        with right:
            operation = url_widgets.operation("all")
            recorded = url_widgets.select("Recorded runs", "recorded", list(states), shown=states.__getitem__)
    parts = [
        "all dtypes" if dtype == "all" else dtype,
        "all operations" if operation == "all" else url_widgets.operation_title(operation),
        f"{owners[runs].lower()} {'runs' if runs == 'all' else ''}".strip() if runs != "none" else "no runs",
        f"recorded runs {states[recorded].lower()}",
    ]
    words.markdown(" · ".join([f"**{plain(device.short_title)}**", *parts]))
    return _Choice(
        device=device,
        here=name in known,
        dtype=None if dtype == "all" else dtype,
        runs=runs,
        recorded=recorded == "on",
        operation=None if operation == "all" else operation,
    )


Found = tuple[tuple[str, Result], ...]
LEFT = "roofline.left"  # the session's key of the run that was opened, and of the URL's parameters before


@dataclass(frozen=True, slots=True, eq=False)
class _View:
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


VIEWS: Shared[_View] = Shared(100)


def view_of(choice: _Choice) -> _View:
    """Return what the choices ask for."""
    all_results = measured_results(choice.device)
    live = NOTHING
    if choice.runs != "none":
        live = measured_results(choice.device, None if choice.runs == "all" else owner())
    runs = tuple(dict.fromkeys(run for run, _ in live.found))  # of whom they are does not matter to what is drawn
    key = (choice, all_results, runs, len(live.found))
    return VIEWS.get(key, lambda: _view(choice, all_results.found, live.found))


def recorded_example(choice: _Choice) -> _Choice | None:
    """Return the same choices of a GPU with recorded runs, for a machine without any; None where they have no point."""
    h100 = next(accelerator for accelerator in NEWEST_FIRST if accelerator.key == "h100-sxm5-80gb")
    example = replace(choice, device=as_device(h100), here=False)
    is_known = choice.runs != "none" and any(each.origin is Origin.RECORDED for each in view_of(example).points)
    return example if is_known else None


def _view(choice: _Choice, all_results: Found, live: Found) -> _View:
    recorded = tuple(
        (run_id(recording, result), result)
        for recording, result in recorded_results()
        if same_device(device_of(result), choice.device)
    )
    reasons = (why_other_device(device_of(result), choice.device) for _, result in recorded_results())
    other_processors = Counter(reason for reason in reasons if reason and reason.startswith(OTHER_PROCESSOR))
    shown: dict[Origin, Found] = {Origin.LIVE: live, Origin.RECORDED: recorded if choice.recorded else ()}
    all_roofs = roofs(
        choice.device, (result for _, result in all_results), (result for _, result in shown[Origin.RECORDED])
    )
    points = [point for origin, found in shown.items() for point in _points_of(found, all_roofs, origin=origin)]
    points += published_points(choice.device, all_roofs)
    return _View(
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
        other_processors=other_processors if choice.recorded else {},
    )


def _points_of(found: Found, all_roofs: tuple[Roof, ...], *, origin: Origin) -> list[Point]:
    """Return the newest of each case as a point; the newest come first."""
    newest = {result.case: (run, result) for run, result in reversed(found)}
    context = Context(origin=origin)
    found_points = (point_of(analyze_alone(result, context), all_roofs, run=run) for run, result in newest.values())
    return [point for point in found_points if point is not None]


def _wanted(dtype: str, operation: str, choice: _Choice) -> bool:
    return choice.dtype in (None, dtype) and choice.operation in (None, operation)


def show_roofline(view: _View, choice: _Choice, said: DeltaGenerator) -> None:
    """Show the chart, its sentences and its tables; a click on a point opens its run.

    Args:
        view: what is drawn.
        choice: of the visitor.
        said: where the sentence on what limits the results stands, else the one on the ridge point.
    """
    sentences = explain(view.roofs, view.points)
    if sentences:
        first = next((each for each in sentences if each.startswith("Of ")), f"{sentences[0].partition(':')[0]}.")
        said.markdown(f"#### {plain(choice.device.short_title)}: {first[0].lower()}{first[1:]}")
    event: Any = show_chart(
        lambda: roofline(view.roofs, view.points), view, key=f"chart.roofline.{choice.device.id}", on_select="rerun"
    )
    if run := _run_of(event):
        st.session_state[LEFT] = run, st.query_params.to_dict()
        st.switch_page(file_of("benchmark"), query_params={"run": run})
    reading = ["Thick lines: matrix units and memory; thin ones: vector units and caches."]
    reading.append("Diamonds: ridge points in FLOP/byte.")
    if any(point.origin is Origin.LIVE for point in view.points):
        reading.append(f"Points: {'your runs' if choice.runs == 'mine' else 'runs of all users of this server'}.")
    if any(point.run for point in view.points):
        reading.append("Click a point to open its run.")
    if any(point.origin is not Origin.LIVE for point in view.points):
        reading.append("Hollow points were not measured on this server.")
    st.caption(" ".join((*reading, *_left_out(view))))
    if sentences:
        st.markdown("\n".join(f"- {sentence}" for sentence in sentences))
    _show_points(view)
    count = len(view.roofs)
    with st.expander(f"Roofs: {count} with their sources", icon=":material/roofing:"):
        show_table(
            lambda: [
                {
                    "Roof": roof.label,
                    "Compute": roof.rate if roof.kind == "compute" else None,
                    "Bandwidth": None if roof.kind == "compute" else roof.rate,
                    "Kind": basis(roof) if roof.reached else PEAK_SOURCES[roof.peak_kind].label,
                    "Source": roof.source,
                }
                for roof in view.roofs
            ],
            view,
            {"Compute": "FLOP/s", "Bandwidth": "B/s"},
            alt=f"Table of {count} roofs with rate, kind and source",
        )


def restore_after_back() -> None:
    """Give the page the choices it had when a point was opened: Streamlit puts an entry without them in between.

    Once only, so that going back further does not end here.
    """
    run, query = st.session_state.pop(LEFT, (None, {}))
    if run and st.query_params.get("run") == run:
        st.query_params.from_dict(query)


def _run_of(event: Any) -> str | None:
    """Return the run of the point that was clicked; None without a click, or where the point has no run."""
    picked = event.get("selection", {}).get(OPENED) or []
    return next((point["run"] for point in picked if point.get("run")), None)


def _left_out(view: _View) -> tuple[str, ...]:
    """Return what the chart does not show, a sentence each."""
    found = []
    if view.without_flops:
        results = "1 result" if view.without_flops == 1 else f"{view.without_flops} results"
        verb = "is" if view.without_flops == 1 else "are"
        found.append(f"{results} without FLOPs, such as copies, {verb} not drawn.")
    if view.truncated:
        found.append(f"Only the newest {MOST_RESULTS} results are shown.")
    found += (f"{number} recorded results left out: {reason}." for reason, number in view.other_processors.items())
    return tuple(found)


def _show_points(view: _View) -> None:
    if not view.points:
        return
    count = len(view.points)
    best_first = sorted(view.points, key=lambda point: point.fraction or 0.0, reverse=True)
    with st.expander(f"Results: {count} in a table", icon=":material/table:"):
        show_table(
            lambda: [
                {
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
                for point in best_first
            ],
            view,
            {"Rate": "FLOP/s", "Share of roof": "%", "Intensity": "FLOP/byte", "Time": "s"},
            alt=f"Table of {count} points with intensity, rate and share of the roof above",
            config={"Share of roof": st.column_config.NumberColumn(help="Rate over the attainable at this intensity")},
        )


def offer(device: Device) -> None:
    """Draw the button that measures the roofs of `device`, by large products and a triad."""
    experiments = roof_experiments(device)
    titles = " and ".join(
        f"{operation_named(experiment.operation).title.lower()} at {experiment.shapes[0]}" for experiment in experiments
    )
    about = f"Runs {titles} with the default implementations: the best results become roofs. Usually a minute or two."
    if st.button("Measure this device's roofs", icon=":material/roofing:", help=about):
        start(experiments, [device])


def show_progress() -> None:
    """Show the runs that measure roofs, until they have ended."""

    def show(run: Run) -> None:
        if not run.active:
            title = operation_named(run.experiment.operation).title
            st.caption(f":material/check: {title}: measured. Its best result is the dotted roof on the chart.")

    for run in started():
        show_run(run.id, show)
