"""Progress of the participants of a room, and what is right: from guesses, answers and runs alone."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gpuexplore.core.statistics import median
from gpuexplore.core.units import format_seconds, round_significant
from gpuexplore.features.lessons.lesson.blocks import CheckBlock
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome
from gpuexplore.features.workshop.goals import GoalScore, is_better, judge
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, RoomRun
from gpuexplore.store.answers import Answer

RIGHT, CLOSE = 1.25, 2.0  # a guess within so many times what was measured, as in lessons
STUCK_S = 180.0  # without an answer, of those that are here


class State(StrEnum):
    """Progress of a participant with something."""

    NOTHING = "nothing yet"
    BEGUN = "begun"  # guessed or measured, and not there
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Standing:
    """Progress of a participant with something.

    Attributes:
        guess: what they guessed, for a reader; empty for nothing.
        said: what came of it, for a reader.
        outcome: of the guess, or of the goal: right, close, off, reached; empty where there is none yet.
        at_utc: of the last thing they did for it; None for nothing.
    """

    state: State = State.NOTHING
    guess: str = ""
    said: str = ""
    outcome: str = ""
    run: RoomRun | None = None
    at_utc: str | None = None


@dataclass(frozen=True, slots=True)
class Best:
    """A participant's best run for a goal, and when they asked for it."""

    run: RoomRun
    judged: GoalScore
    asked_utc: str


def standings(facts: RoomFacts, column: Column) -> Mapping[int, Standing]:
    """Return the progress of a room with one thing, by participant; who did nothing for it is not there."""
    return dict(_of_goal(facts, column) if column.goal else _of_step(facts, column))


def latest_answers(facts: RoomFacts, column: Column) -> Mapping[int, Answer]:
    """Return the last answers to a step that count, by participant."""
    found: dict[int, Answer] = {}
    for participant, answer in facts.answers:
        if column.lesson is None or column.step is None:
            break
        is_of = (answer.lesson, answer.step, answer.digest) == (
            column.lesson.name,
            column.step.letter,
            column.lesson.digest,
        )
        in_time = column.task.frozen_utc is None or answer.created_utc <= column.task.frozen_utc
        if is_of and (in_time or participant not in found):
            found[participant] = answer
    return found


def _best_runs(facts: RoomFacts, column: Column) -> Mapping[int | None, Best]:
    """Return the best run for a goal since it was set, by participant; None is the leaders'."""
    found = dict[int | None, Best]()
    for run in facts.runs:
        judged = judge(column.goal, run.analysis) if column.goal else None
        if column.goal is None or judged is None:
            continue
        for who, asked_utc in run.asked:
            better = is_better(column.goal, judged, found[who].judged if who in found else None)
            if asked_utc >= column.task.created_utc and better:
                found[who] = Best(run, judged, asked_utc)
    return found


def truth_of(facts: RoomFacts, column: Column) -> float | None:
    """Return the median of what the room measured for a goal, in seconds where it is guessed; None is unknown."""
    values = [best.judged.value for best in _best_runs(facts, column).values()]
    return median(values) if values else None


def _outcome_of(guess: float, truth: float | None) -> str:
    """Return what becomes of a guessed time; empty as long as nothing was measured."""
    if truth is None:
        return ""
    factor = max(guess / truth, truth / guess)
    return (
        GuessOutcome.RIGHT if factor <= RIGHT else GuessOutcome.CLOSE if factor <= CLOSE else GuessOutcome.OFF
    ).value


def wrong_guesses(facts: RoomFacts, column: Column) -> list[tuple[str, int]]:
    """Return the guesses that are off, the most frequent first, each with how many made it."""
    if column.goal:
        truth = truth_of(facts, column)
        off = [
            guess.guess
            for guess in facts.guesses_at(column.task).values()
            if _outcome_of(guess.guess, truth) == GuessOutcome.OFF
        ]
        return Counter(f"about {format_seconds(round_significant(guess, 1))}" for guess in off).most_common()
    checks = column.step.of(CheckBlock) if column.step else ()
    return Counter(
        f"{answer.guesses[check.guess]} {_unit(column, check)}".strip()
        for answer in latest_answers(facts, column).values()
        for check, outcome in zip(checks, answer.outcomes or (), strict=False)
        if outcome == GuessOutcome.OFF.value and answer.guesses.get(check.guess)
    ).most_common()


def stuck(facts: RoomFacts, column: Column, now_utc: str, here_s: float) -> list[str]:
    """Return the names of those who are here and have done nothing for it since it was asked for."""
    asked = datetime.fromisoformat(column.task.created_utc)
    if (datetime.fromisoformat(now_utc) - asked).total_seconds() < STUCK_S:
        return []
    done = standings(facts, column)
    return [each.name for each in facts.people if each.number not in done and each.seen_s < here_s]


def _of_goal(facts: RoomFacts, column: Column) -> Iterator[tuple[int, Standing]]:
    guesses, best = facts.guesses_at(column.task), _best_runs(facts, column)
    truth = truth_of(facts, column) if column.goal and column.goal.kind.is_guessed else None
    for person in facts.people:
        guess, measured = guesses.get(person.number), best.get(person.number)
        if guess is None and measured is None:
            continue
        judged = measured.judged if measured else None
        passed = judged is not None and judged.passed
        if column.goal and column.goal.kind.is_guessed:
            outcome = _outcome_of(guess.guess, truth) if guess else ""
            passed = guess is not None and measured is not None
        else:
            outcome = "reached" if passed else ""
        yield (
            person.number,
            Standing(
                State.DONE if passed else State.BEGUN,
                format_seconds(guess.guess) if guess else "",
                judged.said if judged else "",
                outcome,
                measured.run if measured else None,
                max(guess.created_utc if guess else "", measured.asked_utc if measured else ""),
            ),
        )


def _of_step(facts: RoomFacts, column: Column) -> Iterator[tuple[int, Standing]]:
    runs = {run.run_id: run for run in facts.runs}
    for participant, answer in latest_answers(facts, column).items():
        outcomes = answer.outcomes or ()
        guesses = [
            f"{answer.guesses[guess.id]} {guess.unit}".strip()
            for guess in (column.step.guesses.values() if column.step else ())
            if answer.guesses.get(guess.id) is not None
        ]
        run = next((runs[run_id] for run_id in answer.runs if run_id in runs), None)
        yield (
            participant,
            Standing(
                State.DONE if answer.outcomes is not None else State.BEGUN,
                ", ".join(guesses),
                "",
                ", ".join(outcomes),
                run,
                answer.created_utc,
            ),
        )


def _unit(column: Column, check: CheckBlock) -> str:
    guess = column.step.guesses.get(check.guess) if column.step else None
    return guess.unit if guess else ""
