"""Claims one run after the other, measures it group by group and stores each result as it arrives."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from threading import Event

from gpuexplore.errors import GpuExploreError, StoreUnavailable
from gpuexplore.jobs.engines import Engine
from gpuexplore.jobs.engines.crash_limit import CrashLimit
from gpuexplore.jobs.supervisor.claimed_run import ClaimedRun
from gpuexplore.jobs.supervisor.heartbeat import Heartbeat
from gpuexplore.jobs.supervisor.housekeeping import Housekeeping
from gpuexplore.model import Case, Result, RunState
from gpuexplore.store import Store
from gpuexplore.store.leases import names_of

LOG = logging.getLogger(__name__)
POLL_S = 0.05
RETRY_S = 1.0


def serve(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: Event, once: bool = False) -> None:
    """Measure what is queued until `stop` is set, or with `once` until nothing waits.

    A database that cannot be used is tried again, for as long as it takes.
    """
    housekeeping = Housekeeping(store, heartbeat.instance)
    while not stop.is_set():
        heartbeat.turn()
        try:
            housekeeping.do_what_is_due()
            busy = measure_next(store, engine, heartbeat, stop=stop)
        except StoreUnavailable as error:
            LOG.warning("%s", error)
            stop.wait(RETRY_S)
            continue
        if not busy and once:
            return
        if not busy:
            stop.wait(POLL_S)


def measure_next(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: Event) -> bool:
    """Measure the run whose turn it is until it ends or yields; return whether there was one."""
    ids = device_ids(heartbeat)
    claim = store.claim(heartbeat.instance.name, ids)
    if claim is None:
        return False
    LOG.info("Run %s, attempt %d: %d cases", claim.run_id, claim.attempt, len(claim.remaining))
    run = ClaimedRun(store, claim, stop)
    with heartbeat.measuring():
        try:
            _measure_groups(engine, run, heartbeat)
        except Exception as error:
            LOG.exception("Run %s failed", claim.run_id)
            run.book()
            run.finish(RunState.FAILED, str(error) if isinstance(error, GpuExploreError) else _named(error))
    return True


def device_ids(heartbeat: Heartbeat) -> frozenset[str]:
    """Return the names by which runs ask for this host's devices."""
    return names_of(heartbeat.instance.host, (device.id for device in heartbeat.devices))


def _measure_groups(engine: Engine, run: ClaimedRun, heartbeat: Heartbeat) -> None:
    def should_stop() -> bool:
        heartbeat.turn()
        return run.should_stop()

    take = CrashLimit(run.take)
    local = {device.id for device in heartbeat.devices}
    for _, group in groupby(run.claim.remaining, key=lambda case: case.group):
        if run.must_yield(device_ids(heartbeat)):
            LOG.info("Run %s yields after %.1f s", run.claim.run_id, run.held_s)
            run.release()
            return
        _measure_group(engine, _as_this_host_names_them(tuple(group), local), take, should_stop)
        run.book()
        if run.lost:
            LOG.warning("Run %s belongs to another attempt now", run.claim.run_id)
            return
        if run.stop.is_set() and not run.cancelled:
            run.release()
            return
    run.finish(RunState.DONE)


def _measure_group(
    engine: Engine, named: Mapping[Case, Case], take: Callable[[Case | Result], None], should_stop: Callable[[], bool]
) -> None:
    def take_as_asked_for(event: Case | Result) -> None:
        take(named[event] if isinstance(event, Case) else replace(event, case=named[event.case]))

    engine.measure(tuple(named), take_as_asked_for, should_stop)


def _as_this_host_names_them(group: Sequence[Case], device_ids: Collection[str]) -> dict[Case, Case]:
    """Return the cases to measure, each with the case that was asked for: `lab1/cuda:0` is `cuda:0` on lab1."""
    return {
        case if case.device in device_ids else replace(case, device=case.device.rpartition("/")[2]): case
        for case in group
    }


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
