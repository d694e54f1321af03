"""The measurements of a step: queued on a click or taken from the last hour; and their figures before a verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import streamlit as st

import gpuexplore
from gpuexplore import charts
from gpuexplore.activity import Activity, ActivityRun
from gpuexplore.analysis.figure import LessonFigure, QuantityRow, format_figure, format_with_interval
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.backends.host import installed_versions, version_of
from gpuexplore.core import DOUBTFUL, Device, NotFound, Origin, Result, Run, RunState
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    LaunchBlock,
    PredictBlock,
    RunBlock,
    feature_of,
    module_of,
    name_of,
)
from gpuexplore.features.lessons.lesson.evidence import (
    NOT_INSTALLED,
    STAND_IN,
    Measured,
    StepTask,
    Work,
    computed_rows,
    request_of,
    stand_ins,
)
from gpuexplore.features.lessons.lesson.format import LessonStep
from gpuexplore.features.lessons.lesson.quantities import HERE
from gpuexplore.hardware import accelerator_named, device_key, readings, same_device
from gpuexplore.request import to_query
from gpuexplore.ui.activity import devices_of
from gpuexplore.ui.identity import address
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import pages
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.run.state import changed, fetch, fetch_activity
from gpuexplore.ui.run.table import UNITS, shown_row
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

ALIKE: Shared[Run | ActivityRun | None] = Shared(200)
AnyRun = Run | ActivityRun


@dataclass(frozen=True, slots=True)
class StepRuns:
    """The stored runs of a step.

    Attributes:
        runs: by the index of their task.
        lost: ids that are not there any more.
    """

    runs: dict[int, AnyRun]
    lost: tuple[str, ...] = ()

    @property
    def pending(self) -> list[AnyRun]:
        """The runs that are queued or measuring."""
        return [run for run in self.runs.values() if run.active]

    @property
    def failed(self) -> list[AnyRun]:
        """The runs that ended without all of their results."""
        return [run for run in self.runs.values() if run.state in (RunState.FAILED, RunState.CANCELLED)]

    @property
    def measured(self) -> dict[int, Measured]:
        """Their results so far, by index."""
        found: dict[int, Measured] = {}
        for index, run in self.runs.items():
            if isinstance(run, Run):
                found[index] = run.results
            elif run.payloads and run.state is RunState.DONE:
                found[index] = run.payloads[-1]
        return {index: measured for index, measured in found.items() if measured}

    @property
    def finished_utc(self) -> str | None:
        """The time at which the oldest of them ended."""
        return min((run.finished_utc for run in self.runs.values() if run.finished_utc), default=None)


def found_runs(ids: Sequence[str | None], tasks: Sequence[StepTask]) -> StepRuns:
    """Return the runs of a step by their ids."""
    runs = dict[int, AnyRun]()
    lost = []
    for index, (run_id, task) in enumerate(zip(ids, tasks, strict=False)):
        if run_id is None or task.work is None:
            continue
        try:
            runs[index] = fetch_activity(run_id) if isinstance(task.work, Activity) else fetch(run_id)
        except NotFound:
            lost.append(run_id)
    return StepRuns(runs, tuple(lost))


def submit(tasks: Sequence[StepTask], reuse: Sequence[AnyRun | None] = (), *, join: bool = True) -> list[str | None]:
    """Queue what is to be measured; return the ids in the order of `tasks`, None where nothing has to be.

    Args:
        tasks: of a step.
        reuse: runs to take instead, in the same order.
        join: whether any visitor's run that has begun, and that measures exactly the same, is taken instead.

    Raises:
        InvalidInput: a limit of the queue is reached, or the visitor may not measure.
    """
    known = [*reuse, *[None] * (len(tasks) - len(reuse))]
    ids = [run.id if run else _submitted(task, join=join) for task, run in zip(tasks, known, strict=True)]
    changed()
    return ids


def alike(tasks: Sequence[StepTask]) -> list[AnyRun | None]:
    """Return for each task what was measured here alike within the hour, undisturbed and with the same versions."""
    found: list[AnyRun | None] = []
    for task in tasks:
        if (work := task.work) is None:
            found.append(None)
            continue
        here = tuple(device for device_id in work.devices for device in devices_of(device_id))
        found.append(ALIKE.get((work, here, moment(10)), partial(_newest_alike, work, here)))
    return found


def _submitted(task: StepTask, *, join: bool) -> str | None:
    """Return the id of the run that does the task: one that another reader has just begun, or else a new one."""
    if task.work is None:
        return None
    check(Right.MEASURE)
    seconds = None if isinstance(task.work, Activity) else task.seconds
    if join:
        return store().ask(task.work, owner(), estimated_s=seconds, address=address())
    if isinstance(task.work, Activity):
        return store().submit(task.work, owner(), address=address())
    return store().submit(task.work, owner(), estimated_s=seconds, address=address())


def _newest_alike(work: Work, here: Sequence[Device]) -> AnyRun | None:
    """Return the newest run alike that was done on one of the devices `here`: machines may share a database."""
    since_utc = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
    if isinstance(work, Activity):
        done = store().newest_activity(work, since_utc, device_keys={device_key(device) for device in here})
        return done if done and done.software == installed_versions() else None
    run = store().newest_alike(work, since_utc)
    return run if run and all(_is_undisturbed(result) and _is_of(result, here) for result in run.results) else None


def _is_of(result: Result, here: Sequence[Device]) -> bool:
    """Return whether a result was measured on one of the devices `here`, or has nothing that depends on where."""
    device = result.environment.device if result.environment else None
    return device is None or any(same_device(device, other) for other in here)


def _is_undisturbed(result: Result) -> bool:
    """Return whether nothing casts a doubt on a result, and it was measured with the versions that are installed."""
    environment = result.environment
    if any(flag.name in DOUBTFUL for flag in result.flags):
        return False
    if environment is None:
        return True
    if result.measurement is None or environment.app_version != gpuexplore.__version__:
        return False
    return all(version_of(name) in (None, version) for name, version in environment.libraries.items())


COLUMNS = (
    "Implementation", "Dtype", "Shape", "Size", "Time", "95 % low", "95 % high", "Speedup", "Rate", "MFU", "Error",
    "Flags", "Status",
)  # fmt: skip
Query = Callable[[Any, Sequence[Device]], dict[str, str]]


def _device_words(name: str) -> str:
    """Return what a reader calls a device that a lesson names: that of the table, else the name itself."""
    row = accelerator_named(name)
    return row.name if row else name


def show_figures(
    step: LessonStep,
    tasks: Sequence[StepTask],
    measured: Mapping[int, Measured],
    *,
    devices: Sequence[Device],
    key: str,
) -> None:
    """Show what a step knows, block by block, and the page on which each goes on."""
    for index, task in enumerate(tasks):
        block = task.block
        if not isinstance(block, RunBlock):
            if shown := module_of(block, "ui"):
                shown.show_lesson_measurement(block, measured.get(index), f"{key}.{index}")
            elif not isinstance(block, COMPUTED):
                st.caption(f"`{name_of(block)}`: {NOT_INSTALLED}")
            if isinstance(block, COMPUTED):  # its picture, and where it goes on, are below
                continue
        elif task.work is None:
            _show_rows(list(stand_ins(block, devices)), "No GPU in this machine: ", STAND_IN)
        else:
            _show_results(measured.get(index, ()), f"{key}.{index}")
        _open_in(block, devices, f"{key}.{index}.open")
    for index, block in enumerate(step.of(*COMPUTED)):
        _show_computed(block, devices, len(step.of(type(block))))
        for reading in readings([getattr(block, "gpu", "")]):
            st.caption(plain(reading))
        _open_in(block, devices, f"{key}.computed.{index}.open")


def _show_results(results: Any, key: str) -> None:
    found: Sequence[Result] = results
    if not found:
        return
    analysis = analyze(found)
    if len({result.case.shape for result in found if result.measurement}) > 1:
        show_chart(lambda: charts.time(analysis), _moments(found), key=f"{key}.chart")

    def rows() -> list[Mapping[str, object]]:
        shown = [shown_row(analyzed) for analyzed in analysis.results]
        return [{name: row[name] for name in COLUMNS if name in row} for row in shown]

    alt = f"Table of {len(found)} results with time, interval, speedup, rate and MFU"
    show_table(rows, _moments(found), UNITS, alt=alt)


def _moments(found: Sequence[Result]) -> tuple[object, ...]:
    """Return a key of these results."""
    return tuple(
        (result.case, result.environment and result.environment.started_utc, result.measurement) for result in found
    )


def _show_computed(block: Any, devices: Sequence[Device], count: int) -> None:
    if isinstance(block, PredictBlock):
        _show_rows(list(computed_rows(block, devices)), "")
    elif isinstance(block, LaunchBlock):
        row = next(iter(computed_rows(block, devices)))
        words = {"share": "elements outside whole blocks", "last_wave": "blocks in the last wave"}
        listed = ", ".join(
            f"{words.get(name, name)} {format_figure(figure)}"
            for name, figure in row.figures.items()
            if isinstance(figure, LessonFigure)
        )
        where = f"compute capability {block.cc}" if block.cc else "this machine" if block.gpu == HERE else block.gpu
        on = f" on {_device_words(where)}" if where else ""
        opening = f"{block.elements:,} elements in blocks of {block.threads:,} threads{on}"
        st.caption(plain(f"{opening}: {listed or row.missing}"))
    elif shown := module_of(block, "ui"):
        shown.show_lesson_block(block, count)
    else:
        st.caption(f"`{name_of(block)}`: {NOT_INSTALLED}")


def _show_rows(rows: Sequence[QuantityRow], opening: str, stand_in: str = "") -> None:
    for row in rows:
        labels = row.labels
        source = row.labels.get("source", "")
        device = stand_in if stand_in and source == Origin.PREDICTED.label else labels["device"]
        on = f" on {_device_words(device)}" if device else ""
        of = f"{labels['operation']} {labels['shape']} in {labels['dtype']}, {labels['impl']}{on},"
        known = {name: figure for name, figure in row.figures.items() if isinstance(figure, LessonFigure)}
        listed = ", ".join(f"{name.replace('_', ' ')} {format_with_interval(figure)}" for name, figure in known.items())
        st.caption(f"{opening}{plain(of)} {plain(source)}: {plain(listed or row.missing)}")


def _open_in(block: Any, devices: Sequence[Device], key: str) -> None:
    """Offer the page on which a reader goes on with the same, where its feature is installed."""
    feature = feature_of(block)
    page = feature.page if feature else pages().get(PAGE_OF[type(block)][0]) if type(block) in PAGE_OF else None
    if page and st.button(f"Open in {page.title}", key=key, icon=":material/open_in_new:", type="tertiary"):
        query = module_of(block, "ui").lesson_block_query(block) if feature else PAGE_OF[type(block)][1](block, devices)
        st.switch_page(page.file, query_params=query)


PAGE_OF: Mapping[type, tuple[str, Query]] = {
    RunBlock: ("benchmark", lambda block, devices: to_query(request_of(block, devices[0].id))),
    PredictBlock: (
        "what-if",
        lambda block, _: {"op": block.operation, "shape": block.shape or block.size, "calls": block.calls},
    ),
    LaunchBlock: ("kernels", lambda _block, _devices: {"tab": "launch"}),
}
