"""A supervisor's life, from start to end: the one process of a host that brings queued runs to its devices.

`python -m gpuexplore.jobs.supervisor` starts it: by hand, by systemd, or by a web server that finds none
(`jobs.client`). It holds the host's lock for its database all its life, so that there is one; a second one sees that
and ends. Then it discovers the devices, opens the database, as soon as that can be used, takes its lease, which it
renews every second (`jobs.heartbeat`), and warms up a worker for each device (`jobs.engines.local`), or finds the nodes
of a cluster.

From then on it turns in a loop: it does what is due for the queue, as taking over the runs of dead supervisors, claims
the run whose turn it is on its devices (`store.claims`), and has the engine measure it, while `jobs.claimed_run` stores
what comes. On one host that is one run at a time, as whatever runs disturbs what is measured; the devices of a cluster
are measured on side by side, each run in a thread of its own. A run whose measuring raises an error fails, alone; a
database that does not answer is tried again, for as long as it takes.

It ends on SIGTERM or SIGINT, and with `--once` when nothing waits: what it was measuring waits again with the results
it has, the workers are killed, and the lease ends. Where it is killed itself, its workers end with it, and its lease
runs out: then another one takes over its runs (`store.leases`).
"""

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Event, Thread

from filelock import Timeout

from gpuexplore.activity import Activity
from gpuexplore.core.errors import DeviceLost, GpuExploreError, InvalidInput, StoreUnavailable
from gpuexplore.core.model import Case, Device, Result, RunState
from gpuexplore.devices import discover
from gpuexplore.devices.identity import why_other_device
from gpuexplore.jobs import server_settings
from gpuexplore.jobs.claimed_run import ClaimedRun, crash_limit
from gpuexplore.jobs.engines import Engine, IsCancelled, batches_of
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.heartbeat import Heartbeat, Housekeeping, this_instance
from gpuexplore.jobs.locks import HostLock, supervisor_lock
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.registry import features
from gpuexplore.store import Store, WorkClaim, open_store
from gpuexplore.store.database import database_url
from gpuexplore.store.leases import names_of

LOG = logging.getLogger("gpuexplore.jobs.supervisor")
EXIT_UNUSABLE = 2
LOCK_S = 1.0  # testing whether the lock is free takes it for a moment
OPEN_RETRY_S = 1.0
LOG_BYTES, LOG_FILES = 5_000_000, 3
POLL_S = 0.05
RETRY_S = 1.0
_Lanes = dict[threading.Thread, frozenset[str]]  # the devices that each thread measures on
ABOUT = "Starts the supervisor, unless this host has one."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the supervisor until it is told to stop; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        _log_to(options.log)
        _alone(options)
    except (
        InvalidInput
    ) as error:  # a home that cannot be written, among others: said in the log, or where there is none
        LOG.error("%s", error)
        return EXIT_UNUSABLE
    return 0


def _alone(options: argparse.Namespace) -> None:
    """Supervise, unless another supervisor of this host does."""
    stop = Event()
    lock = supervisor_lock(database_url(options.database))
    try:
        lock.acquire(timeout=LOCK_S)
    except Timeout:
        LOG.info("%s serves this database already: there is nothing to do", lock.holder() or "Another supervisor")
        return
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        supervise(options.database, lock, stop=stop, once=options.once)
    finally:
        lock.release()


def supervise(database: str | None, lock: HostLock, *, stop: Event, once: bool = False) -> None:
    """Measure what is queued in `database` on the devices of this host, or of a cluster, until `stop` is set."""
    scheduler = server_settings.scheduler()
    devices = () if scheduler else discover()
    with ExitStack() as stack:
        store = _open(database, lock, stop)
        if store is None:
            return
        stack.enter_context(store)
        instance = this_instance(side_by_side=bool(scheduler))
        heartbeat = Heartbeat(store, instance, devices, warming=not scheduler, sign_life=lock.sign_life)
        stack.enter_context(heartbeat)
        engine = _cluster(scheduler, heartbeat) if scheduler else _this_host(devices, heartbeat, stack)
        stack.callback(engine.close)
        serve(store, engine, heartbeat, stop=stop, once=once)


def _this_host(devices: Sequence[Device], heartbeat: Heartbeat, stack: ExitStack) -> Engine:
    LOG.info("Measuring on %s", ", ".join(f"{device.id} ({device.name})" for device in devices))
    engine = LocalEngine(devices)
    warming = Thread(target=warm_all, args=(engine, heartbeat, devices), name="warming")
    warming.start()
    stack.callback(warming.join)
    return engine


def _cluster(scheduler: str, heartbeat: Heartbeat) -> Engine:
    """Return the engine of a cluster, whose nodes come and go, and warm up by themselves."""
    modules = [feature.cluster_engine for feature in features() if feature.cluster_engine]
    if not modules:
        raise InvalidInput.of("scheduler", scheduler, "none: no feature measures on other machines")
    LOG.info("Measuring on the nodes of %s", scheduler)
    engine: Engine = import_module(modules[0]).open_engine(scheduler, heartbeat.replace_devices)
    return engine


def _open(database: str | None, lock: HostLock, stop: Event) -> Store | None:
    """Return the store as soon as it can be used; None when the supervisor is told to stop before."""
    while not stop.is_set():
        try:
            return open_store(database)
        except StoreUnavailable as error:
            LOG.warning("%s", error)
            lock.sign_life()
            stop.wait(OPEN_RETRY_S)
    return None


def _log_to(path: Path | None) -> None:
    try:
        handlers = [RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES)] if path else None
    except OSError as error:
        raise InvalidInput.of("log", path, f"files that can be written ({error.strerror})") from error
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=handlers)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def warm_all(engine: Engine, heartbeat: Heartbeat, devices: Sequence[Device]) -> None:
    """Load the workers' libraries one after the other; a device that cannot be used is logged."""
    try:
        for device in devices:
            try:
                heartbeat.update(engine.warm(device))
            except GpuExploreError as error:
                LOG.warning("%s", error)
    finally:
        heartbeat.warming = False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gpuexplore.jobs.supervisor", description=ABOUT)
    parser.add_argument("--database", metavar="URL", help="default: GPUEXPLORE_DATABASE_URL, then the data directory")
    parser.add_argument("--log", type=Path, metavar="FILE", help="where to log; the default is standard error")
    parser.add_argument("--once", action="store_true", help="end when nothing waits")
    return parser


def serve(store: Store, engine: Engine, heartbeat: Heartbeat, *, stop: Event, once: bool = False) -> None:
    """Measure what is queued until `stop` is set, or with `once` until nothing waits.

    A database that cannot be used is tried again, for as long as it takes.
    """
    housekeeping = Housekeeping(store, heartbeat.instance)
    with _lanes() as lanes:
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
            if not busy and once and not any(lane.is_alive() for lane in lanes):
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
        return _free(lanes, (device.id for device in heartbeat.devices))

    claim = store.claim(heartbeat.instance.name, free())
    if claim is None:
        return False
    devices = frozenset(claim.devices)
    run = ClaimedRun(store, claim, stop, turn=heartbeat.turn, available=lambda: free() | devices)
    _start_lane(lanes, devices, lambda: measure_claimed(engine, run, heartbeat))
    return True


def measure_claimed(engine: Engine, run: ClaimedRun, heartbeat: Heartbeat) -> None:
    """Measure a run until it ends or yields."""
    run_id = run.claim.run_id
    with heartbeat.measuring():
        try:
            if isinstance(run.claim.work, Activity):
                _perform(engine, run, run.claim.work, heartbeat)
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


def _perform(engine: Engine, run: ClaimedRun, activity: Activity, heartbeat: Heartbeat) -> None:
    """Do an activity in one piece; one that the supervisor's end interrupts begins anew with its successor."""
    LOG.info("Run %s, attempt %d: %s", run.claim.run_id, run.claim.attempt, activity)
    run.begin()
    here = _names_here(heartbeat)
    engine.perform(replace(activity, device=here.get(activity.device, activity.device)), run.observe, run.should_stop)
    run.book()
    if run.stop.is_set() and not run.cancelled:
        run.release()
    elif not run.lost:
        run.finish(RunState.DONE)


def _measure_cases(engine: Engine, run: ClaimedRun, claim: WorkClaim, heartbeat: Heartbeat) -> None:
    LOG.info("Run %s, attempt %d: %d cases", claim.run_id, claim.attempt, len(claim.remaining))
    if (claim.done or claim.passed) and (reason := _begun_elsewhere(run.store, claim, heartbeat)):
        run.finish(RunState.FAILED, reason)
        return
    take = crash_limit(run.take)
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


def _begun_elsewhere(store: Store, claim: WorkClaim, heartbeat: Heartbeat) -> str | None:
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


@contextmanager
def _lanes() -> Iterator[_Lanes]:
    """Give the lanes that are in use, to be added by `_start_lane`; leaving waits until none is."""
    lanes: _Lanes = {}
    try:
        yield lanes
    finally:
        for lane in lanes:
            lane.join()


def _start_lane(lanes: _Lanes, devices: frozenset[str], measure: Callable[[], None]) -> None:
    """Call `measure` in a new thread; `devices` are in use until it returns."""
    lane = threading.Thread(target=measure, name="lane")
    lane.start()
    for ended in [each for each in lanes if not each.is_alive()]:
        del lanes[ended]
    lanes[lane] = devices


def _free(lanes: _Lanes, devices: Iterable[str]) -> frozenset[str]:
    """Return those of `devices` that no run uses; asked from the threads of runs, too."""
    return frozenset(devices).difference(*(used for lane, used in list(lanes.items()) if lane.is_alive()))


if __name__ == "__main__":
    sys.exit(main())
