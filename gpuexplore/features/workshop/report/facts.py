"""Everything that is known of a room, and what its tasks are: the steps of lessons and the goals, one column each."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Result
from gpuexplore.features.lessons.lesson.catalog import catalog
from gpuexplore.features.lessons.lesson.format import Lesson, LessonStep
from gpuexplore.features.workshop.goals import Goal, goal_of
from gpuexplore.rooms import ALL_STEPS, LESSON, Participant, Room, RoomGuess, RoomTask
from gpuexplore.store.answers import Answer
from gpuexplore.store.room_tasks import AskedRun


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
        """What tells it from the others of its room."""
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
    before, every = known or {}, list(asked)
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
        lesson, letter = catalog().lesson(task.settings["lesson"]), task.settings["step"]
        steps = lesson.steps if letter == ALL_STEPS else (lesson.step(letter),)
    except (InvalidInput, KeyError):
        return
    for step in steps:
        yield Column(task, step.letter, f"{lesson.title}: {step.title}", lesson=lesson, step=step)
