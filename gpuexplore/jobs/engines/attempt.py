"""One attempt to carry out a task in a worker: its journal is followed until it ends, or has to be ended, and why."""

import logging
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpuexplore.activity import ActivityReport
from gpuexplore.core.errors import CANCELLED, InvalidInput
from gpuexplore.core.model import Case, Flag, Result, Status
from gpuexplore.core.units import format_gigabytes, format_seconds, read_bytes, read_seconds
from gpuexplore.jobs.engines import LEAVE_OFF, IsCancelled
from gpuexplore.jobs.engines.process import MAX_BYTES, Worker
from gpuexplore.jobs.journal import (
    CANCEL,
    LEAVE,
    Begun,
    Ended,
    Event,
    StandingResult,
    Turn,
    journal_reader,
    read_turn,
    turn_word,
)
from gpuexplore.measure.check.guard import MAX_BUDGET_MULTIPLE
from gpuexplore.measure.conditions.environment import USABLE_SHARE, free_host_bytes
from gpuexplore.operations.implementation import OF_USERS

LOG = logging.getLogger(__name__)
VMSTAT = Path("/proc/vmstat")
TICK_S = 0.02
SHARE_OF_USERS = 0.5  # of the free memory, for code of users
LONGEST_TICK_S = 1.0  # where more passes between two looks, this process stood still, and perhaps the worker with it
PRINTED = Flag("truncated", f"it printed more than {MAX_BYTES // 1000} kB: the rest was dropped")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended before every case had its result.

    Attributes:
        case: the one that is to blame, where no other can be.
    """

    status: Status
    reason: str
    case: Case | None = None


CANCELLATION = Failure(Status.CANCELLED, CANCELLED)


def failure_of_exit(exit_code: int, oom_kills_before: int | None) -> Failure:
    """Return what is known of a worker that ended in the middle of its task.

    Args:
        exit_code: of the process, a signal as a negative number.
        oom_kills_before: how many processes Linux had ended for want of memory when the task began.
    """
    if exit_code >= 0:
        return Failure(Status.CRASHED, f"the worker ended with exit code {exit_code}")
    name = signal.Signals(-exit_code).name
    if name != "SIGKILL":
        return Failure(Status.CRASHED, f"the worker was ended by {name}")
    now = oom_kills()
    if now is None or oom_kills_before is None:
        return Failure(Status.CRASHED, "the worker was ended by SIGKILL: out of memory, or killed by hand")
    if now > oom_kills_before:
        return Failure(Status.OUT_OF_MEMORY, "Linux ended the worker: its memory was exhausted")
    return Failure(Status.CRASHED, "the worker was ended by SIGKILL, and not for want of memory")


def oom_kills() -> int | None:
    """Return how many processes of this host Linux has ended for want of memory; None where it does not say."""
    try:
        lines = VMSTAT.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """How long a worker may take, in seconds.

    Attributes:
        start_s: until its process takes up a task, and then until it takes up a case.
        build_s: to build a case and to call it once.
        per_budget: for the calls of a case, as multiple of its sampling budget.
        round_s: for a round of samples, whatever it is expected to take,
        per_round: and for each second that it is expected to take.
        grace_s: after a cancellation, until the process is killed.
        memory_bytes: that a worker may hold; None: a share of what is free when it begins, less with code of users.
    """

    start_s: float = 180.0
    build_s: float = 60.0
    per_budget: float = MAX_BUDGET_MULTIPLE
    round_s: float = 5.0
    per_round: float = 10.0
    grace_s: float = 3.0
    memory_bytes: int | None = None

    def of_turn(self, case: Case, expected_s: float | None) -> float:
        """Return the seconds that `case` may take before it is the turn of another one."""
        if expected_s is not None:
            return self.round_s + self.per_round * expected_s
        return self.build_s + self.per_budget * case.options.budget_s


def limits_typed(memory: str, time: str) -> WorkerLimits:
    """Return the limits of a worker as they were typed, e.g. ``4GB`` and ``10s``; empty: the default.

    Args:
        memory: of its process.
        time: until a case is built and was called once.

    Raises:
        InvalidInput: one of them is no size, or no time.
    """
    most, build_s = read_bytes(memory), read_seconds(time)
    if memory and not most:
        raise InvalidInput.of("memory limit", memory, "sizes like 500MB, 4GB or 8GiB")
    if time and not build_s:
        raise InvalidInput.of("time limit", time, "times like 500ms, 10s or 90s")
    limits = WorkerLimits(memory_bytes=most)
    return replace(limits, build_s=build_s) if build_s else limits


class Attempt:
    """What is known of a task while a worker carries it out.

    Attributes:
        pending: the cases without a final result.
        provisional: what is known of them so far.
        started: those of them that the worker took up, in that order.
        statuses: of the final results so far.
        kept: results of pending cases that stand should the worker end before it reports them.
        ended: what the worker said when it was done.
        hurried: whether it was told to hurry.

    Args:
        on_observation: gets what an activity reports.
        hurries: asked all the while; once true, the worker is told to cancel, and has all the time it needs to.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        on_event: Callable[[Case | Result], None],
        limits: WorkerLimits,
        *,
        on_observation: Callable[[ActivityReport], None] = lambda _: None,
        hurries: Callable[[], bool] = lambda: False,
    ) -> None:
        self.hurried = False
        self._hurries = hurries
        self.pending = list(cases)
        self.provisional: dict[Case, Result] = {}
        self.started: list[Case] = []
        self.statuses: set[Status] = set()
        self.kept: dict[Case, Result] = {}
        self.ended: Ended | None = None
        self._cases = tuple(cases)
        self._on_event = on_event
        self._on_observation = on_observation
        self._observed = 0
        self._limits = limits
        self._seconds_in = _stopwatch()
        self._begun = False
        self._last: Case | None = None  # whose turn it was when the worker ended
        self._cancelled_s: float | None = None

    def follow(self, worker: Worker, directory: Path, cancelled: IsCancelled) -> Failure | None:
        """Pass on what the journal in `directory` says until the task ends or must end; return why it failed."""
        new_events, turn, kills = journal_reader(directory), turn_word(directory, create=True), oom_kills()
        most_bytes = self._limits.memory_bytes or self._share_of_memory(worker)
        worker.attribute_output_to(lambda: self._at_work(read_turn(turn)))
        worker.begin(directory)
        while True:
            exit_code = worker.exit_code()  # first, so that all a process wrote before it ended is read
            self._pass_on(new_events(), worker)
            if self.ended is not None:
                return Failure(Status.ERROR, self.ended.error) if self.ended.error else None
            if exit_code is not None:
                self._last = self._at_work(read_turn(turn))
                return failure_of_exit(exit_code, kills)
            if not self.hurried and self._hurries():
                (directory / CANCEL).touch()
                self.hurried = True
            failure = self._cancel(directory, cancelled) or self._timeout(read_turn(turn))
            if failure := failure or self._too_large(worker.resident_bytes(), most_bytes, read_turn(turn)):
                return failure
            worker.wait(TICK_S)

    def suspects(self, failure: Failure) -> list[Case]:
        """Return the cases one of which caused `failure`: the one it names, those taken up, or the only one left.

        The last of them is the one to look at first: the process ended in its turn. None where the worker ended before
        it took up the task: it may have ended while it had nothing to do.
        """
        if failure.case in self.pending:
            return [failure.case]
        if not self._begun and failure.status is not Status.TIMEOUT:
            return []
        started = sorted(self.started, key=lambda case: case == self._last)
        return started or (self.pending if len(self.pending) == 1 else [])

    def report_kept(self, worker_failure: Failure) -> bool:
        """Report the results that stand; return whether there were any: then the failure is that of a further call."""
        found = tuple(self.kept.values())
        for result in found:
            LOG.warning("%s, called on one element: %s", result.case.implementation, worker_failure.reason)
            self._note(result)
            self._on_event(result)
        return bool(found)

    def _at_work(self, turn: Turn) -> Case | None:
        return self._cases[turn.index] if turn.count else None

    def _pass_on(self, events: Iterable[Event], worker: Worker) -> None:
        for event in events:
            if isinstance(event, Begun):
                self._begun = True
            elif isinstance(event, Ended):
                self.ended = event
            elif isinstance(event, ActivityReport):
                self._observed += 1
                self._on_observation(event)
            elif isinstance(event, StandingResult):
                self.kept[event.result.case] = event.result
            else:
                self._note(event)
                self._on_event(_with_output_flag(event, worker))

    def _note(self, event: Case | Result) -> None:
        case = event.case if isinstance(event, Result) else event
        if isinstance(event, Result) and event.provisional:
            self.provisional[case] = event
            return
        self.started = [earlier for earlier in self.started if earlier != case]
        if isinstance(event, Result):
            self.pending.remove(case)
            self.provisional.pop(case, None)
            self.kept.pop(case, None)
            self.statuses.add(event.status)
        else:
            self.started.append(case)

    def _cancel(self, directory: Path, cancelled: IsCancelled) -> Failure | None:
        """Tell the worker of a cancellation; return it once the worker had its time to obey."""
        if self._cancelled_s is None and (stop := cancelled()):
            (directory / (LEAVE if stop == LEAVE_OFF else CANCEL)).touch()
            self._cancelled_s = time.monotonic()
        if self._cancelled_s is None or time.monotonic() - self._cancelled_s < self._limits.grace_s:
            return None
        return CANCELLATION

    def _timeout(self, turn: Turn) -> Failure | None:
        case = self._at_work(turn)
        limit_s = self._limits.of_turn(case, turn.expected_s) if case else self._limits.start_s
        if self._seconds_in((self._begun, turn, self._observed)) <= limit_s:
            return None
        what = "no result" if case else "nothing was reported" if self._begun else "the worker did not start"
        more = ": --time-limit sets another limit" if case and turn.expected_s is None else ""
        return Failure(Status.TIMEOUT, f"{what} within {format_seconds(limit_s)}{more}", case)

    def _share_of_memory(self, worker: Worker) -> int | None:
        free = free_host_bytes()
        share = SHARE_OF_USERS if any(OF_USERS in case.implementation for case in self._cases) else USABLE_SHARE
        return None if free is None else worker.resident_bytes() + int(share * free)

    def _too_large(self, held_bytes: int, most_bytes: int | None, turn: Turn) -> Failure | None:
        if most_bytes is None or held_bytes <= most_bytes:
            return None
        reason = (
            f"its process took more than {format_gigabytes(most_bytes)} of memory: --memory-limit sets another limit"
        )
        return Failure(Status.OUT_OF_MEMORY, reason, self._at_work(turn))


def _with_output_flag(event: Case | Result, worker: Worker) -> Case | Result:
    if isinstance(event, Result) and worker.output_was_cut(event.case):
        return replace(event, flags=(*event.flags, PRINTED))
    return event


def _stopwatch() -> Callable[[object], float]:
    """Return what tells for how long a state has been the same, but for seconds in which this process stood still."""
    last: object = None
    seconds = 0.0
    looked_s = time.monotonic()

    def seconds_in(state: object) -> float:
        nonlocal last, seconds, looked_s
        now_s = time.monotonic()
        passed_s = min(now_s - looked_s, LONGEST_TICK_S)
        seconds = seconds + passed_s if state == last else 0.0
        last = state
        looked_s = now_s
        return seconds

    return seconds_in
