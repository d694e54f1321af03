"""One attempt to measure a group in a worker: follows its journal until it ends, or has to be ended."""

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble import ProcessExpired

from gpuexplore.errors import CANCELLED_BY_OWNER
from gpuexplore.jobs.journal import CANCEL, Begun, JournalReader
from gpuexplore.measure.guard import MAX_BUDGET_MULTIPLE
from gpuexplore.model import Case, Result, Status
from gpuexplore.units import format_seconds

TICK_S = 0.02


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a worker may take, in seconds.

    Attributes:
        start_s: until a task begins: the process starts and loads its libraries.
        build_s: for each case, to build it and to call it once.
        per_budget: for each case, as multiple of its sampling budget.
        grace_s: after a cancellation, until the process is killed.
    """

    start_s: float = 180.0
    build_s: float = 60.0
    per_budget: float = MAX_BUDGET_MULTIPLE
    grace_s: float = 3.0

    def of(self, cases: Sequence[Case]) -> float:
        """Return the seconds that these cases may take together."""
        return sum(self.build_s + self.per_budget * case.options.budget_s for case in cases)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt had to end before every case had its result."""

    status: Status
    reason: str


CANCELLATION = Failure(Status.CANCELLED, CANCELLED_BY_OWNER)


class Attempt:
    """What is known of a group while a worker measures it.

    Attributes:
        pending: the cases without a result.
        started: those of them that the worker took up, in that order.
        statuses: of the results so far.
    """

    def __init__(self, cases: Sequence[Case], on_event: Callable[[Case | Result], None]) -> None:
        self.pending = list(cases)
        self.started: list[Case] = []
        self.statuses: set[Status] = set()
        self._cases = tuple(cases)
        self._on_event = on_event
        self._begun_s: float | None = None

    def follow(
        self, task: Future[Any], directory: Path, *, limits: Limits, cancelled: Callable[[], bool]
    ) -> Failure | None:
        """Pass on what the journal in `directory` says until the task ends or must end; return why it failed."""
        journal, scheduled_s, cancelled_s = JournalReader(directory), time.monotonic(), None
        while not task.done():
            self._pass_on(journal)
            if cancelled_s is None and cancelled():
                (directory / CANCEL).touch()
                cancelled_s = time.monotonic()
            if cancelled_s is not None and time.monotonic() - cancelled_s > limits.grace_s:
                return CANCELLATION
            if timeout := self._timeout(scheduled_s, limits):
                return timeout
            wait((task,), timeout=TICK_S)
        self._pass_on(journal)
        return failure_of(task) or _context_failure(task.result())

    def suspects(self) -> list[Case]:
        """Return the cases one of which may have ended the worker: those it took up, or the only one left."""
        return self.started or (self.pending if len(self.pending) == 1 else [])

    def _pass_on(self, journal: JournalReader) -> None:
        for event in journal.new():
            if isinstance(event, Begun):
                self._begun_s = time.monotonic()
                continue
            self._note(event)
            self._on_event(event)

    def _note(self, event: Case | Result) -> None:
        case = event.case if isinstance(event, Result) else event
        self.started = [earlier for earlier in self.started if earlier != case]
        if isinstance(event, Result):
            self.pending.remove(case)
            self.statuses.add(event.status)
        else:
            self.started.append(case)

    def _timeout(self, scheduled_s: float, limits: Limits) -> Failure | None:
        if self._begun_s is None:
            since_s, limit_s, what = scheduled_s, limits.start_s, "the worker did not start"
        else:
            since_s, limit_s, what = self._begun_s, limits.of(self._cases), "no result"
        if time.monotonic() - since_s <= limit_s:
            return None
        return Failure(Status.TIMEOUT, f"{what} within {format_seconds(limit_s)}")


def _context_failure(reason: str | None) -> Failure | None:
    """Return what `measure_to_journal` tells of a CUDA context that broke."""
    return None if reason is None else Failure(Status.ERROR, reason)


def failure_of(task: Future[Any]) -> Failure | None:
    """Return how a task that is over failed, or None."""
    error = task.exception()
    if error is None:
        return None
    if not isinstance(error, ProcessExpired):
        return Failure(Status.CRASHED, f"the worker broke: {type(error).__name__}: {error}")
    if error.exitcode >= 0:
        return Failure(Status.CRASHED, f"the worker ended with exit code {error.exitcode}")
    name = signal.Signals(-error.exitcode).name
    hint = ": out of memory, or killed by hand" if name == "SIGKILL" else ""
    return Failure(Status.CRASHED, f"the worker was ended by {name}{hint}")
