"""A lesson that a room follows together: which steps its leader has opened, and whether answers to them count."""

from dataclasses import dataclass

from gpuexplore.lessons.format import Lesson
from gpuexplore.rooms import ALL_STEPS, LESSON, Room, RoomTask
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import Shared, moment

LOOKS = 3  # a second: a step that is opened is there in two
FOLLOWED: Shared[tuple[tuple[Room, RoomTask], ...]] = Shared(2000)


@dataclass(frozen=True, slots=True)
class Followed:
    """How far a room is with a lesson.

    Attributes:
        room: the newest open one of the visitor that follows it.
        letters: of the steps that are open, in the lesson's order.
        closed: of those whose answers do not count any more.
        newest: the step that the room is at; empty where every step is open.
    """

    room: Room
    letters: tuple[str, ...]
    closed: frozenset[str]
    newest: str


def followed(lesson: Lesson) -> Followed | None:
    """Return how far the visitor's room is with a lesson; None where none follows it, or it let go."""
    name = owner()
    found = FOLLOWED.get((name, moment(LOOKS)), lambda: store().tasks_followed(name))
    mine = [(room, task) for room, task in found if task.kind == LESSON and task.settings.get("lesson") == lesson.name]
    if not mine:
        return None
    room = mine[-1][0]
    tasks = {str(task.settings.get("step")): task for where, task in mine if where.number == room.number}
    if ALL_STEPS in tasks:
        return None
    letters = tuple(step.letter for step in lesson.steps if step.letter in tasks)
    closed = frozenset(letter for letter in letters if not tasks[letter].takes_answers)
    return Followed(room, letters, closed, str(mine[-1][1].settings.get("step")))
