"""Figures of a lesson's step before it is judged, of tensors and memory too: a chart where sizes differ."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from gpuexplore import charts
from gpuexplore.analysis.figure import LessonFigure, QuantityRow, format_figure, format_with_interval
from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.model import Device, Origin, Result
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    LaunchBlock,
    PredictBlock,
    RunBlock,
    feature_of,
    module_of,
)
from gpuexplore.features.lessons.lesson.evidence import (
    NOT_INSTALLED,
    STAND_IN,
    Measured,
    StepTask,
    computed_rows,
    request_of,
    stand_ins,
)
from gpuexplore.features.lessons.lesson.format import LessonStep
from gpuexplore.features.lessons.lesson.quantities import HERE
from gpuexplore.hardware import accelerator_named, readings
from gpuexplore.request import to_query
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import pages
from gpuexplore.ui.run.table import UNITS, shown_row
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

LAUNCH_WORDS = {"share": "elements outside whole blocks", "last_wave": "blocks in the last wave"}
COLUMNS = (
    "Implementation",
    "Dtype",
    "Shape",
    "Size",
    "Time",
    "95 % low",
    "95 % high",
    "Speedup",
    "Rate",
    "MFU",
    "Error",
)
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
                st.caption(f"`{block.name}`: {NOT_INSTALLED}")
            if isinstance(block, COMPUTED):  # its picture, and where it goes on, are below
                continue
        elif task.work is None:
            _show_rows(list(stand_ins(block, devices)), "No GPU is here: ", STAND_IN)
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
    shapes = {result.case.shape for result in found if result.measurement}
    if len(shapes) > 1:
        show_chart(lambda: charts.time(analysis), _moments(found), key=f"{key}.chart")
    _show_results_table(analysis, found)


def _show_results_table(analysis: RunAnalysis, found: Sequence[Result]) -> None:
    def rows() -> list[Mapping[str, object]]:
        shown = [shown_row(analyzed) for analyzed in analysis.results]
        return [{name: row.get(name) for name in (*COLUMNS, "Flags", "Status") if name in row} for row in shown]

    alt = f"Table of {len(found)} results with time, interval, speedup, rate and MFU"
    show_table(rows, _moments(found), UNITS, alt=alt)


def _moments(found: Sequence[Result]) -> tuple[object, ...]:
    """Return what tells these results from all others."""
    return tuple(
        (result.case, result.environment and result.environment.started_utc, result.measurement) for result in found
    )


def _show_computed(block: Any, devices: Sequence[Device], count: int) -> None:
    if isinstance(block, PredictBlock):
        _show_rows(list(computed_rows(block, devices)), "")
    elif isinstance(block, LaunchBlock):
        _show_launch(block, devices)
    elif shown := module_of(block, "ui"):
        shown.show_lesson_block(block, count)
    else:
        st.caption(f"`{block.name}`: {NOT_INSTALLED}")


def _show_launch(block: LaunchBlock, devices: Sequence[Device]) -> None:
    row = next(iter(computed_rows(block, devices)))
    listed = ", ".join(
        f"{LAUNCH_WORDS.get(name, name)} {format_figure(figure)}"
        for name, figure in row.figures.items()
        if isinstance(figure, LessonFigure)
    )
    where = f"compute capability {block.cc}" if block.cc else "this machine" if block.gpu == HERE else block.gpu
    on = f" on {_device_words(where)}" if where else ""
    opening = f"{block.elements:,} elements in blocks of {block.threads:,} threads{on}"
    st.caption(plain(f"{opening}: {listed or row.missing}"))


def _show_rows(rows: Sequence[QuantityRow], opening: str, stand_in: str = "") -> None:
    for row in rows:
        labels, source = row.labels, row.labels.get("source", "")
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
    LaunchBlock: ("kernels", lambda _block, _devices: {}),
}
