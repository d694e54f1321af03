"""The file in which a worker reports, line by line, what it is doing.

A line that was written survives the process that wrote it, whatever ends that; so the case that
was being measured when a worker crashed is known.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpuexplore.model import Case, Result
from gpuexplore.serialization import decode, encode

JOURNAL = "journal.jsonl"
CANCEL = "cancel"  # the worker stops between two rounds once this file is there


@dataclass(frozen=True, slots=True)
class Begun:
    """The worker took up the task."""

    pid: int


Event = Begun | Case | Result


def write_event(journal: IO[str], event: Event) -> None:
    """Append one event; it is with the operating system when this returns."""
    journal.write(json.dumps({"kind": type(event).__name__, "value": encode(event)}) + "\n")
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
                yield _event(json.loads(line))


def _event(line: dict[str, Any]) -> Event:
    kinds: Sequence[type[Event]] = (Begun, Case, Result)
    kind = next(kind for kind in kinds if kind.__name__ == line["kind"])
    return decode(kind, line["value"])
