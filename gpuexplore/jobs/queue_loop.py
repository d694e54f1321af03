"""The supervisor's loop: claims the next run, has the engine measure it, and stores what comes until it ends or yields.

On one host that is one run at a time, as whatever runs disturbs what is measured; the devices of a cluster are measured
on concurrently, each run in a thread of its own. What the engine reports is kept until the database has it. A run whose
measuring raises an error fails, alone; a database that does not answer is tried again, for as long as it takes.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from typing import Literal

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core import (
    CANCELLED_BY_OWNER,
    Case,
    DeviceLost,
    GpuExploreError,
    Result,
    RunState,
    Status,
    StoreUnavailable,
)
from gpuexplore.hardware.identity import why_other_device
from gpuexplore.jobs.engines import PREEMPT, Engine, batches_of
from gpuexplore.jobs.heartbeat import Heartbeat, Housekeeping
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.sample import slow_cases
from gpuexplore.store import Store, WorkClaim, names_of

LOG = logging.getLogger("gpuexplore.jobs.supervisor")
POLL_S = 0.05
CANCEL_POLL_S = 0.2  # each poll reads the database, and disturbs the measurement
TIME_SLICE_S = 5.0  # a run that used its devices for so long yields to other owners
YIELD_POLL_S = 0.5
RETRY_S = 1.0
_Lanes = dict[threading.Thread, frozenset[str]]  # the devices that each thread measures on


def serve(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: threading.Event, once: bool = False) -> None:
    """Measure what is queued until `stop` is set, or with `once` until nothing waits."""
    housekeeping = Housekeeping(store, heartbeat.instance)
    with _lanes() as lanes:
        while not stop.is_set():
            heartbeat.tick()
            try:
                housekeeping.do_what_is_due()
                busy = _measure_next(store, engine, heartbeat, lanes=lanes, stop=stop)
            except StoreUnavailable as error:
                LOG.warning("%s", error)
                stop.wait(RETRY_S)
                continue
            if not busy and once and not any(lane.is_alive() for lane in lanes):
                return
            if not busy:
                stop.wait(POLL_S)


def _measure_next(store: Store, engine: Engine, heartbeat: Heartbeat, *, lanes: _Lanes, stop: threading.Event) -> bool:
    """Measure the next run of the queue on the devices that are free; return whether there was one.

    It has ended or yielded then, or is measured in a lane of its own where devices share no host.
    """

    def free() -> frozenset[str]:
        ids = [device.id for device in heartbeat.devices]
        names = frozenset(ids) if engine.side_by_side else names_of(heartbeat.instance.host, ids)
        return names.difference(*(used for lane, used in list(lanes.items()) if lane.is_alive()))

    claim = store.claim(heartbeat.instance.name, free())
    if claim is None:
        return False
    devices = frozenset(claim.devices)
    run = _ClaimedRun(store, claim, heartbeat, stop=stop, available=lambda: free() | devices)
    if not engine.side_by_side:
        _measure(engine, run)
        return True
    for ended in [lane for lane in lanes if not lane.is_alive()]:
        del lanes[ended]
    lane = threading.Thread(target=_measure, args=(engine, run), name="lane")
    lane.start()
    lanes[lane] = devices
    return True


@contextmanager
def _lanes() -> Iterator[_Lanes]:
    """Give the lanes that are in use; leaving waits until none is."""
    lanes: _Lanes = {}
    try:
        yield lanes
    finally:
        for lane in lanes:
            lane.join()


def _measure(engine: Engine, run: "_ClaimedRun") -> None:
    """Measure a run until it ends or yields."""
    run_id = run.claim.run_id
    with run.heartbeat.measuring():
        try:
            if isinstance(run.claim.work, Activity):
                # Do an activity in one piece; one that the supervisor's end interrupts begins anew with its successor
                LOG.info("Run %s, attempt %d: %s", run.claim.run_id, run.claim.attempt, run.claim.work)
                run.begin()
                here = _names_here(run.heartbeat)
                engine.perform(
                    replace(run.claim.work, device=here.get(run.claim.work.device, run.claim.work.device)),
                    run.observe,
                    run.should_stop,
                )
                run.book()
                if run.stop.is_set() and not run.cancelled:
                    run.release()
                elif not run.lost:
                    run.finish(RunState.DONE)
            else:
                _measure_cases(engine, run)
        except DeviceLost as error:
            LOG.warning("Run %s is queued again: %s", run_id, error)
            run.book()
            run.give_back()
        except Exception as error:
            LOG.exception("Run %s failed", run_id)
            run.book()
            run.finish(RunState.FAILED, describe_error(error))


def _measure_cases(engine: Engine, run: "_ClaimedRun") -> None:
    claim = run.claim
    LOG.info("Run %s, attempt %d: %d cases", claim.run_id, claim.attempt, len(claim.remaining))
    if (claim.done or claim.passed) and (reason := _begun_elsewhere(run)):
        run.finish(RunState.FAILED, reason)
        return
    take = _crash_limit(run.take)
    for batch in batches_of(claim.remaining):
        if not run.must_yield():
            run.begin_pass(batch)
            _measure_batch(engine, run, batch, take)
            run.book()
        if run.lost:
            LOG.warning("Run %s now belongs to another attempt", claim.run_id)
            return
        if run.is_cut_short:
            LOG.info("Run %s is queued again after %.1f s", claim.run_id, run.used_s)
            run.release()
            return
    run.finish(RunState.DONE)


def _begun_elsewhere(run: "_ClaimedRun") -> str | None:
    """Return why a run cannot go on here: another processor began it, as where a home was copied; None where it can."""
    here = {device.id: device for device in run.heartbeat.devices}
    for before in run.store.devices_of_results(run.claim.run_id):
        now = here.get(before.id)
        why = None if now is None else why_other_device(before, now)
        if now and why and (before.title != now.title or (before.identity and now.identity)):  # else it is not known
            return (
                f"{now.id} is now another processor, {now.title} ({why}), but the results of a run must come from one "
                "machine: start it again"
            )
    return None


def _measure_batch(
    engine: Engine, run: "_ClaimedRun", cases: Sequence[Case], take: Callable[[Case | Result], None]
) -> None:
    """Measure cases as devices are named here, and take results by the names asked for."""
    here = _names_here(run.heartbeat)
    asked = {replace(case, device=here.get(case.device, case.device)): case for case in cases}

    def take_as_asked_for(event: Case | Result) -> None:
        take(asked[event] if isinstance(event, Case) else replace(event, case=asked[event.case]))

    engine.measure(tuple(asked), take_as_asked_for, run.should_stop)


def _names_here(heartbeat: Heartbeat) -> Mapping[str, str]:
    """Return the ids of devices by the names that runs may ask for: `lab1/cuda:0` is `cuda:0` on lab1."""
    return {f"{heartbeat.instance.host}/{device.id}": device.id for device in heartbeat.devices}


class _ClaimedRun:
    """A run between its claim and its end.

    Args:
        heartbeat: notes that the supervisor goes on while it waits for the database: it would count as stuck
            otherwise, and what it keeps would die with it.
        available: returns the devices that could be measured on next if this run yielded.

    Attributes:
        lost: the claim is no longer valid: another supervisor has the run.
        cancelled: its owner asked to stop.
        yields: it gives way to another owner's run.
        used_s: seconds of devices since the claim.
    """

    def __init__(
        self,
        store: Store,
        claim: WorkClaim,
        heartbeat: Heartbeat,
        *,
        stop: threading.Event,
        available: Callable[[], Collection[str]],
    ) -> None:
        self._available = available
        self.store = store
        self.claim = claim
        self.heartbeat = heartbeat
        self.stop = stop
        self.lost = self.cancelled = self.yields = False
        self.used_s = 0.0
        self._not_passed: dict[Case, None] = {}
        self._passed = False  # a first pass was made since the claim
        self._settled = 0
        self._look = throttled(self._gives_way, YIELD_POLL_S)
        self._began_s: float | None = None
        self._writes: deque[Callable[[], bool]] = deque()
        self._retry_s = 0.0
        self._ask = throttled(self._cancel_requested, CANCEL_POLL_S)

    def begin(self) -> None:
        """Note that a device works for it from now on, unless it does already."""
        self._began_s = self._began_s or time.monotonic()

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
        kept = event
        is_cut_short = self.is_cut_short
        if is_cut_short and event.status is Status.OK:  # the next attempt measures the case again
            kept = replace(event, provisional=True)
        if not (is_cut_short and event.status is Status.CANCELLED):
            self._write(lambda: self.store.add_result(claim, kept))
        if time.monotonic() - (self._began_s or 0.0) > 5:
            self.book()
            self.begin()

    @property
    def is_cut_short(self) -> bool:
        """True if the run stops now and continues later, without a request of its owner."""
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
        self.heartbeat.tick()
        self._flush()
        self.cancelled = self.cancelled or self._ask()
        if self.lost or self.stop.is_set() or self.cancelled:
            return True
        return PREEMPT if self.yields or self._look() else False

    def book(self) -> None:
        """Note the seconds a device has worked since the last time."""
        if self._began_s is None:
            return
        device_s = time.monotonic() - self._began_s
        self._began_s = None
        self.used_s += device_s
        self._write(lambda: self.store.add_device_seconds(self.claim, device_s))

    def must_yield(self) -> bool:
        """Return whether another owner's run goes first; noted in `yields`.

        That is one that waits for its first pass, once this one has made its own; after TIME_SLICE_S any. Not before a
        first pass met every case that is not slow; and a run that has provisional results from before settles a case
        first, so that each time slice brings it nearer to its end.
        """
        claim = self.claim
        since_s = time.monotonic() - self._began_s if self._began_s else 0.0
        if isinstance(claim.work, Activity) or not self._has_passed():
            return False
        if self._settled == len(claim.remaining) or (claim.passed and not self._settled):
            return False
        is_long = self.used_s + since_s >= TIME_SLICE_S
        if not is_long and not (self._passed and not claim.passed):
            return False
        waits = self.store.another_owner_waits if is_long else self.store.first_pass_waits
        try:
            self.yields = waits(claim.owner, self._available())
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
            state = RunState.CANCELLED
            reason = CANCELLED_BY_OWNER
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

        A supervisor that has to stop meanwhile gives up: its successor finds the run with the results it has.
        """
        self._writes.append(write)
        wait_s = RETRY_S
        while self._writes and not self.lost:
            self.heartbeat.tick()
            self._retry_s = 0.0
            self._flush()
            if self._writes and not self.lost and self.stop.wait(wait_s):
                LOG.error("Run %s: %d writes were abandoned", self.claim.run_id, len(self._writes))
                return
            wait_s = min(2 * wait_s, 10.0)

    def _write(self, write: Callable[[], bool]) -> None:
        self._writes.append(write)
        self._flush()

    def _flush(self) -> None:
        while self._writes and not self.lost and time.monotonic() >= self._retry_s:
            if self._try(self._writes[0]):
                self._writes.popleft()

    def _try(self, write: Callable[[], bool]) -> bool:
        """Return whether the database took `write`; when the claim is no longer valid, nothing is written any more."""
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
            return False  # the next write logs it


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


def _crash_limit(on_event: Callable[[Case | Result], None]) -> Callable[[Case | Result], None]:
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
            crashed.clear()  # what is measured again after a crash is no evidence
            passed.add(event.case)
        if len(crashed) == 3:
            names = (
                f"{case.operation} {case.implementation} {case.dtype} {case.shape} on {case.device}" for case in crashed
            )
            raise GpuExploreError(f"3 crashes in a row: {'; '.join(names)}")

    return take
