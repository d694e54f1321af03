"""Whose turn it is in a worker: a word of memory shared with the engine, so that a hang is put down to its case.

Memory and not the journal, because it is written before every round of samples: 1 µs, and no system call.
"""

from dataclasses import dataclass
from math import isnan, nan
from mmap import mmap
from pathlib import Path
from struct import Struct

TURN = "turn"
_WORD = Struct("<qqd")


@dataclass(frozen=True, slots=True)
class Turn:
    """One case at work.

    Attributes:
        count: turns so far; two rounds of one case are two turns, and 0 means that none began.
        index: of the case in its group.
        expected_s: about how many seconds the turn takes; None while the case is built, checked or finished.
    """

    count: int
    index: int
    expected_s: float | None


class TurnWord:
    """The word in a task's directory; the engine opens it first, with `create`."""

    def __init__(self, directory: Path, *, create: bool = False) -> None:
        path = directory / TURN
        if create:
            path.write_bytes(bytes(_WORD.size))
        with path.open("r+b") as file:
            self._memory = mmap(file.fileno(), _WORD.size)
        self._count = 0

    def begin(self, index: int, expected_s: float | None = None) -> None:
        """Say that it is the turn of the group's case number `index`."""
        self._count += 1
        _WORD.pack_into(self._memory, 0, self._count, index, nan if expected_s is None else expected_s)

    def read(self) -> Turn:
        """Return whose turn it is."""
        count, index, expected_s = _WORD.unpack_from(self._memory)
        return Turn(count, index, None if isnan(expected_s) else expected_s)
