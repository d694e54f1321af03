"""The directory through which an engine gives its worker a task, and the file in which the worker reports on it.

A line that was written survives the process that wrote it, whatever ends that; so the case that
was being measured when a worker crashed is known. Nothing that is printed comes here.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import IO, Any

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.model import Case, Device, Result
from gpuexplore.serialization import decode, encode

# Whose turn it is in a worker: a word of memory shared with the engine, so that a hang is put down to its case.
#
# Memory and not the journal, because it is written before every round of samples: 1 µs, and no system call.


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


TASK = "task.json"
JOURNAL = "journal.jsonl"
CANCEL = "cancel"  # the worker stops between two rounds once this file is there
LEAVE = "leave"  # it stops so, and finishes nothing that has a provisional result: the rest is measured later


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is asked for: to measure cases of its device, an activity, or else to load what measuring takes.

    Attributes:
        runner: module with `measure_cases` and `warm_up`; of an activity the one with `perform`.
    """

    runner: str
    device: Device
    cases: tuple[Case, ...] = ()
    activity: Activity | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """The worker took up the task."""

    pid: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The worker is done with the task.

    Attributes:
        error: what makes the worker unusable: it could not warm up, or its CUDA context broke.
        device: the device with its ceilings, after a warm-up.
        failure: what ended an activity; the worker can be used all the same.
        left_behind: processes and threads that the task started and that still run.
    """

    error: str | None = None
    device: Device | None = None
    failure: str | None = None
    left_behind: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """A result that stands should the worker end before it reports the case: only what a call costs is missing."""

    result: Result


Event = Begun | Case | Kept | Result | ActivityReport | Ended


def write_task(directory: Path, task: Task) -> None:
    """Leave `task` for a worker in `directory`."""
    (directory / TASK).write_text(json.dumps(encode(task)), encoding="utf-8")


def read_task(directory: Path) -> Task:
    """Return the task in `directory`."""
    return decode(Task, json.loads((directory / TASK).read_text(encoding="utf-8")))


def write_event(journal: IO[str], event: Event) -> None:
    """Append one event; it is with the operating system when this returns."""
    journal.write(json.dumps(encode_event(event)) + "\n")
    journal.flush()


class JournalReader:
    """Reads what was added to a task's journal since the last call."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL
        self._offset = 0

    def new(self) -> Iterator[Event]:
        """Yield the events not yet seen; a line that is still being written waits."""
        if not self._path.exists():
            return
        with self._path.open("rb") as journal:
            journal.seek(self._offset)
            for line in journal:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield decode_event(json.loads(line))


def encode_event(event: Event) -> dict[str, Any]:
    """Return `event` as JSON that names its kind."""
    return {"kind": type(event).__name__, "value": encode(event)}


def decode_event(data: dict[str, Any]) -> Event:
    """Return the event that `encode_event` turned into `data`."""
    kinds: Sequence[type[Event]] = (Begun, Case, Kept, Result, ActivityReport, Ended)
    kind = next(kind for kind in kinds if kind.__name__ == data["kind"])
    return decode(kind, data["value"])
