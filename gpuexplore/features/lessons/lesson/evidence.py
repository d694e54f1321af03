"""Everything a step knows: what was measured for it, what stands for a device that is not here, what is computed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.figure import QuantityRow
from gpuexplore.analysis.model import Context
from gpuexplore.analysis.prediction.request import PredictionRequest, predictions
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Experiment, Origin, Result
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    MEASURED,
    LaunchBlock,
    MistakeBlock,
    PredictBlock,
    RunBlock,
    TensorBlock,
    TrainBlock,
    is_measured,
    module_of,
)
from gpuexplore.features.lessons.lesson.expression import StepNames
from gpuexplore.features.lessons.lesson.format import LessonStep
from gpuexplore.features.lessons.lesson.quantities import facts_of, launch_row, prediction_row, result_row
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
    return tuple(_task(block, devices) for block in step.of(*MEASURED, TensorBlock) if is_measured(block))


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
    if not isinstance(block, RunBlock):
        module = module_of(block, "lesson_block")
        work = module.activity(block, devices) if module else None
        return StepTask(block, work, work.expected_s if work else 0.0)
    device = device_of(block, devices)
    if device is None:
        return StepTask(block, None)
    experiment = resolve(request_of(block, device.id), [device.id for device in devices])
    check_limits(experiment, [device])
    return StepTask(block, experiment, estimate(experiment, [device]).seconds)


NOT_INSTALLED = "the feature that this needs is not installed here"
STAND_IN = "T4"  # the GPU of the notebooks, predicted where there is neither one nor a recording
Measured = Sequence[Result] | Payload


def names_of(
    step: LessonStep, devices: Sequence[Device], measured: Mapping[int, Measured], tasks: Sequence[StepTask]
) -> StepNames:
    """Return the quantities of a step.

    Args:
        step: of a lesson.
        devices: of this machine.
        measured: what came of each of `tasks`, by its index; what is not there has not been measured.
        tasks: `tasks_of` the step.

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
    if type(block) in OF_COMPUTED:
        return OF_COMPUTED[type(block)](block, devices)
    module = module_of(block, "lesson_block")
    return list(module.rows(block)) if module else [QuantityRow({"of": block.id}, {}, NOT_INSTALLED)]


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
    block = task.block
    if isinstance(block, RunBlock):
        if task.work is None:
            return stand_ins(block, devices)
        results: Any = measured or ()
        return (
            [result_row(analyzed, block.device, block.id) for analyzed in analyze(results).results] if results else ()
        )
    module = module_of(block, "lesson_block")
    if module is None:
        return [QuantityRow({"of": block.id}, {}, NOT_INSTALLED)]
    if task.work is None:
        return list(module.unmeasured_rows(block, devices))
    return list(module.measured_rows(block, measured)) if measured else ()


def stand_ins(block: RunBlock, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    """Yield what is known of a GPU where there is none: recorded results of these cases, else predictions."""
    recorded = list(_recorded(block))
    if recorded:
        found = analyze(recorded, context=Context(origin=Origin.RECORDED)).results
        yield from (result_row(analyzed, block.device, block.id) for analyzed in found)
        return
    for name in split(block.impl) or (operation_named(block.operation).vendor_library.name,):
        question = PredictionRequest(block.operation, STAND_IN, block.size, block.shape, block.dtype, name)
        yield from _predicted(question, tuple(devices), block.device, block.id)


def _recorded(block: RunBlock) -> Iterator[Result]:
    """Yield recorded results of the cases a block asks for, all of one recording."""
    operation = operation_named(block.operation)
    shapes = set(shapes_of(Request(operation.name, sizes=block.size, shapes=block.shape), operation))
    dtypes = split(block.dtype)
    names = split(block.impl)
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
OF_COMPUTED: Mapping[type, Rows] = {
    PredictBlock: _predicted_rows,
    LaunchBlock: lambda block, devices: [launch_row(block, devices)],
}
