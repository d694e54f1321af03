"""Everything that is known of a room, and what its tasks are: the steps of lessons and the goals, one column each."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.errors import InvalidInput
from gpuexplore.goals import Goal, goal_of
from gpuexplore.lessons.catalog import catalog
from gpuexplore.lessons.format import Lesson, Step
from gpuexplore.model import Result
from gpuexplore.rooms import ALL_STEPS, LESSON, Participant, Room, RoomGuess, RoomTask
from gpuexplore.store.answers import Answer
from gpuexplore.store.room_tasks import RoomResult


@dataclass(frozen=True, slots=True, eq=False)
class RoomRun:
    """A run of somebody in a room.

    Attributes:
        participant: whose it is; None for a leader's.
        origin: where it was measured, when not on this server.
    """

    participant: int | None
    run_id: str
    created_utc: str
    origin: str | None
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
    step: Step | None = None

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
        runs = tuple((run.run_id, len(run.analysis.results)) for run in self.runs)
        object.__setattr__(self, "key", (self.room.number, people, tasks, self.guesses, answers, runs))

    def guesses_at(self, task: RoomTask) -> Mapping[int, RoomGuess]:
        """Return the guesses at a task by participant."""
        return {guess.participant: guess for guess in self.guesses if guess.task == task.number}


def runs_of(results: Iterable[RoomResult], known: Mapping[str, RoomRun] | None = None) -> dict[str, RoomRun]:
    """Return the runs that results are of, by id.

    Args:
        results: as they arrived.
        known: runs that were there before, to which some of the results may belong.
    """
    found, of_run = dict(known or {}), defaultdict[str, list[Result]](list)
    first: dict[str, RoomResult] = {}
    for each in results:
        of_run[each.run_id].append(each.result)
        first.setdefault(each.run_id, each)
    for run_id, new in of_run.items():
        before = [analyzed.result for analyzed in found[run_id].analysis.results] if run_id in found else []
        about, cases = first[run_id], {result.case for result in new}
        every = [*(result for result in before if result.case not in cases), *new]
        found[run_id] = RoomRun(about.participant, run_id, about.created_utc, about.origin, analyze(every))
    return found


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
