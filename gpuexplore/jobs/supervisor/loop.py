"""The supervisor's loop: runs are claimed, and measured in a thread each while they use different devices."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Self

from gpuexplore.devices.identity import why_other_device
from gpuexplore.errors import DeviceLost, GpuExploreError, StoreUnavailable
from gpuexplore.jobs.engines import Engine, IsCancelled, batches_of
from gpuexplore.jobs.supervisor.claimed_run import ClaimedRun
from gpuexplore.jobs.supervisor.heartbeat import Heartbeat
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.model import Case, Result, RunState, Status
from gpuexplore.store import ActivityClaim, Instance, RunClaim, Store
from gpuexplore.store.leases import names_of

# What a supervisor does for the queue now and then: the runs of the dead, of the gone, and the passing of time.


LOOK_S = 5.0
ORDER_S = 60.0
JUMP_S = 60.0  # by which two clocks differ more than before: one of them was set, or the host slept
KEPT = timedelta(days=30)  # a deleted run, which its owner may want back
SEEN_AGAIN_S = 180.0  # in which every open page says again that its owner is there, once a minute


class Housekeeping:
    """Keeps the queue in order.

    A supervisor counts as dead when its lease had expired at two looks in a row, or when it shared this one's locks:
    then the first look tells, for this one holds them now. One look alone would be deceived by a clock that is set
    forward; so would the absence of an owner, so that nobody counts as gone in the minutes after that.
    """

    def __init__(self, store: Store, instance: Instance, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._instance, self._clock = store, instance, clock
        self._silent: frozenset[str] = frozenset()
        self._look_s = self._order_s = self._absence_counts_s = clock()
        self._ahead_s: float | None = None

    def do_what_is_due(self) -> None:
        """Do what has not been done for too long.

        Raises:
            StoreUnavailable: the database cannot be used now; what was due stays due.
        """
        now_s = self._clock()
        if now_s >= self._look_s:
            self._take_over()
            self._drop_abandoned(now_s)
            self._look_s = now_s + LOOK_S
        if now_s >= self._order_s:
            self._store.order_all()
            self._store.purge_deleted((self._store.clock() - KEPT).isoformat(timespec="microseconds"))
            self._order_s = now_s + ORDER_S

    def _drop_abandoned(self, now_s: float) -> None:
        ahead_s, before_s = self._store.epoch_s() - now_s, self._ahead_s
        self._ahead_s = ahead_s
        if before_s is not None and abs(ahead_s - before_s) > JUMP_S:
            LOG.warning("The clock was set by %+.0f s: no owner counts as gone for a while", ahead_s - before_s)
            self._absence_counts_s = now_s + SEEN_AGAIN_S
        if now_s >= self._absence_counts_s and (dropped := self._store.drop_abandoned()):
            LOG.info("%d runs waited for owners who have gone: they are cancelled", dropped)

    def _take_over(self) -> None:
        silent = self._store.silent_supervisors()
        count = self._store.take_over(self._instance, silent & self._silent)
        self._silent = silent
        if count:
            LOG.warning("%d runs were left by a supervisor that died: they are queued again", count)


# Ends a run whose cases crash one after the other: what is wrong there is not the next case.


MAX_CRASHES = 3


class CrashLimit:
    """Passes on what an engine reports on one run, and raises out of `Engine.measure` at the third crash in a row.

    Args:
        on_event: gets every event first, so that the results are kept, the last crash's too.
    """

    def __init__(self, on_event: Callable[[Case | Result], None]) -> None:
        self._on_event = on_event
        self._crashed: list[Case] = []
        self._passed: set[Case] = set()

    def __call__(self, event: Case | Result) -> None:
        """Pass on `event`.

        Raises:
            GpuExploreError: it is the third crash in a row; the text names the three cases.
        """
        self._on_event(event)
        if isinstance(event, Result) and event.status is Status.CRASHED:
            self._crashed.append(event.case)
        elif isinstance(event, Result) and not (event.provisional and event.case in self._passed):
            self._crashed = []  # what is measured again after a crash tells nothing new
            self._passed.add(event.case)
        if len(self._crashed) == MAX_CRASHES:
            raise GpuExploreError(f"{MAX_CRASHES} crashes in a row: {'; '.join(map(_name, self._crashed))}")


def _name(case: Case) -> str:
    return f"{case.operation} {case.implementation} {case.dtype} {case.shape} on {case.device}"


LOG = logging.getLogger(__name__)
POLL_S = 0.05
RETRY_S = 1.0


class _Lanes:
    """Knows which devices are in use; leaving the context waits until none is. Used by one thread, but for `free`."""

    def __init__(self) -> None:
        self._in_use: dict[threading.Thread, frozenset[str]] = {}

    def start(self, devices: frozenset[str], measure: Callable[[], None]) -> None:
        """Call `measure` in a new thread; `devices` are in use until it returns."""
        lane = threading.Thread(target=measure, name="lane")
        lane.start()
        running = {thread: devices for thread, devices in self._in_use.items() if thread.is_alive()}
        self._in_use = {**running, lane: devices}

    def free(self, devices: Iterable[str]) -> frozenset[str]:
        """Return those of `devices` that no run uses."""
        return frozenset(devices).difference(*(used for lane, used in self._in_use.items() if lane.is_alive()))

    def are_free(self) -> bool:
        """Return whether no device is in use."""
        return not any(lane.is_alive() for lane in self._in_use)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for lane in self._in_use:
            lane.join()


def serve(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: Event, once: bool = False) -> None:
    """Measure what is queued until `stop` is set, or with `once` until nothing waits.

    A database that cannot be used is tried again, for as long as it takes.
    """
    housekeeping = Housekeeping(store, heartbeat.instance)
    with _Lanes() as lanes:
        while not stop.is_set():
            heartbeat.turn()
            try:
                housekeeping.do_what_is_due()
                if engine.side_by_side:
                    busy = start_next(store, engine, heartbeat, lanes=lanes, stop=stop)
                else:
                    busy = measure_next(store, engine, heartbeat, stop=stop)
            except StoreUnavailable as error:
                LOG.warning("%s", error)
                stop.wait(RETRY_S)
                continue
            if not busy and once and lanes.are_free():
                return
            if not busy:
                stop.wait(POLL_S)


def measure_next(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: Event) -> bool:
    """Measure the run whose turn it is until it ends or yields; return whether there was one."""
    claim = store.claim(heartbeat.instance.name, device_ids(heartbeat))
    if claim is None:
        return False
    run = ClaimedRun(store, claim, stop, turn=heartbeat.turn, available=lambda: device_ids(heartbeat))
    measure_claimed(engine, run, heartbeat)
    return True


def start_next(store: Store, engine: Engine, heartbeat: Heartbeat, *, lanes: _Lanes, stop: Event) -> bool:
    """Start the run whose turn it is on the devices that are free; return whether there was one."""

    def free() -> frozenset[str]:
        return lanes.free(device.id for device in heartbeat.devices)

    claim = store.claim(heartbeat.instance.name, free())
    if claim is None:
        return False
    devices = frozenset(claim.devices)
    run = ClaimedRun(store, claim, stop, turn=heartbeat.turn, available=lambda: free() | devices)
    lanes.start(devices, lambda: measure_claimed(engine, run, heartbeat))
    return True


def measure_claimed(engine: Engine, run: ClaimedRun, heartbeat: Heartbeat) -> None:
    """Measure a run until it ends or yields."""
    run_id = run.claim.run_id
    with heartbeat.measuring():
        try:
            if isinstance(run.claim, ActivityClaim):
                _perform(engine, run, run.claim, heartbeat)
            else:
                _measure_cases(engine, run, run.claim, heartbeat)
        except DeviceLost as error:
            LOG.warning("Run %s waits again: %s", run_id, error)
            run.book()
            run.give_back()
        except Exception as error:
            LOG.exception("Run %s failed", run_id)
            run.book()
            run.finish(RunState.FAILED, describe_error(error))


def device_ids(heartbeat: Heartbeat) -> frozenset[str]:
    """Return the names by which runs ask for this host's devices."""
    return names_of(heartbeat.instance.host, (device.id for device in heartbeat.devices))


def _perform(engine: Engine, run: ClaimedRun, claim: ActivityClaim, heartbeat: Heartbeat) -> None:
    """Do an activity in one piece; one that the supervisor's end interrupts begins anew with its successor."""
    activity = claim.activity
    LOG.info("Run %s, attempt %d: %s", claim.run_id, claim.attempt, activity)
    run.begin()
    here = _names_here(heartbeat)
    engine.perform(replace(activity, device=here.get(activity.device, activity.device)), run.observe, run.should_stop)
    run.book()
    if run.stop.is_set() and not run.cancelled:
        run.release()
    elif not run.lost:
        run.finish(RunState.DONE)


def _measure_cases(engine: Engine, run: ClaimedRun, claim: RunClaim, heartbeat: Heartbeat) -> None:
    LOG.info("Run %s, attempt %d: %d cases", claim.run_id, claim.attempt, len(claim.remaining))
    if (claim.done or claim.passed) and (reason := _begun_elsewhere(run.store, claim, heartbeat)):
        run.finish(RunState.FAILED, reason)
        return
    take = CrashLimit(run.take)
    for batch in batches_of(claim.remaining):
        if not run.must_yield():
            run.begin_pass(batch)
            _measure_batch(engine, _as_here(batch, heartbeat), take, run.should_stop)
            run.book()
        if run.lost:
            LOG.warning("Run %s belongs to another attempt now", run.claim.run_id)
            return
        if run.is_cut_short:
            LOG.info("Run %s waits again after %.1f s", run.claim.run_id, run.held_s)
            run.release()
            return
    run.finish(RunState.DONE)


def _begun_elsewhere(store: Store, claim: RunClaim, heartbeat: Heartbeat) -> str | None:
    """Return why a run cannot go on here: another processor began it, as where a home was copied; None where it can."""
    here = {device.id: device for device in heartbeat.devices}
    for before in store.devices_of_results(claim.run_id):
        now = here.get(before.id)
        why = None if now is None else why_other_device(before, now)
        if now and why and (before.title != now.title or (before.identity and now.identity)):  # else nobody can tell
            return (
                f"it was begun on another processor than the {now.title} that {now.id} is now ({why}), and the results "
                "of a run are of one machine: start it again"
            )
    return None


def _measure_batch(
    engine: Engine, named: Mapping[Case, Case], take: Callable[[Case | Result], None], should_stop: IsCancelled
) -> None:
    def take_as_asked_for(event: Case | Result) -> None:
        take(named[event] if isinstance(event, Case) else replace(event, case=named[event.case]))

    engine.measure(tuple(named), take_as_asked_for, should_stop)


def _as_here(cases: Sequence[Case], heartbeat: Heartbeat) -> dict[Case, Case]:
    """Return the cases as devices are named here, each with the one asked for: `lab1/cuda:0` is `cuda:0` on lab1."""
    here = _names_here(heartbeat)
    return {replace(case, device=here.get(case.device, case.device)): case for case in cases}


def _names_here(heartbeat: Heartbeat) -> Mapping[str, str]:
    return {f"{heartbeat.instance.host}/{device.id}": device.id for device in heartbeat.devices}
