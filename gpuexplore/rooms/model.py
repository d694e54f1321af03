"""A room and who is in it; times are UTC in ISO 8601, of one width, so that they sort as text."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

MOST_PEOPLE, MOST_EVER = 300, 3000  # of one room, without and with those who were removed
LESSON = "lesson"  # the kind of a task that is a step of a lesson: `lesson` and `step` are its settings
ALL_STEPS = "*"  # the step that lets go: every step of the lesson is open


class RoomState(StrEnum):
    """Whether a room can be joined."""

    OPEN = "open"
    CLOSED = "closed"  # by its leader
    ENDED = "ended"  # its time is over


@dataclass(frozen=True, slots=True)
class Room:
    """A room.

    Attributes:
        number: its key in the database.
        code: six letters.
        title: what its leader calls it; empty for none.
        ends_utc: when it ends by itself.
        closed_utc: when its leader closed it.
        state: at the time it was loaded.
        message: what its leader says to everybody; empty for nothing.
        link: page of ours that it is about, such as `lessons?lesson=dtypes`; empty for none.
        names_shown: whether the wall shows who is who.
        weight: how many times as much of a device those in it get as others, while both wait.
    """

    number: int
    code: str
    title: str
    created_utc: str
    ends_utc: str
    closed_utc: str | None
    state: RoomState
    message: str = ""
    link: str = ""
    names_shown: bool = False
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody in a room.

    Attributes:
        number: its key in the database: what pages name people by, as their owner is a secret of their browser.
        name: as it was typed.
        removed: whether the leader sent them out.
        seen_s: how long ago their browser was last heard of.
    """

    number: int
    name: str
    joined_utc: str
    removed: bool
    seen_s: float


@dataclass(frozen=True, slots=True)
class RoomTask:
    """What a room is asked to do.

    Attributes:
        number: its key in the database; the newest of a room is the one that it is at.
        kind: `lesson`, or a kind of goal.
        settings: of the kind, as text.
        revealed: whether the wall shows what is right; what is answered later does not count.
        frozen_utc: since when answers do not count; None for open.
        hidden: whether the wall leaves it out.
        left_s: until its timer is over, 0 where it is; None without one.
    """

    number: int
    kind: str
    settings: Mapping[str, str]
    created_utc: str
    revealed: bool = False
    frozen_utc: str | None = None
    hidden: bool = False
    left_s: float | None = None

    @property
    def takes_answers(self) -> bool:
        """Whether what is answered now counts."""
        return not self.revealed and self.frozen_utc is None and self.left_s != 0.0


@dataclass(frozen=True, slots=True)
class RoomGuess:
    """What somebody guessed at a task.

    Attributes:
        task, participant: their numbers.
        guess: in SI base units.
    """

    task: int
    participant: int
    guess: float
    created_utc: str
