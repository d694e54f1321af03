"""A check of every expression of a step on made-up figures, before anything is measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from gpuexplore.analysis.figure import (
    BANDWIDTH,
    INTENSITY,
    PLAIN,
    RATE,
    SIZE,
    TIME,
    WORK,
    Dimension,
    LessonFigure,
    QuantityRow,
    format_figure,
)
from gpuexplore.analysis.utilization.utilization import byte_count, flop_count
from gpuexplore.core.errors import GpuExploreError, InvalidInput, NotFound
from gpuexplore.core.model import Device, Origin
from gpuexplore.features.lessons.lesson.blocks import (
    COMPUTED,
    OF_FEATURES,
    Block,
    CheckBlock,
    PredictBlock,
    Prose,
    RunBlock,
    SayBlock,
    feature_of,
    is_measured,
    module_of,
)
from gpuexplore.features.lessons.lesson.evidence import computed_rows, device_of, request_of, tasks_of
from gpuexplore.features.lessons.lesson.expression import Expression, StepNames, Value, evaluate
from gpuexplore.features.lessons.lesson.format import LessonStep, expressions
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, with_guesses, with_outcome
from gpuexplore.features.lessons.lesson.quantities import case_labels, facts_of, work_figures
from gpuexplore.request import resolve

# What a result that was measured has.
MEASURED: Mapping[str, Dimension] = {
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
# Of the units of guesses; all others are of plain numbers.
DIMENSIONS: Mapping[str, Dimension] = {
    **dict.fromkeys(("ns", "µs", "us", "ms", "s"), TIME),
    **dict.fromkeys(("FLOP", "MFLOP", "GFLOP", "TFLOP"), WORK),
    **dict.fromkeys(("FLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"), RATE),
    **dict.fromkeys(("B", "bytes", "kB", "MB", "GB"), SIZE),
    **dict.fromkeys(("MB/s", "GB/s", "TB/s"), BANDWIDTH),
    "FLOP/byte": INTENSITY,
    "samples/s": PLAIN.times(TIME, -1),
}


def rehearse(step: LessonStep, devices: Sequence[Device], file: str) -> int:
    """Try every expression of `step`, unless it needs a feature that is not installed; return how many checks it has.

    Raises:
        InvalidInput: one of them names what the step does not measure or compute, or mixes units; with file and line.
    """
    if not all(map(feature_of, step.of(*OF_FEATURES))):
        return len(step.of(CheckBlock))
    names = StepNames(tuple(_rows(step, devices, file)), facts_of(devices))
    check: CheckBlock | None = None
    for line, part in step.parts:
        check = part if isinstance(part, CheckBlock) else check
        for expression in expressions(part, tuple(step.guesses)):
            where = f"{file}, line {line}"
            value = _try(expression, part, partial(_known, step, names, check), where)
            if expression.text in _conditions(part) and isinstance(value, LessonFigure | str):
                raise InvalidInput.of(f"{where}: condition", expression.text, "what is true or false")
            if isinstance(part, CheckBlock) and isinstance(value, LessonFigure):
                guess = step.guesses[part.guess]
                if value.dimension != DIMENSIONS.get(guess.unit, PLAIN):
                    text = part.exact or part.near
                    unit = guess.unit or "a number without unit"
                    accepted = f"what is in the unit of the guess ({unit}): numbers get theirs from s, B and FLOP"
                    raise InvalidInput(f"{where}: {text!r} comes out as {format_figure(value)}; expected {accepted}")
    with _located(f"{file}, step {step.letter}"):
        tasks_of(step, devices)
    return len(step.of(CheckBlock))


def _conditions(part: Prose | Block) -> tuple[str, ...]:
    """Return the texts of a part that have to be true or false."""
    if isinstance(part, CheckBlock):
        found = (*part.choice.values(), part.reach)
    else:
        found = (part.when,) if isinstance(part, SayBlock) else ()
    return tuple(text.strip() for text in found)


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Say where a lesson is wrong."""
    try:
        yield
    except GpuExploreError as error:
        raise InvalidInput(f"{where}: {error}") from error


def _known(step: LessonStep, names: StepNames, check: CheckBlock | None) -> StepNames:
    answers = {name: guess.choices[0] if guess.choices else "1" for name, guess in step.guesses.items()}
    known = with_guesses(step, answers, names, check) if check else names
    return with_outcome(known, GuessOutcome.RIGHT)


def _try(expression: Expression, part: Prose | Block, known: Callable[[], StepNames], where: str) -> Value:
    try:
        names = known()
        if isinstance(part, CheckBlock) and part.reach:
            labels = {key: value for _, selectors in expression.quantities() for key, value in selectors.items()}
            return evaluate(expression, StepNames((QuantityRow(labels, _figures(1, 1)),), names.facts))
        return evaluate(expression, names)
    except NotFound as error:
        if isinstance(part, SayBlock) and not known().rows:
            return None
        accepted = "what the step measures or computes"
        raise InvalidInput(f"{where}: {expression.text!r}: {error}; expected {accepted}") from error
    except GpuExploreError as error:
        raise InvalidInput(f"{where}: {expression.text!r}: {error}") from error


def _rows(step: LessonStep, devices: Sequence[Device], file: str) -> Iterator[QuantityRow]:
    for line, part in step.parts:
        with _located(f"{file}, line {line}"):
            yield from tuple(_rows_of(part, devices))


def _rows_of(part: Prose | Block, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    if isinstance(part, RunBlock):
        yield from _run_rows(part, devices)
    elif isinstance(part, PredictBlock):
        yield from _predicted_rows(part, devices)
    elif isinstance(part, COMPUTED):
        yield from computed_rows(part, devices)
    if is_measured(part) and (module := module_of(part, "lesson_block")):
        yield from module.rehearsed_rows(part)


def _predicted_rows(block: PredictBlock, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    """Yield predictions; for a device of this machine whose peaks were never measured, with made-up figures."""
    own = block.gpu in {device.id.rpartition("/")[2] for device in devices}
    for row in computed_rows(block, devices):
        yield replace(row, figures={**row.figures, **_figures(1, 1)}, missing="") if own and row.missing else row


def _run_rows(block: RunBlock, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    device = device_of(block, devices)
    device_id = device.id if device else "cuda:0"
    for case in resolve(request_of(block, device_id), [*(known.id for known in devices), device_id]).cases():
        yield QuantityRow(
            case_labels(case, Origin.LIVE, block.device, block.id), _figures(flop_count(case), byte_count(case))
        )


def _figures(flop_count: int, byte_count: int) -> Mapping[str, LessonFigure | str]:
    measured = {name: LessonFigure(1.0, 0.9, 1.1, dimension) for name, dimension in MEASURED.items()}
    return {**work_figures(flop_count, byte_count), **measured, "bound": "memory", "support": "native"}
