"""Everything a step knows: what was measured for it, what stands for a device that is not here, what is computed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.model import Context
from gpuexplore.analysis.prediction.request import PredictionRequest, predictions
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Experiment, Origin, Result
from gpuexplore.core.serialization import decode
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    MEASURED,
    ClaimBlock,
    LaunchBlock,
    MemoryBlock,
    MistakeBlock,
    PredictBlock,
    RunBlock,
    TensorBlock,
    TrainBlock,
)
from gpuexplore.features.lessons.lesson.expression import QuantityRow, StepNames
from gpuexplore.features.lessons.lesson.figure import BANDWIDTH, PLAIN, RATE, TIME, Dimension, LessonFigure, Style
from gpuexplore.features.lessons.lesson.format import LessonStep
from gpuexplore.features.lessons.lesson.memory_block import memory_rows
from gpuexplore.features.lessons.lesson.quantities import claim_rows, facts_of, launch_row, prediction_row, result_row
from gpuexplore.features.lessons.lesson.tensor_block import read_of, read_rows, tensor_rows
from gpuexplore.features.lessons.lesson.training import training_of, training_rows, untrained_row
from gpuexplore.features.mistakes.catalog import EXPECTED_S, activity_of
from gpuexplore.features.mistakes.catalog.contract import MistakeObservation, Quantity
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.request import Request, resolve, shapes_of
from gpuexplore.shapes import split

# What a step measures: experiments and activities for the queue; everything else is computed at once.


GPU = "gpu"  # what a lesson calls the first GPU there is, here or in a recording
Work = Experiment | Activity


@dataclass(frozen=True, slots=True)
class StepTask:
    """One piece of work of a step.

    Attributes:
        block: that asks for it.
        work: None where no device here can do it: then others' results stand for it.
        seconds: it will take about.
    """

    block: RunBlock | MistakeBlock | TensorBlock | TrainBlock
    work: Work | None
    seconds: float = 0.0


def tasks_of(step: LessonStep, devices: Sequence[Device]) -> tuple[StepTask, ...]:
    """Return what a step measures on a machine with `devices`.

    Raises:
        InvalidInput: a block asks for what cannot be measured; says what is accepted.
    """
    asked = [block for block in step.of(*MEASURED, TensorBlock) if not isinstance(block, TensorBlock) or block.read]
    return tuple(_task(block, devices) for block in asked)


def request_of(block: RunBlock, device_id: str) -> Request:
    """Return the request of a block, on one device."""
    given = {"sizes": block.size, "shapes": block.shape, "implementations": block.impl, "cache": block.cache}
    options = {"data": block.data, "threads": block.threads} | ({"budget": block.budget} if block.budget else {})
    return Request(operation=block.operation, dtypes=block.dtype, devices=device_id, **given, **options)


def device_of(block: RunBlock, devices: Sequence[Device]) -> Device | None:
    """Return the device that a block means; None for a GPU where there is none.

    Raises:
        InvalidInput: the block names another one.
    """
    if block.device == GPU:
        return next((device for device in devices if device.kind == "cuda"), None)
    for device in devices:
        if device.id.rpartition("/")[2] == block.device:
            return device
    raise InvalidInput.of("device", block.device, (*(device.id for device in devices), GPU))


def _task(block: RunBlock | MistakeBlock | TensorBlock | TrainBlock, devices: Sequence[Device]) -> StepTask:
    if isinstance(block, TrainBlock):
        work = training_of(block, devices)
        return StepTask(block, work, work.expected_s if work else 0.0)
    if isinstance(block, MistakeBlock):
        return StepTask(block, activity_of(block.mistake), EXPECTED_S)
    if isinstance(block, TensorBlock):
        asked = read_of(block, devices[0].id)
        return StepTask(block, asked, asked.expected_s)
    device = device_of(block, devices)
    if device is None:
        return StepTask(block, None)
    experiment = resolve(request_of(block, device.id), [device.id for device in devices])
    check_limits(experiment, [device])
    return StepTask(block, experiment, estimate(experiment, [device]).seconds)


STAND_IN = "T4"  # the GPU of the notebooks, predicted where there is neither one nor a recording
Measured = Sequence[Result] | Payload
# What a lesson calls the quantities of a mistake.
QUANTITY_OF: Mapping[Quantity, tuple[str, Dimension]] = {
    "time": ("time", TIME),
    "compute rate": ("rate", RATE),
    "memory rate": ("bandwidth", BANDWIDTH),
    "share": ("share", PLAIN),
    "error": ("error", PLAIN),
    "count": ("figure", PLAIN),
    "ratio": ("figure", PLAIN),
    "sum": ("figure", PLAIN),
}


def names_of(
    step: LessonStep, devices: Sequence[Device], measured: Mapping[int, Measured], tasks: Sequence[StepTask]
) -> StepNames:
    """Return the quantities of a step.

    Args:
        step: of a lesson.
        devices: of this machine.
        measured: what came of each of `tasks`, by its index; what is not there has not been measured.
        tasks: `work.tasks_of` the step.

    Raises:
        InvalidInput: a block that is computed asks for what does not exist.
    """
    rows: list[QuantityRow] = []
    for index, task in enumerate(tasks):
        rows += _rows_of_task(task, measured.get(index), devices)
    for block in step.of(*COMPUTED):
        rows += computed_rows(block, devices)
    return StepNames(tuple(rows), facts_of(devices))


def computed_rows(block: Any, devices: Sequence[Device]) -> Iterable[QuantityRow]:
    """Return the quantities of a block that needs no device: one of `blocks.COMPUTED`."""
    return OF_COMPUTED[type(block)](block, devices)


def _predicted_rows(block: PredictBlock, devices: Sequence[Device]) -> Iterable[QuantityRow]:
    question = PredictionRequest(
        block.operation, block.gpu, block.size, block.shape, block.dtype, implementation=block.impl, calls=block.calls
    )
    return _predicted(question, tuple(devices), block.gpu, block.id)


@lru_cache(maxsize=500)
def _predicted(
    question: PredictionRequest, devices: tuple[Device, ...], device: str, of: str
) -> tuple[QuantityRow, ...]:
    return tuple(prediction_row(prediction, device, of) for prediction in predictions(question, devices))


def _rows_of_task(task: StepTask, measured: Measured | None, devices: Sequence[Device]) -> Iterable[QuantityRow]:
    if task.work is None:
        return OF_UNMEASURABLE[type(task.block)](task.block, devices)
    return OF_MEASURED[type(task.block)](task.block, measured) if measured else ()


def _result_rows(block: RunBlock, results: Sequence[Result]) -> Iterable[QuantityRow]:
    return [result_row(analyzed, block.device, block.id) for analyzed in analyze(results).results]


def _mistake_rows(block: MistakeBlock, payload: Payload) -> Iterator[QuantityRow]:
    """Yield the wrong and the right figure of a mistake, and their ratio, which was taken round by round."""
    seen = decode(MistakeObservation, payload)
    name, dimension = QUANTITY_OF[seen.quantity]
    style: Style = "percent" if seen.quantity == "share" else "number"
    sources = frozenset({seen.origin})
    for source, reading in (("wrong", seen.wrong), ("right", seen.right)):
        if reading.value is not None:
            low, high = reading.ci95 or (reading.value, reading.value)
            figure: LessonFigure | str = LessonFigure(reading.value, low, high, dimension, style, sources)
        else:
            figure = seen.words(reading)
        yield QuantityRow({"of": block.id, "source": source}, {name: figure})
    if seen.factor:
        low, high = seen.factor.ci95 or (seen.factor.ratio, seen.factor.ratio)
        yield QuantityRow(
            {"of": block.id, "source": "factor"},
            {"figure": LessonFigure(seen.factor.ratio, low, high, sources=sources)},
        )


def stand_ins(block: RunBlock, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    """Yield what is known of a GPU where there is none: recorded results of these cases, else predictions."""
    recorded = list(_recorded(block))
    if recorded:
        context = Context(origin=Origin.RECORDED)
        found = analyze(recorded, context=context).results
        yield from (result_row(analyzed, block.device, block.id) for analyzed in found)
        return
    vendor = operation_named(block.operation).vendor_library.name
    for name in split(block.impl) or (vendor,):
        question = PredictionRequest(block.operation, STAND_IN, block.size, block.shape, block.dtype, name)
        yield from _predicted(question, tuple(devices), block.device, block.id)


def _recorded(block: RunBlock) -> Iterator[Result]:
    """Yield recorded results of the cases a block asks for, all of one recording."""
    operation = operation_named(block.operation)
    shapes = set(shapes_of(Request(operation.name, sizes=block.size, shapes=block.shape), operation))
    dtypes, names = split(block.dtype), split(block.impl)
    first = None
    for recording, result in recorded_results():
        case = result.case
        fits = case.operation == operation.name and case.shape in shapes and case.dtype in dtypes and _is_of_gpu(result)
        if fits and case.implementation in names and (first or recording.name) == recording.name:
            first = recording.name
            yield result


def _is_of_gpu(result: Result) -> bool:
    device = result.environment.device if result.environment else None
    return device is not None and device.kind == "cuda" and result.measurement is not None


Rows = Callable[[Any, Any], Iterable[QuantityRow]]
OF_MEASURED: Mapping[type, Rows] = {
    RunBlock: _result_rows,
    MistakeBlock: _mistake_rows,
    TrainBlock: training_rows,
    TensorBlock: read_rows,
}
OF_UNMEASURABLE: Mapping[type, Rows] = {  # on the devices of this machine
    RunBlock: stand_ins,
    TrainBlock: lambda block, devices: [untrained_row(block, devices)],
}
OF_COMPUTED: Mapping[type, Rows] = {
    PredictBlock: _predicted_rows,
    LaunchBlock: lambda block, devices: [launch_row(block, devices)],
    TensorBlock: lambda block, _: tensor_rows(block),
    MemoryBlock: lambda block, _: memory_rows(block),
    ClaimBlock: lambda block, _: claim_rows(block),
}
