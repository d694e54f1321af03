"""Figures of a lesson's step before it is judged, of tensors and memory too: a chart where sizes differ."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from gpuexplore import charts
from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.model import Device, Origin, Result
from gpuexplore.core.serialization import decode
from gpuexplore.devices import accelerator_named, readings
from gpuexplore.features.fact_check.analysis.claim import claims_of
from gpuexplore.features.fact_check.analysis.judge import judge
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    ClaimBlock,
    LaunchBlock,
    MemoryBlock,
    MistakeBlock,
    PredictBlock,
    RunBlock,
    TensorBlock,
    TrainBlock,
)
from gpuexplore.features.lessons.lesson.evidence import (
    STAND_IN,
    Measured,
    StepTask,
    computed_rows,
    request_of,
    stand_ins,
)
from gpuexplore.features.lessons.lesson.expression import QuantityRow
from gpuexplore.features.lessons.lesson.figure import LessonFigure, format_figure, format_with_interval
from gpuexplore.features.lessons.lesson.format import LessonStep
from gpuexplore.features.lessons.lesson.memory_block import memory_rows, options_of
from gpuexplore.features.lessons.lesson.quantities import HERE
from gpuexplore.features.lessons.lesson.tensor_block import read_rows
from gpuexplore.features.lessons.lesson.training import arguments_of
from gpuexplore.features.memory.analysis.fits import gpus_named
from gpuexplore.features.memory.analysis.models import model_named, models
from gpuexplore.features.mistakes.catalog.contract import MistakeObservation
from gpuexplore.features.mistakes.chart import wrong_and_right
from gpuexplore.features.tensors.analysis import StepRefused, evaluate
from gpuexplore.features.tensors.analysis.explain import words
from gpuexplore.features.tensors.chart import can_draw, tensor_picture
from gpuexplore.features.training.chart import losses
from gpuexplore.features.training.measure import joined
from gpuexplore.features.training.ui import query_of, show_findings
from gpuexplore.request import to_query
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import pages
from gpuexplore.ui.run.table import UNITS, shown_row
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

READERS: Mapping[str, str] = {"loop": "a loop in row order", "copy": "torch's copy"}
LAUNCH_WORDS = {"share": "elements outside whole blocks", "last_wave": "blocks in the last wave"}
FEW_TENSORS = 2  # more pictures would hide what is said after them
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


def _show_tensor(block: TensorBlock, *, expanded: bool = True) -> None:
    """Draw a tensor over its storage, with shape, strides and offset; or say why a step is refused.

    Args:
        expanded: whether the picture is seen at once.
    """
    try:
        chain = evaluate(block.expression)
    except StepRefused as error:
        st.markdown(f"`{block.expression}` is refused: {plain(str(error))}")
        return
    view = chain.result
    said = f"`{block.expression}`: shape {words(view.shape)}, strides {words(view.strides)}, offset {view.offset}"
    if not can_draw(view, chain.storage):
        st.markdown(said)
        return
    with st.expander(said, expanded=expanded):
        key = f"chart.tensor.{block.id or block.expression}"
        show_chart(lambda: tensor_picture(chain.steps[-1].text, view, chain.storage), (block.expression,), key=key)


def _show_read(block: TensorBlock, measured: Measured | None) -> None:
    """Show what reading a tensor took, contiguous and strided, and their ratio."""
    if not measured:
        return
    found: dict[str, list[str]] = {}
    for row in read_rows(block, measured):  # type: ignore[arg-type]  # a payload
        figure = next(iter(row.figures.values()))
        found.setdefault(row.labels["name"], []).append(
            format_with_interval(figure) if isinstance(figure, LessonFigure) else figure
        )
    lines = [f"| {READERS[way]} | {' | '.join(figures)} |" for way, figures in found.items()]
    st.markdown("\n".join(("| Read by | Contiguous | Strided | Ratio |", "| --- | ---: | ---: | ---: |", *lines)))


def _show_memory(block: MemoryBlock, _devices: Sequence[Device]) -> None:
    """Show the peak of a training step, when it is, the most of each kind, and what fits."""
    whole, *kinds = memory_rows(block)
    sizes = {row.labels["name"]: figure for row in kinds if isinstance(figure := row.figures["memory"], LessonFigure)}
    fits = f"; {_fits(block, whole.figures['batch'])}" if "batch" in whole.figures else ""
    listed = [
        f"{name} {format_figure(size)}" for name, size in sizes.items() if size.value and name not in ("peak", "usable")
    ]
    how = ", ".join((f"batch {block.batch:,}", block.dtype, block.optimizer, *block.options))
    peak = f"peak {_words(sizes['peak'])}, in {whole.figures['phase']}{fits}"
    st.markdown(f"**{plain(model_named(block.model).title)}**, {plain(f'{how}: {peak}')}")
    st.caption(f"At most: {', '.join(listed)}")


def memory_query(block: MemoryBlock) -> dict[str, str]:
    """Return the parameters of the page Memory with the same choices."""
    model = {"model": block.model} if block.model in models() else {"model": "widths", "widths": block.model}
    chosen = {"batch": str(block.batch), "dtype": block.dtype, "optimizer": block.optimizer}
    gpu = {"gpu": gpus_named([block.gpu])[0].key} if block.gpu else {}
    return model | chosen | options_of(block) | gpu


def _device_words(name: str) -> str:
    """Return what a reader calls a device that a lesson names: that of the table, else the name itself."""
    row = accelerator_named(name)
    return row.name if row else name


def _fits(block: MemoryBlock, largest: LessonFigure | str) -> str:
    where = _device_words(block.gpu)
    if isinstance(largest, LessonFigure) and largest.value < 1:
        return f"no batch fits on {where}"
    return f"the largest batch on {where} is {_words(largest)}"


def _words(figure: LessonFigure | str) -> str:
    return format_figure(figure) if isinstance(figure, LessonFigure) else figure


def show_figures(
    step: LessonStep,
    tasks: Sequence[StepTask],
    measured: Mapping[int, Measured],
    *,
    devices: Sequence[Device],
    key: str,
) -> None:
    """Show what a step knows, block by block, and the page on which each goes on."""
    for place, task in enumerate(tasks):
        block = task.block
        if isinstance(block, TensorBlock):  # its picture, and where it goes on, are below
            _show_read(block, measured.get(place))
            continue
        if isinstance(block, MistakeBlock):
            _show_mistake(measured.get(place), f"{key}.{place}.mistake")
        elif isinstance(block, TrainBlock):
            _show_training(measured.get(place), f"{key}.{place}.training")
        elif task.work is None:
            _show_rows(list(stand_ins(block, devices)), "No GPU is here: ", STAND_IN)
        else:
            _show_results(measured.get(place, ()), f"{key}.{place}")
        _open_in(block, devices, f"{key}.{place}.open")
    for place, block in enumerate(step.of(*COMPUTED)):
        if isinstance(block, TensorBlock):
            _show_tensor(block, expanded=len(step.of(TensorBlock)) <= FEW_TENSORS)
        else:
            SHOWN.get(type(block), _show_computed)(block, devices)
            for reading in readings([getattr(block, "gpu", "")]):
                st.caption(plain(reading))
        _open_in(block, devices, f"{key}.computed.{place}.open")


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


def _show_mistake(payload: Any, key: str) -> None:
    if not payload:
        return
    seen = decode(MistakeObservation, payload)
    st.markdown(f"**{plain(seen.what)}** · {seen.origin}")
    show_chart(lambda: wrong_and_right(seen), repr(seen), key=key)
    st.caption(plain(seen.detection.evidence))


def _show_training(payload: Any, key: str) -> None:
    report = joined([payload]) if payload else None
    if report is None:
        st.caption("Not trained here.")
        return
    show_chart(lambda: losses(report), repr(report), key=f"{key}.losses")
    show_findings(report, repr(report))


def _show_computed(block: Any, devices: Sequence[Device]) -> None:
    _show_rows(list(computed_rows(block, devices)), "")


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


def _show_claim(block: ClaimBlock, _devices: Sequence[Device]) -> None:
    for claim in claims_of(block.row):
        found = judge(claim)
        st.markdown(f"**{plain(claim.claim)}** · {found.verdict}")
        st.markdown("\n".join(f"- {plain(sentence)}" for sentence in found.evidence))


SHOWN: Mapping[type, Callable[[Any, Sequence[Device]], None]] = {
    ClaimBlock: _show_claim,
    LaunchBlock: _show_launch,
    MemoryBlock: _show_memory,
}


def _open_in(block: Any, devices: Sequence[Device], key: str) -> None:
    """Offer the page on which a reader goes on with the same, where its feature is installed."""
    name, query = PAGE_OF[type(block)]
    page = pages().get(name)
    if page and st.button(f"Open in {page.title}", key=key, icon=":material/open_in_new:", type="tertiary"):
        st.switch_page(page.file, query_params=query(block, devices))


PAGE_OF: Mapping[type, tuple[str, Query]] = {
    RunBlock: ("benchmark", lambda block, devices: to_query(request_of(block, devices[0].id))),
    MistakeBlock: ("timing-mistakes", lambda block, _: {"mistake": block.mistake}),
    TrainBlock: ("training", lambda block, _: query_of(arguments_of(block))),
    ClaimBlock: ("fact-check", lambda block, _: {"row": claims_of(block.row)[0].id}),
    PredictBlock: (
        "what-if",
        lambda block, _: {"op": block.operation, "shape": block.shape or block.size, "calls": block.calls},
    ),
    TensorBlock: ("tensors", lambda block, _: {"expression": block.expression}),
    MemoryBlock: ("memory", lambda block, _: memory_query(block)),
    LaunchBlock: ("kernels", lambda _block, _devices: {}),
}
