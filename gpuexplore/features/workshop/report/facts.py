"""A room's tasks, a column each, and the progress of its participants: from guesses, answers and runs alone."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core import InvalidInput, Result, format_seconds, median, round_significant
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.lessons.lesson.blocks import CheckBlock
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome
from gpuexplore.features.workshop.goals import Goal, GoalScore, goal_of, judge
from gpuexplore.rooms import ALL_STEPS, LESSON, Participant, Room, RoomGuess, RoomTask
from gpuexplore.store import Answer, AskedRun


@dataclass(frozen=True, slots=True, eq=False)
class RoomRun:
    """A participant's run, and what follows from its results.

    Attributes:
        origin: where it was measured, when not on this server.
        asked: who asked for it and when, the first one first; None stands for a leader.
        results: how many there are, also those that this version does not understand.
    """

    run_id: str
    origin: str | None
    asked: tuple[tuple[int | None, str], ...]
    results: int
    analysis: RunAnalysis


@dataclass(frozen=True, slots=True)
class Column:
    """One thing that a room does: a goal, or a step of a lesson.

    Attributes:
        task: that asks for it.
        title: a few characters for the head of a column.
        sentence: what is asked for.
        goal: None for a step of a lesson.
        lesson, step: None for a goal.
    """

    task: RoomTask
    title: str
    sentence: str
    goal: Goal | None = None
    lesson: Lesson | None = None
    step: LessonStep | None = None

    @property
    def key(self) -> tuple[int, str]:
        """Its identifier within the room."""
        return self.task.number, self.step.letter if self.step else ""

    @property
    def link(self) -> str:
        """The page that it is done on."""
        if self.lesson and self.step:
            return f"lessons?lesson={self.lesson.name}&step={self.step.letter}"
        return self.goal.link if self.goal else ""


@dataclass(frozen=True, slots=True, eq=False)
class RoomFacts:
    """Everything that is known of a room.

    Attributes:
        answers: to lessons, with whose they are, the oldest first.
        key: the same for the same facts, whenever they were looked at.
    """

    room: Room
    people: tuple[Participant, ...] = ()
    tasks: tuple[RoomTask, ...] = ()
    guesses: tuple[RoomGuess, ...] = ()
    answers: tuple[tuple[int, Answer], ...] = ()
    runs: tuple[RoomRun, ...] = ()
    columns: tuple[Column, ...] = field(init=False)
    key: Hashable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(columns_of(self.tasks)))
        people = tuple((each.number, each.name) for each in self.people)
        tasks = tuple((task.number, task.revealed, task.frozen_utc, task.hidden) for task in self.tasks)
        answers = tuple((answer.number, answer.outcomes) for _, answer in self.answers)
        runs = tuple((run.run_id, run.asked, run.results) for run in self.runs)
        object.__setattr__(self, "key", (self.room.number, people, tasks, self.guesses, answers, runs))

    def guesses_at(self, task: RoomTask) -> Mapping[int, RoomGuess]:
        """Return the guesses at a task by participant."""
        return {guess.participant: guess for guess in self.guesses if guess.task == task.number}


Results = Callable[[Sequence[str]], Mapping[str, Sequence[Result]]]


def runs_of(
    asked: Iterable[AskedRun], results: Results, known: Mapping[str, RoomRun] | None = None
) -> dict[str, RoomRun]:
    """Return the runs of a room that have results, by id.

    Args:
        asked: as the store has them.
        results: reads those of runs, by id.
        known: runs that were there before: results are read of those that have more of them now.
    """
    before = known or {}
    every = list(asked)
    counts = {run.run_id: run.results for run in before.values()}
    new = [each for each in every if each.results != counts.get(each.run_id, 0)]
    found = results([each.run_id for each in new]) if new else {}
    analyses = {each.run_id: analyze(found[each.run_id]) for each in new if each.run_id in found}
    runs: dict[str, RoomRun] = {}
    for each in every:
        old = before.get(each.run_id)
        analysis = analyses.get(each.run_id) or (old.analysis if old else None)
        if analysis is not None:
            is_old = old is not None and analysis is old.analysis and each.asked == old.asked
            made = RoomRun(each.run_id, each.origin, each.asked, each.results, analysis)
            runs[each.run_id] = old if old and is_old else made
    return runs


def columns_of(tasks: Iterable[RoomTask]) -> Iterator[Column]:
    """Yield what a room does, in the order in which it was asked for it; a step that was freed twice once."""
    seen = set[tuple[str, str]]()
    for task in tasks:
        for column in _columns(task):
            name = (column.lesson.name, column.step.letter) if column.lesson and column.step else (str(task.number), "")
            if name not in seen:
                seen.add(name)
                yield column


def _columns(task: RoomTask) -> Iterator[Column]:
    """Yield the columns of a task; none where a newer version asked for what this one does not know."""
    try:
        if task.kind != LESSON:
            goal = goal_of(task.kind, task.settings)
            yield Column(task, goal.kind.name, goal.sentence, goal=goal)
            return
        lesson = catalog().lesson(task.settings["lesson"])
        letter = task.settings["step"]
        steps = lesson.steps if letter == ALL_STEPS else (lesson.step(letter),)
    except (InvalidInput, KeyError):
        return
    for step in steps:
        yield Column(task, step.letter, f"{lesson.title}: {step.title}", lesson=lesson, step=step)


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


def _best_runs(facts: RoomFacts, column: Column) -> Mapping[int | None, tuple[RoomRun, GoalScore, str]]:
    """Return the best run for a goal since it was set, with its score and when it was asked for.

    By participant; None is the leaders'.
    """
    found = dict[int | None, tuple[RoomRun, GoalScore, str]]()
    for run in facts.runs:
        judged = judge(column.goal, run.analysis) if column.goal else None
        if column.goal is None or judged is None:
            continue
        for who, asked_utc in run.asked:
            better = _is_better(column.goal, judged, found[who][1] if who in found else None)
            if asked_utc >= column.task.created_utc and better:
                found[who] = (run, judged, asked_utc)
    return found


def _is_better(goal: Goal, this: GoalScore, other: GoalScore | None) -> bool:
    """Return whether this is the better result to show."""
    if other is None or this.passed != other.passed:
        return other is None or this.passed
    return this.value < other.value if goal.kind.better == "lower" else this.value > other.value


def truth_of(facts: RoomFacts, column: Column) -> float | None:
    """Return the median of what the room measured for a goal, in seconds where it is guessed; None is unknown."""
    values = [score.value for _, score, _ in _best_runs(facts, column).values()]
    return median(values) if values else None


def _outcome_of(guess: float, truth: float | None) -> str:
    """Return what becomes of a guessed time; empty as long as nothing was measured."""
    if truth is None:
        return ""
    factor = max(guess / truth, truth / guess)
    if factor <= 1.25:  # as in lessons
        return GuessOutcome.RIGHT.value
    return GuessOutcome.CLOSE.value if factor <= 2.0 else GuessOutcome.OFF.value


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
    asked_s = (datetime.fromisoformat(now_utc) - datetime.fromisoformat(column.task.created_utc)).total_seconds()
    if asked_s < 180.0:
        return []
    done = standings(facts, column)
    return [each.name for each in facts.people if each.number not in done and each.seen_s < here_s]


def _of_goal(facts: RoomFacts, column: Column) -> Iterator[tuple[int, Standing]]:
    guesses = facts.guesses_at(column.task)
    best = _best_runs(facts, column)
    truth = truth_of(facts, column) if column.goal and column.goal.kind.is_guessed else None
    for person in facts.people:
        guess = guesses.get(person.number)
        run, judged, asked_utc = best.get(person.number, (None, None, ""))
        if guess is None and run is None:
            continue
        passed = judged is not None and judged.passed
        if column.goal and column.goal.kind.is_guessed:
            outcome = _outcome_of(guess.guess, truth) if guess else ""
            passed = guess is not None and run is not None
        else:
            outcome = "reached" if passed else ""
        yield (
            person.number,
            Standing(
                State.DONE if passed else State.BEGUN,
                format_seconds(guess.guess) if guess else "",
                judged.said if judged else "",
                outcome,
                run,
                max(guess.created_utc if guess else "", asked_utc),
            ),
        )


def _of_step(facts: RoomFacts, column: Column) -> Iterator[tuple[int, Standing]]:
    runs = {run.run_id: run for run in facts.runs}
    for participant, answer in latest_answers(facts, column).items():
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
                ", ".join(answer.outcomes or ()),
                run,
                answer.created_utc,
            ),
        )


def _unit(column: Column, check: CheckBlock) -> str:
    guess = column.step.guesses.get(check.guess) if column.step else None
    return guess.unit if guess else ""
