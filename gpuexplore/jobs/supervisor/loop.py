"""Claims one run after the other, measures it group by group and stores each result as it arrives."""

import logging
from itertools import groupby
from threading import Event

from gpuexplore.errors import CANCELLED_BY_OWNER, GpuExploreError
from gpuexplore.jobs.engines import Engine
from gpuexplore.jobs.supervisor.heartbeat import Heartbeat
from gpuexplore.jobs.throttle import Throttled
from gpuexplore.model import Case, Result, RunState, Status
from gpuexplore.store import RunClaim, Store

LOG = logging.getLogger(__name__)
POLL_S = 0.05
CANCEL_POLL_S = 0.2  # each poll reads the database, and disturbs the measurement
ORPHANS_POLL_S = 30.0


def serve(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: Event, once: bool = False) -> None:
    """Measure what is queued until `stop` is set, or with `once` until nothing waits."""
    requeue = Throttled(lambda: requeue_orphans(store, heartbeat.name), ORPHANS_POLL_S)
    while not stop.is_set():
        requeue()
        claim = store.claim(heartbeat.name)
        if claim is not None:
            with heartbeat.measuring():
                perform(store, engine, claim, stop=stop)
        elif once:
            return
        else:
            stop.wait(POLL_S)


def requeue_orphans(store: Store, name: str) -> bool:
    """Queue again what a dead supervisor left running; return whether there was anything."""
    count = store.requeue_orphans(name)
    if count:
        LOG.warning("%d runs were left by a supervisor that died: they are queued again", count)
    return count > 0


def perform(store: Store, engine: Engine, claim: RunClaim, *, stop: Event) -> None:
    """Measure what is left of one run; an exception fails this run and no other."""
    LOG.info("Run %s, attempt %d: %d cases", claim.run_id, claim.attempt, len(claim.remaining))
    try:
        _measure_groups(engine, ClaimedRun(store, claim), stop)
    except Exception as error:
        LOG.exception("Run %s failed", claim.run_id)
        reason = str(error) if isinstance(error, GpuExploreError) else f"{type(error).__name__}: {error}"
        store.finish(claim, RunState.FAILED, reason=reason)


class ClaimedRun:
    """One claimed run while it is measured.

    Attributes:
        lost: the claim no longer holds: another supervisor has the run.
        cancelled: a case ended because the owner asked to stop.
    """

    def __init__(self, store: Store, claim: RunClaim) -> None:
        self.store, self.claim = store, claim
        self.lost = self.cancelled = False
        self._cancel_requested = Throttled(lambda: store.cancel_requested(claim.run_id), CANCEL_POLL_S)

    def take(self, event: Case | Result) -> None:
        """Store what the engine reports."""
        if isinstance(event, Result):
            kept = self.store.add_result(self.claim, event)
            self.cancelled = self.cancelled or event.status is Status.CANCELLED
        else:
            kept = self.store.set_current(self.claim, event)
        self.lost = self.lost or not kept

    def should_stop(self) -> bool:
        """Return whether this run need not be measured any further."""
        return self.lost or self._cancel_requested()


def _measure_groups(engine: Engine, run: ClaimedRun, stop: Event) -> None:
    for _, group in groupby(run.claim.remaining, key=lambda case: case.group):
        if run.lost:
            LOG.warning("Run %s belongs to another attempt now", run.claim.run_id)
            return
        if stop.is_set():
            run.store.release(run.claim)
            return
        engine.measure(tuple(group), run.take, run.should_stop)
    if run.cancelled:
        run.store.finish(run.claim, RunState.CANCELLED, reason=CANCELLED_BY_OWNER)
    else:
        run.store.finish(run.claim, RunState.DONE)
