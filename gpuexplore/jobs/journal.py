"""Messages between an engine and its worker: a task, a journal of what becomes of it, and a word of shared memory.

The engine leaves the task in a directory, and files there that tell the worker to stop; the worker reports in another
file there. A line that was written survives the process that wrote it, whatever ends that; so the case that was being
measured when a worker crashed is known. Nothing that is printed comes here.

The word says which case is at work; it is used to attribute a hang. It is memory and no line of the journal, because it
is written before every round of samples: 1 µs, and no system call.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import IO, Any

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core import Case, Device, Result, decode, encode

_WORD = Struct("<qqd")
TASK = "task.json"
JOURNAL = "journal.jsonl"
CANCEL = "cancel"  # the worker stops between two rounds once this file is there
LEAVE = "leave"  # it stops so, and finishes nothing that has a provisional result: the rest is measured later


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """A worker's task: to measure cases of its device, an activity, or else to load what measuring takes.

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
class StandingResult:
    """A result that stands should the worker end before it reports the case: only what a call costs is missing."""

    result: Result


Event = Begun | Case | StandingResult | Result | ActivityReport | Ended
KINDS: Mapping[str, type[Event]] = {  # by their names in journals, also those of a cluster's nodes
    "Begun": Begun,
    "Case": Case,
    "Kept": StandingResult,
    "Result": Result,
    "ActivityReport": ActivityReport,
    "Ended": Ended,
}


def read_task(directory: Path) -> WorkerTask:
    """Return the task in `directory`."""
    return decode(WorkerTask, json.loads((directory / TASK).read_text(encoding="utf-8")))


def write_event(journal: IO[str], event: Event) -> None:
    """Append one event; it is with the operating system when this returns."""
    journal.write(json.dumps(encode_event(event)) + "\n")
    journal.flush()


def journal_reader(directory: Path) -> Callable[[], Iterator[Event]]:
    """Return what yields the events that were added to a task's journal since the last call."""
    path = directory / JOURNAL
    offset = 0

    def new() -> Iterator[Event]:
        """Yield the events not yet seen; a line that is still being written waits."""
        nonlocal offset
        if not path.exists():
            return
        with path.open("rb") as journal:
            journal.seek(offset)
            for line in journal:
                if not line.endswith(b"\n"):
                    return
                offset += len(line)
                yield decode_event(json.loads(line))

    return new


def encode_event(event: Event) -> dict[str, Any]:
    """Return `event` as JSON that names its kind."""
    kind = next(name for name, kind in KINDS.items() if kind is type(event))
    return {"kind": kind, "value": encode(event)}


def decode_event(data: dict[str, Any]) -> Event:
    """Return the event that `encode_event` turned into `data`."""
    return decode(KINDS[data["kind"]], data["value"])


@dataclass(frozen=True, slots=True)
class CurrentCase:
    """The case at work.

    Attributes:
        count: of times that a case was taken up; two rounds of one case count twice, and 0 means that none began.
        index: of the case in its group.
        expected_s: about how many seconds it will be at work; None while it is built, checked or finished.
    """

    count: int
    index: int
    expected_s: float | None


def current_case_word(directory: Path, *, create: bool = False) -> mmap:
    """Return the word in a task's directory; the engine opens it first, with `create`."""
    path = directory / "current_case"
    if create:
        path.write_bytes(bytes(_WORD.size))
    with path.open("r+b") as file:
        return mmap(file.fileno(), _WORD.size)


def write_current_case(word: mmap, index: int, expected_s: float | None = None) -> None:
    """Note that the group's case number `index` is taken up."""
    count, _, _ = _WORD.unpack_from(word)
    _WORD.pack_into(word, 0, count + 1, index, nan if expected_s is None else expected_s)


def read_current_case(word: mmap) -> CurrentCase:
    """Return the case at work."""
    count, index, expected_s = _WORD.unpack_from(word)
    return CurrentCase(count, index, None if isnan(expected_s) else expected_s)
