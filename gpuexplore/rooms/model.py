"""A room and who is in it; times are UTC in ISO 8601, of one width, so that they sort as text."""

from dataclasses import dataclass
from enum import StrEnum

MOST_PEOPLE = 300  # of one room


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
