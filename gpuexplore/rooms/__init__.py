"""Rooms: a class that measures together, found by a code, without accounts: values, typed texts and rate limit."""

import secrets
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from urllib.parse import urlsplit

from gpuexplore.core import InvalidInput, check_characters, format_whole_seconds, require, whole_typed

LONGEST_NAME = 24  # characters: what fits a tile of the wall
LONGEST_TITLE = 80
LONGEST_MESSAGE = 280


def read_name(text: str) -> str:
    """Return a display name, its spaces tidied.

    Raises:
        InvalidInput: it is empty, too long, or of invisible characters.
    """
    check_characters("name", text)
    name = " ".join(text.split())
    invisible = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")  # categories of Unicode
    if hidden := next((sign for sign in name if unicodedata.category(sign) in invisible), None):
        raise InvalidInput.of("name", f"U+{ord(hidden):04X}", "visible characters")
    if not any(sign.isalnum() for sign in name) or len(name) > LONGEST_NAME:
        raise InvalidInput.of("name", name, f"1 to {LONGEST_NAME} characters, with at least one letter or digit")
    return name


def name_key(name: str) -> str:
    """Return what two names share that people would take for one: `Ada`, `ADA` and `ada`."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def read_title(text: str) -> str:
    """Return the title of a room, which may be empty.

    Raises:
        InvalidInput: it is too long or cannot be shown.
    """
    return _line("title", text, LONGEST_TITLE)


def read_message(text: str) -> str:
    """Return a leader's message to a room, which may be empty.

    Raises:
        InvalidInput: it is too long or cannot be shown.
    """
    return _line("message", text, LONGEST_MESSAGE)


def read_link(text: str, pages: Iterable[str], first_page: str) -> str:
    """Return the page and the parameters of an address of this app, such as `lessons?lesson=dtypes`, or empty text.

    Of an address only that is kept: a room never links to another server.

    Args:
        text: an address as the browser shows it, or what follows the server's name.
        pages: of this app, as addresses name them.
        first_page: the one that an address without a page means.

    Raises:
        InvalidInput: it is too long, cannot be shown, or is of no page of this app.
    """
    typed = text.strip()
    if not typed:
        return ""
    check_characters("link", typed)
    try:
        parts = urlsplit(typed)
    except ValueError:
        raise InvalidInput.of("link", typed, "addresses of this app") from None
    page = parts.path.rstrip("/").rpartition("/")[2] or first_page
    accepted = tuple(pages)
    if page not in accepted or parts.scheme not in ("", "http", "https"):
        raise InvalidInput.of("link", typed, f"addresses of this app, which end in one of {', '.join(accepted)}")
    require(len(parts.query) <= 2000, "link", f"{len(typed):,} characters", "at most 2,000")
    return f"{page}?{parts.query}" if parts.query else page


def read_hours(text: str) -> int:
    """Return for how many hours a room shall be open.

    Raises:
        InvalidInput: no whole number, or out of range.
    """
    return whole_typed("hours", text, 7 * 24)


def _line(what: str, text: str, longest: int) -> str:
    """Return a text on one line, its spaces tidied; it may be empty."""
    check_characters(what, text)
    line = " ".join(text.split())
    require(len(line) <= longest, what, line, f"at most {longest} characters")
    return line


# A room and who is in it; times are UTC in ISO 8601, of one width, so that they sort as text.


MOST_PEOPLE = 300  # of one room
MOST_EVER = 3000  # with those who were removed
LESSON = "lesson"  # the kind of a task that is a step of a lesson: `lesson` and `step` are its settings
ALL_STEPS = "*"  # the step that lets go: every step of the lesson is open


class RoomState(StrEnum):
    """The state of a room: it can be joined, or only read."""

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
        message: what its leader says to all; empty for nothing.
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
    """A participant of a room.

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
    """A task of a room.

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
        """True while answers count."""
        return not self.revealed and self.frozen_utc is None and self.left_s != 0.0


@dataclass(frozen=True, slots=True)
class RoomGuess:
    """A participant's guess at a task.

    Attributes:
        task, participant: their numbers.
        guess: in SI base units.
    """

    task: int
    participant: int
    guess: float
    created_utc: str


# Rate limit of wrong room codes by network address, which spares those who come to a room that others there are in.


HERE = "this machine"  # instead of an address where none is known
WITHIN_S = 600.0
MOST_OF_ONE = 60  # wrong codes from one address: a class behind one mistypes, a program tries
MOST_OF_ALL = 600  # from all together; above it, MOST_WHEN_TRIED
MOST_WHEN_TRIED = 3  # so that a guesser with many addresses keeps no class out
MOST_KNOWN = 10_000  # addresses: the one heard of first is forgotten


class _WrongCodes:
    """Counts of wrong codes by origin in the last ten minutes; thread-safe.

    Of 7.5 million codes, 600 in ten minutes find a room that is open for eight hours with a chance of 0.4 %.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._all: deque[float] = deque()
        self._of: dict[str, deque[float]] = {}
        self._entered: dict[tuple[str, str], None] = {}

    def note_entered(self, whence: str, code: str) -> None:
        """Exempt the room with this code at this address: the rest of a class behind it is let in."""
        with self._lock:
            self._entered[whence, code] = None
            if len(self._entered) > MOST_KNOWN:
                del self._entered[next(iter(self._entered))]

    def check(self, whence: str, code: str) -> None:
        """Return where this code may be tried from there.

        Raises:
            InvalidInput: too many were wrong; says when the next may be tried.
        """
        with self._lock:
            if (whence, code) in self._entered:
                return
            tries = self._of.get(whence, deque())
            self._forget(tries)
            self._forget(self._all)
            most = MOST_OF_ONE if len(self._all) < MOST_OF_ALL else MOST_WHEN_TRIED
            if len(tries) >= most:
                raise InvalidInput(
                    f"{len(tries)} wrong room codes were sent from your network address in the last ten minutes: "
                    f"try again in {format_whole_seconds(tries[-most] + WITHIN_S - self._clock())}"
                )

    def note(self, whence: str) -> None:
        """Count a wrong code that came from there."""
        with self._lock:
            if whence not in self._of and len(self._of) >= MOST_KNOWN:
                self._of.pop(next(iter(self._of)))
            for tries in (self._of.setdefault(whence, deque()), self._all):
                tries.append(self._clock())

    def _forget(self, tries: deque[float]) -> None:
        while tries and tries[0] <= self._clock() - WITHIN_S:
            tries.popleft()


WRONG_CODES = _WrongCodes()  # of this process

# No vowels, so no words; of letters that look alike in a projector's type (B and 8, G and C, I and L, O and Q, S and 5,
# U and V, Z and 2) at most one, and no digits.
LETTERS = "CDFHJKMNPRTWXY"
CODE_LENGTH = 6

# The code of a room: six letters that are legible from the back row, and that spell no word.


def new_code() -> str:
    """Return the code of a new room: one of 7.5 million, drawn so that it cannot be foreseen."""
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))


def read_code(text: str) -> str:
    """Return the code that was typed or is in a link: spaces, hyphens and small letters are fine.

    Raises:
        InvalidInput: it cannot be one.
    """
    code = "".join(text.split()).replace("-", "").upper()
    if len(code) != CODE_LENGTH or not set(code) <= set(LETTERS):
        raise InvalidInput.of("room", text, f"codes of {CODE_LENGTH} letters out of {LETTERS}")
    return code


def spoken(code: str) -> str:
    """Return a code in two groups, as one reads it aloud: `KTR MWX`."""
    half = CODE_LENGTH // 2
    return f"{code[:half]} {code[half:]}"
