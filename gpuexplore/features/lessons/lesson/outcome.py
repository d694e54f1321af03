"""The verdict on a guess: one rule a check, judged by what was measured, never by a device's name; and what is said."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from gpuexplore.analysis.figure import (
    LARGEST,
    PLAIN,
    Dimension,
    LessonFigure,
    QuantityRow,
    Undefined,
    exact,
    format_with_interval,
)
from gpuexplore.core import InvalidInput, NotFound, Origin, check_known, read_number
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, NO_IDEA, UNITS, CheckBlock, GuessBlock, SayBlock
from gpuexplore.features.lessons.lesson.expression import StepNames, Value, evaluate, figure_of, parse
from gpuexplore.features.lessons.lesson.format import LessonStep

LONGEST = 60
Answers = Mapping[str, str | None]  # guesses by id, as `read_guess` gave them; None for no idea
Given = float | str | None  # a guessed number in SI units, or a choice; None for none
UNKNOWN = (NotFound, Undefined)  # what it is made of was not measured, or came out so that it has no value


class GuessOutcome(StrEnum):
    """The outcome of a guess."""

    RIGHT = "right"
    CLOSE = "close"
    OFF = "off"
    UNCLEAR = "unclear"
    NOT_MEASURED = "not measured"
    NO_GUESS = "no guess"

    @property
    def identifier(self) -> str:
        """Its name in the expressions of a lesson."""
        return self.value.replace(" ", "_")


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """A check with what became of the guess, and what is said after it.

    Attributes:
        truth: the figure or the option that is right; None where it is not known.
        why: what keeps it from being judged, where something does.
        say: the block that says it; None where no condition is true.
        said: its text, with the figures.
    """

    check: CheckBlock
    outcome: GuessOutcome
    truth: LessonFigure | str | None = None
    why: str = ""
    say: SayBlock | None = None
    said: str = ""

    @property
    def answer(self) -> str:
        """The right answer, for a reader; empty where there is none."""
        return format_with_interval(self.truth) if isinstance(self.truth, LessonFigure) else self.truth or ""


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """A step after its experiment.

    Attributes:
        names: the quantities that its texts may name.
        checks: in their order.
    """

    step: LessonStep
    names: StepNames
    checks: tuple[JudgedCheck, ...]


def judged_by(step: LessonStep, names: StepNames, answers: Answers, own: Sequence[QuantityRow] = ()) -> JudgedStep:
    """Return the checks of a step judged by `names`, each with what is said after it.

    Args:
        step: of a lesson.
        names: `evidence.names_of` the step.
        answers: the reader's guesses by id; None for no idea.
        own: the reader's own results, which a task may be reached with.
    """
    every = StepNames((*names.rows, *own), names.facts)
    return JudgedStep(
        step,
        names,
        tuple(_judged_check(check, step, every if check.reach else names, answers) for check in step.of(CheckBlock)),
    )


def _judged_check(check: CheckBlock, step: LessonStep, known: StepNames, answers: Answers) -> JudgedCheck:
    judged = _judge(check, step, answers, known)
    with_result = with_outcome(with_guesses(step, answers, known, check), judged.outcome, judged.why)
    say = next(
        (say for say in _says_of(step, check) if _applies(say, step, with_result) and say.text.is_known(with_result)),
        None,
    )
    return replace(judged, say=say, said=say.text.said(with_result) if say else "")


def read_guess(guess: GuessBlock, typed: str) -> str | None:
    """Return what was typed as a guess, in one form; None for no idea.

    Raises:
        InvalidInput: it is no number above 0, or none of the choices; says what is accepted.
    """
    text = typed.strip()
    if text in ("", NO_IDEA):
        return None
    if guess.choices:
        options = (*guess.choices, CANNOT_TELL, NO_IDEA)
        check_known("guess", text, options)
        return text
    without_thousands = re.sub(r",(?=\d{3}(?!\d))", "", text)  # and no decimal comma: 12,5 is not 125
    largest = LARGEST / max(unit.value for unit in UNITS.values())  # expressions can compute with it in every unit
    number = read_number(without_thousands) if len(text) <= LONGEST else None
    if number is None or not 0 <= number <= largest:
        unit = f" in {guess.unit}" if guess.unit else ""
        raise InvalidInput.of(
            "guess", text[:LONGEST], f"numbers from 0 to {largest:.0e}{unit}, like 2.5 or 1e6, or {NO_IDEA!r}"
        )
    return f"{number:.12g}"


def _judge(check: CheckBlock, step: LessonStep, answers: Answers, names: StepNames) -> JudgedCheck:
    """Return what becomes of the guess of `check`.

    Args:
        answers: by the guess's id, as `read_guess` gave them.
        names: what was measured.
    """
    given = _given(step.guesses.get(check.guess), answers.get(check.guess))
    try:
        for rule, judge_by in RULES.items():
            if getattr(check, rule):
                return judge_by(check, given, names)
        raise InvalidInput.of("check", "no rule", RULES)
    except UNKNOWN as error:
        return JudgedCheck(check, GuessOutcome.NOT_MEASURED, why=str(error))


def _says_of(step: LessonStep, check: CheckBlock) -> tuple[SayBlock, ...]:
    """Return what may be said after a check: the blocks `say` up to the next check."""
    parts = step.of(CheckBlock, SayBlock)
    behind = parts[parts.index(check) + 1 :]
    until = next((position for position, part in enumerate(behind) if isinstance(part, CheckBlock)), len(behind))
    return tuple(part for part in behind[:until] if isinstance(part, SayBlock))


def with_guesses(step: LessonStep, answers: Answers, names: StepNames, check: CheckBlock) -> StepNames:
    """Return `names` with the guesses of a step, each in the unit of what it is compared with."""
    values: dict[str, Value] = {}
    for name, guess in step.guesses.items():
        given = _given(guess, answers.get(name))
        if given is not None and given != CANNOT_TELL:
            values[name] = given if isinstance(given, str) else exact(given, _dimension_of(check, names))
    return StepNames(names.rows, names.facts, {**names.answers, **values})


def with_outcome(names: StepNames, found: GuessOutcome, why: str = "") -> StepNames:
    """Return `names` with the outcome of a check, by which `say` chooses; doubts are `unclear` unguessed too."""
    outcomes = {outcome.identifier: outcome is found for outcome in GuessOutcome}
    if found is GuessOutcome.NO_GUESS and why:
        outcomes[GuessOutcome.UNCLEAR.identifier] = True
    return StepNames(names.rows, names.facts, {**names.answers, **outcomes})


def _applies(say: SayBlock, step: LessonStep, names: StepNames) -> bool:
    if not say.when:
        return True
    try:
        return evaluate(parse(say.when, tuple(step.guesses)), names) is True
    except UNKNOWN:
        return False


def _given(guess: GuessBlock | None, answer: str | None) -> Given:
    if guess is None or guess.choices or answer is None:
        return answer
    return float(answer or 0) * UNITS[guess.unit].value


def _by_exact(check: CheckBlock, given: Given, names: StepNames) -> JudgedCheck:
    truth = figure_of(parse(check.exact), names)
    if not isinstance(given, float):
        return JudgedCheck(check, GuessOutcome.NO_GUESS, truth)
    whole = truth.value == int(truth.value) and abs(truth.value) <= 1000  # such a number is exact or it is not
    if given == truth.value or (not whole and math.isclose(given, truth.value, rel_tol=0.005)):  # of three digits
        return JudgedCheck(check, GuessOutcome.RIGHT, truth)
    return JudgedCheck(check, GuessOutcome.CLOSE if _within(given, truth, check.close) else GuessOutcome.OFF, truth)


def _by_near(check: CheckBlock, given: Given, names: StepNames) -> JudgedCheck:
    truth = figure_of(parse(check.near), names)
    why = _doubt(truth)
    if check.points:
        right = partial(_within_distance, distance=check.points / 100)
        close = partial(_within_distance, distance=2 * check.points / 100)
    else:
        right = partial(_within, factor=check.right)
        close = partial(_within, factor=check.close)
    if not isinstance(given, float):
        return JudgedCheck(check, GuessOutcome.NO_GUESS, truth, why)
    nearest = replace(truth, value=min(max(given, truth.low), truth.high))
    if why and (truth.doubts or close(given, nearest)):  # what lies far outside is off, wherever the truth is inside
        return JudgedCheck(check, GuessOutcome.UNCLEAR, truth, why)
    if right(given, truth):
        return JudgedCheck(check, GuessOutcome.RIGHT, truth)
    return JudgedCheck(check, GuessOutcome.CLOSE if close(given, truth) else GuessOutcome.OFF, truth)


def _by_option(check: CheckBlock, given: Given, _names: StepNames) -> JudgedCheck:
    if given is None:
        return JudgedCheck(check, GuessOutcome.NO_GUESS, check.option)
    return JudgedCheck(check, GuessOutcome.RIGHT if given == check.option else GuessOutcome.OFF, check.option)


def _by_choice(check: CheckBlock, given: Given, names: StepNames) -> JudgedCheck:
    values = {option: evaluate(parse(text), names) for option, text in check.choice.items()}
    truth = next((option for option, value in values.items() if value is True), None)
    doubts = frozenset().union(*(_doubts(text, names) for text in check.choice.values()))
    if given is None:
        return JudgedCheck(check, GuessOutcome.NO_GUESS, truth or CANNOT_TELL, _flagged(doubts))
    if truth is None and given == CANNOT_TELL:
        return JudgedCheck(check, GuessOutcome.RIGHT, CANNOT_TELL)
    if truth is None or doubts:
        return JudgedCheck(
            check, GuessOutcome.UNCLEAR, truth or CANNOT_TELL, _flagged(doubts) or "the intervals overlap"
        )
    return JudgedCheck(check, GuessOutcome.RIGHT if given == truth else GuessOutcome.OFF, truth)


def _by_reach(check: CheckBlock, _given: Given, names: StepNames) -> JudgedCheck:
    reached: list[Value] = []
    flagged: list[frozenset[str]] = []
    for row in names.rows:
        alone = StepNames((row,), names.facts)
        with suppress(NotFound, InvalidInput):  # the condition is not about this result
            reached.append(evaluate(parse(check.reach), alone))
            flagged += [_doubts(check.reach, alone)] if reached[-1] is True else []
    if flagged:
        doubts = min(flagged, key=len)
        return JudgedCheck(check, GuessOutcome.UNCLEAR if doubts else GuessOutcome.RIGHT, why=_flagged(doubts))
    if not reached:
        return JudgedCheck(check, GuessOutcome.NOT_MEASURED, why="no result that counts for this task yet")
    return JudgedCheck(check, GuessOutcome.OFF)


Rule = Callable[[CheckBlock, Given, StepNames], JudgedCheck]
RULES: Mapping[str, Rule] = {
    "exact": _by_exact,
    "near": _by_near,
    "option": _by_option,
    "choice": _by_choice,
    "reach": _by_reach,
}


def _within(number: float, truth: LessonFigure, factor: float) -> bool:
    """Return whether a number is within `factor` of the value: an interval makes no wrong guess right."""
    sign = math.copysign(1.0, truth.value)
    return sign * truth.value / factor <= sign * number <= sign * truth.value * factor


def _within_distance(number: float, truth: LessonFigure, distance: float) -> bool:
    return truth.value - distance <= number <= truth.value + distance


def _doubt(truth: LessonFigure) -> str:
    if truth.doubts:
        return _flagged(truth.doubts)
    # Measured ends that differ by more: the value is known to no more than a factor of two.
    if Origin.LIVE.label in truth.sources and truth.low > 0 and truth.high / truth.low > 4.0:
        return f"the interval is too wide: {format_with_interval(truth)}"
    return ""


def _flagged(doubts: frozenset[str]) -> str:
    return f"flagged {', '.join(sorted(doubts))}" if doubts else ""


def _doubts(text: str, names: StepNames) -> frozenset[str]:
    found: list[LessonFigure | str] = []
    for name, selectors in parse(text).quantities():
        with suppress(*UNKNOWN):  # what an expression could do without
            found.append(names.quantity(name, selectors))
    return frozenset().union(*(figure.doubts for figure in found if isinstance(figure, LessonFigure)))


def _dimension_of(check: CheckBlock, names: StepNames) -> Dimension:
    """Return the dimension of the truth, so that expressions can compare a guessed number with it."""
    text = check.exact or check.near
    with suppress(*UNKNOWN):
        return figure_of(parse(text), names).dimension if text else PLAIN
    return PLAIN
