"""One claimed run while it is measured: what the engine reports is kept until the database has it."""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from threading import Event
from typing import Literal

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core.errors import CANCELLED_BY_OWNER, GpuExploreError, StoreUnavailable
from gpuexplore.core.model import Case, Result, RunState, Status
from gpuexplore.jobs.engines import LEAVE_OFF
from gpuexplore.measure.sample import slow_cases
from gpuexplore.store import Store, WorkClaim

DeviceIds = Callable[[], Collection[str]]

LOG = logging.getLogger(__name__)
CANCEL_POLL_S = 0.2  # each poll reads the database, and disturbs the measurement
TURN_S = 5.0  # a run that held its devices for so long yields to other owners
YIELD_POLL_S = 0.5
BOOK_S = 5.0  # device seconds are booked so often
RETRY_S = 1.0
MOST_RETRY_S = 10.0
MAX_CRASHES = 3


class ClaimedRun:
    """A run between its claim and its end.

    Args:
        turn: notes that the supervisor goes on while it waits for the database: it would count as stuck otherwise,
            and what it keeps would die with it.
        available: returns the devices that could be measured on next if this run yielded.

    Attributes:
        lost: the claim no longer holds: another supervisor has the run.
        cancelled: its owner asked to stop.
        yields: it gives way to another owner's run.
        held_s: seconds of devices since the claim.
    """

    def __init__(
        self,
        store: Store,
        claim: WorkClaim,
        stop: Event,
        *,
        turn: Callable[[], None] = lambda: None,
        available: DeviceIds = frozenset,
    ) -> None:
        self._turn = turn
        self._available = available
        self.store = store
        self.claim = claim
        self.stop = stop
        self.lost = self.cancelled = self.yields = False
        self.held_s = 0.0
        self._not_passed: dict[Case, None] = {}
        self._passed = False  # a first pass was made since the claim
        self._settled = 0
        self._look = throttled(self._gives_way, YIELD_POLL_S)
        self._first_s: float | None = None
        self._writes: deque[Callable[[], bool]] = deque()
        self._retry_s = 0.0
        self._ask = throttled(self._cancel_requested, CANCEL_POLL_S)

    def begin(self) -> None:
        """Note that a device works for it from now on, unless it does already."""
        self._first_s = self._first_s or time.monotonic()

    def observe(self, observation: ActivityReport) -> None:
        """Store what an activity reports, now or later."""
        self._write(lambda: self.store.add_observation(self.claim, observation))

    def take(self, event: Case | Result) -> None:
        """Store what the engine reports; what the database does not take now is stored later."""
        self.begin()
        claim = self.claim
        if isinstance(event, Case):
            if not self._writes:
                self._try(lambda: self.store.set_current(claim, event))
            return
        slow_cases.note(event)
        self._not_passed.pop(event.case, None)
        if event.provisional and not self._passed and self._has_passed():
            self._passed = True
            self._look = throttled(self.must_yield, YIELD_POLL_S)  # at once
        self._settled += not event.provisional
        if self.is_cut_short:
            self._keep_for_later(claim, event)
        else:
            self._write(lambda: self.store.add_result(claim, event))
        if time.monotonic() - (self._first_s or 0.0) > BOOK_S:
            self.book()
            self.begin()

    def _keep_for_later(self, claim: WorkClaim, result: Result) -> None:
        """Store what a measurement that was cut short has as provisional: whoever goes on measures the case again."""
        if result.status is Status.OK:
            self._write(lambda: self.store.add_result(claim, replace(result, provisional=True)))
        elif result.status is not Status.CANCELLED:
            self._write(lambda: self.store.add_result(claim, result))

    @property
    def is_cut_short(self) -> bool:
        """Whether the run stops now to go on later: its owner did not ask for that."""
        return (self.yields or self.stop.is_set()) and not self.cancelled

    def begin_pass(self, cases: Collection[Case]) -> None:
        """Note what is measured next: the run does not yield before a first pass met each of them that is not slow."""
        self._not_passed = dict.fromkeys(cases)

    def _has_passed(self) -> bool:
        """Return whether a first pass met every case but those that the worker leaves for later."""
        groups = groupby(self._not_passed, key=lambda case: case.group)
        return all(slow_cases.are_slow(tuple(group)) for _, group in groups)

    def should_stop(self) -> bool | Literal["leave off"]:
        """Return whether this run need not be measured any further now."""
        self._turn()
        self._flush()
        self.cancelled = self.cancelled or self._ask()
        if self.lost or self.stop.is_set() or self.cancelled:
            return True
        return LEAVE_OFF if self.yields or self._look() else False

    def book(self) -> None:
        """Note the seconds a device has worked since the last time."""
        if self._first_s is None:
            return
        device_s, self._first_s = time.monotonic() - self._first_s, None
        self.held_s += device_s
        self._write(lambda: self.store.add_device_seconds(self.claim, device_s))

    def must_yield(self) -> bool:
        """Return whether another owner's run goes first; noted in `yields`.

        That is one that waits for its first pass, once this one has made its own; after TURN_S any. Not before a first
        pass met every case that is not slow; and a run of which one stood already settles a case first, so that each
        turn brings it nearer to its end.
        """
        claim, since_s = self.claim, time.monotonic() - self._first_s if self._first_s else 0.0
        if isinstance(claim.work, Activity) or not self._has_passed():
            return False
        if self._settled == len(claim.remaining) or (claim.passed and not self._settled):
            return False
        is_long = self.held_s + since_s >= TURN_S
        if not is_long and not (self._passed and not claim.passed):
            return False
        waits = self.store.somebody_waits if is_long else self.store.first_pass_waits
        try:
            self.yields = waits(self.claim.owner, self._available())
        except StoreUnavailable:
            return False
        return self.yields

    def _gives_way(self) -> bool:
        """Return whether it stops now to go on later: its device was paused, or another owner's run waits."""
        if isinstance(self.claim.work, Activity):
            return False
        with suppress(StoreUnavailable):
            if self.store.is_paused(self.claim.devices, self._available()):
                self.yields = True
        return self.yields or self.must_yield()

    def finish(self, state: RunState, reason: str | None = None) -> None:
        """End the run, as soon as the database takes its results and its end."""
        if self.cancelled and state is RunState.DONE:
            state, reason = RunState.CANCELLED, CANCELLED_BY_OWNER
        self._until_written(lambda: self.store.finish(self.claim, state, reason=reason))

    def give_back(self) -> None:
        """Let what is left of the run wait for its devices, unless its owner asked to stop."""
        if self.should_stop() and self.cancelled:
            self.finish(RunState.DONE)
        else:
            self.release()

    def release(self) -> None:
        """Give the run back to the queue with the results it has."""
        self._until_written(lambda: self.store.release(self.claim))

    def _until_written(self, write: Callable[[], bool]) -> None:
        """Write all there is to write, and `write` last, again and again until the database takes it.

        A supervisor that is told to stop meanwhile gives up: its successor finds the run with the results it has.
        """
        self._writes.append(write)
        wait_s = RETRY_S
        while self._writes and not self.lost:
            self._turn()
            self._retry_s = 0.0
            self._flush()
            if self._writes and not self.lost and self.stop.wait(wait_s):
                LOG.error("Run %s: %d writes were given up", self.claim.run_id, len(self._writes))
                return
            wait_s = min(2 * wait_s, MOST_RETRY_S)

    def _write(self, write: Callable[[], bool]) -> None:
        self._writes.append(write)
        self._flush()

    def _flush(self) -> None:
        while self._writes and not self.lost and time.monotonic() >= self._retry_s:
            if self._try(self._writes[0]):
                self._writes.popleft()

    def _try(self, write: Callable[[], bool]) -> bool:
        """Return whether the database took `write`; when the claim no longer holds, nothing is written any more."""
        try:
            self.lost = not write()
        except StoreUnavailable as error:
            LOG.warning("Run %s: kept for later: %s", self.claim.run_id, error)
            self._retry_s = time.monotonic() + RETRY_S
            return False
        return True

    def _cancel_requested(self) -> bool:
        try:
            return self.store.cancel_requested(self.claim.run_id)
        except StoreUnavailable:
            return False  # the next write tells of it in the log


def throttled(
    ask: Callable[[], bool], every_s: float, clock: Callable[[], float] = time.monotonic
) -> Callable[[], bool]:
    """Return `ask`, a costly question, so that its answer is reused for `every_s` seconds."""
    due_s = clock()
    answer = False

    def asked() -> bool:
        nonlocal due_s, answer
        if clock() >= due_s:
            answer = ask()
            due_s = clock() + every_s
        return answer

    return asked


def crash_limit(on_event: Callable[[Case | Result], None]) -> Callable[[Case | Result], None]:
    """Return what passes on the reports on one run, and raises out of `Engine.measure` at the third crash in a row.

    What is wrong where cases crash one after the other is not the next case: the GpuExploreError names the three.

    Args:
        on_event: gets every event first, so that the results are kept, the last crash's too.
    """
    crashed: list[Case] = []
    passed: set[Case] = set()

    def take(event: Case | Result) -> None:
        on_event(event)
        if isinstance(event, Result) and event.status is Status.CRASHED:
            crashed.append(event.case)
        elif isinstance(event, Result) and not (event.provisional and event.case in passed):
            crashed.clear()  # what is measured again after a crash tells nothing new
            passed.add(event.case)
        if len(crashed) == MAX_CRASHES:
            raise GpuExploreError(f"{MAX_CRASHES} crashes in a row: {'; '.join(map(_name, crashed))}")

    return take


def _name(case: Case) -> str:
    return f"{case.operation} {case.implementation} {case.dtype} {case.shape} on {case.device}"
