"""Everything a step knows: measured, computed, or in place of a device that is not here; and its rehearsal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.figure import (
    BANDWIDTH,
    PLAIN,
    RATE,
    TIME,
    Dimension,
    LessonFigure,
    QuantityRow,
    format_figure,
)
from gpuexplore.analysis.model import Context
from gpuexplore.analysis.prediction.request import PredictionRequest, predictions
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.estimate import check_limits, estimate
from gpuexplore.analysis.utilization.utilization import byte_count, flop_count
from gpuexplore.core import Device, Experiment, GpuExploreError, InvalidInput, NotFound, Origin, Result, require
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    MEASURED,
    OF_FEATURES,
    UNITS,
    Block,
    CheckBlock,
    GuessBlock,
    LaunchBlock,
    MistakeBlock,
    PredictBlock,
    Prose,
    RunBlock,
    SayBlock,
    TensorBlock,
    TrainBlock,
    feature_of,
    module_of,
)
from gpuexplore.features.lessons.lesson.expression import Expression, StepNames, Value, evaluate
from gpuexplore.features.lessons.lesson.format import LessonStep, expressions, located
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, with_guesses, with_outcome
from gpuexplore.features.lessons.lesson.quantities import (
    case_labels,
    facts_of,
    launch_row,
    prediction_row,
    result_row,
    work_figures,
)
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.request import Request, resolve, shapes_of
from gpuexplore.shapes import split

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
    return tuple(_task(block, devices) for block in step.of(*MEASURED, TensorBlock) if _is_measured(block))


def _is_measured(part: Any) -> bool:
    """Return whether a part of a step asks for a measurement."""
    return part.read if isinstance(part, TensorBlock) else isinstance(part, MEASURED)


def request_of(block: RunBlock, device_id: str) -> Request:
    """Return the request of a block, on one device."""
    given = {"sizes": block.size, "shapes": block.shape, "implementations": block.impl, "cache": block.cache}
    options = {"data": block.data, "threads": block.threads} | ({"budget": block.budget} if block.budget else {})
    return Request(operation=block.operation, dtypes=block.dtype, devices=device_id, **given, **options)


def _device_of(block: RunBlock, devices: Sequence[Device]) -> Device | None:
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
    device = _device_of(block, devices)
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
    if isinstance(block, LaunchBlock):
        return [launch_row(block, devices)]
    if isinstance(block, PredictBlock):
        case = (block.operation, block.gpu, block.size, block.shape, block.dtype)
        question = PredictionRequest(*case, implementation=block.impl, calls=block.calls)
        return _predicted(question, tuple(devices), block.gpu, block.id)
    module = module_of(block, "lesson_block")
    return list(module.rows(block)) if module else [QuantityRow({"of": block.id}, {}, NOT_INSTALLED)]


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
        fits = case.operation == operation.name and case.shape in shapes and case.dtype in dtypes
        is_of_gpu = bool(result.environment and result.environment.device.kind == "cuda" and result.measurement)
        if fits and is_of_gpu and case.implementation in names and (first or recording.name) == recording.name:
            first = recording.name
            yield result


# A check of every expression of a step on made-up figures, before anything is measured.

RESULT_FIGURES: Mapping[str, Dimension] = {
    "time": TIME,
    "mean_time": TIME,
    "min_time": TIME,
    "first_call": TIME,
    "samples": PLAIN,
    "precision": PLAIN,
    "rate": RATE,
    "bandwidth": BANDWIDTH,
    "peak": RATE,
    "peak_bandwidth": BANDWIDTH,
    "mfu": PLAIN,
    "speedup": PLAIN,
    "error": PLAIN,
}


def rehearse(step: LessonStep, devices: Sequence[Device], file: str) -> int:
    """Try every expression of `step`, unless it needs a feature that is not installed; return how many checks it has.

    Raises:
        InvalidInput: one of them names what the step does not measure or compute, or mixes units; with file and line.
    """
    if not all(map(feature_of, step.of(*OF_FEATURES))):
        return len(step.of(CheckBlock))
    rows: list[QuantityRow] = []
    for line, part in step.parts:
        with located(f"{file}, line {line}"):
            rows += _rehearsed_rows(part, devices)
    names = StepNames(tuple(rows), facts_of(devices))
    check: CheckBlock | None = None
    for line, part in step.parts:
        check = part if isinstance(part, CheckBlock) else check
        with located(f"{file}, line {line}"):
            for expression in expressions(part, tuple(step.guesses)):
                _rehearse(expression, part, partial(_known, step, names, check), step.guesses)
    with located(f"{file}, step {step.letter}"):
        tasks_of(step, devices)
    return len(step.of(CheckBlock))


def _known(step: LessonStep, names: StepNames, check: CheckBlock | None) -> StepNames:
    answers = {name: guess.choices[0] if guess.choices else "1" for name, guess in step.guesses.items()}
    return with_outcome(with_guesses(step, answers, names, check) if check else names, GuessOutcome.RIGHT)


def _rehearse(
    expression: Expression, part: Prose | Block, known: Callable[[], StepNames], guesses: Mapping[str, GuessBlock]
) -> None:
    """Raise what is wrong with an expression: a name that is unknown, or a value that is no condition or no answer."""
    try:
        value = _value(expression, part, known())
    except NotFound as error:
        if isinstance(part, SayBlock) and not known().rows:
            return
        accepted = "what the step measures or computes"
        raise InvalidInput(f"{expression.text!r}: {error}; expected {accepted}") from error
    except GpuExploreError as error:
        raise InvalidInput(f"{expression.text!r}: {error}") from error
    if not isinstance(value, LessonFigure | str):
        return
    conditions: list[str] = [part.when] if isinstance(part, SayBlock) else []
    if isinstance(part, CheckBlock):
        conditions = [*part.choice.values(), part.reach]
    require(expression.text not in map(str.strip, conditions), "condition", expression.text, "what is true or false")
    if isinstance(part, CheckBlock) and isinstance(value, LessonFigure):
        unit = guesses[part.guess].unit
        if value.dimension != UNITS[unit].dimension:
            text = part.exact or part.near
            unit = unit or "a number without unit"
            accepted = f"what is in the unit of the guess ({unit}): numbers get theirs from s, B and FLOP"
            raise InvalidInput(f"{text!r} comes out as {format_figure(value)}; expected {accepted}")


def _value(expression: Expression, part: Prose | Block, names: StepNames) -> Value:
    if isinstance(part, CheckBlock) and part.reach:  # it is about any run of the reader's
        labels = {key: value for _, selectors in expression.quantities() for key, value in selectors.items()}
        names = StepNames((QuantityRow(labels, _figures(1, 1)),), names.facts)
    return evaluate(expression, names)


def _rehearsed_rows(part: Prose | Block, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    if isinstance(part, RunBlock):
        yield from _run_rows(part, devices)
    elif isinstance(part, PredictBlock):
        own = part.gpu in {device.id.rpartition("/")[2] for device in devices}
        for row in computed_rows(part, devices):  # a device of this machine whose peaks were never measured
            yield replace(row, figures={**row.figures, **_figures(1, 1)}, missing="") if own and row.missing else row
    elif isinstance(part, COMPUTED):
        yield from computed_rows(part, devices)
    if _is_measured(part) and (module := module_of(part, "lesson_block")):
        yield from module.rehearsed_rows(part)


def _run_rows(block: RunBlock, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    device = _device_of(block, devices)
    device_id = device.id if device else "cuda:0"
    for case in resolve(request_of(block, device_id), [*(known.id for known in devices), device_id]).cases():
        yield QuantityRow(
            case_labels(case, Origin.LIVE, block.device, block.id), _figures(flop_count(case), byte_count(case))
        )


def _figures(flop_count: int, byte_count: int) -> Mapping[str, LessonFigure | str]:
    measured = {name: LessonFigure(1.0, 0.9, 1.1, dimension) for name, dimension in RESULT_FIGURES.items()}
    return {**work_figures(flop_count, byte_count), **measured, "bound": "memory", "support": "native"}
