"""A step with everything known: its checks judged, and what is said after each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuexplore.features.lessons.lesson.blocks import Check, Say
from gpuexplore.features.lessons.lesson.format import Step
from gpuexplore.features.lessons.lesson.outcome import Judged, judge, say_after, with_guesses, with_outcome
from gpuexplore.features.lessons.lesson.quantities import Row, StepNames

Answers = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """A check with its outcome, and what is said after it.

    Attributes:
        say: the block that says it; None where none of them holds.
        said: its text, with the figures.
    """

    check: Check
    judged: Judged
    say: Say | None
    said: str


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A step after its experiment.

    Attributes:
        names: the quantities that its texts may name.
        checks: in their order.
    """

    step: Step
    names: StepNames
    checks: tuple[JudgedCheck, ...]


def judged_by(step: Step, names: StepNames, answers: Answers, own: Sequence[Row] = ()) -> JudgedStep:
    """Return the checks of a step judged by `names`.

    Args:
        step: of a lesson.
        names: `evidence.names_of` the step.
        answers: the reader's guesses by id; None for no idea.
        own: the reader's own results, which a task may be reached with.
    """
    every = StepNames((*names.rows, *own), names.facts)
    return JudgedStep(
        step, names, tuple(_judged(check, step, every if check.reach else names, answers) for check in step.of(Check))
    )


def _judged(check: Check, step: Step, known: StepNames, answers: Answers) -> JudgedCheck:
    judged = judge(check, step, answers, known)
    told = with_outcome(with_guesses(step, answers, known, check), judged)
    say = say_after(check, step, told)
    return JudgedCheck(check, judged, say, say.text.said(told) if say else "")
