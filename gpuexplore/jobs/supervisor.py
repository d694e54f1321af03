"""A supervisor's start and end: the one process of a host that brings queued runs to its devices.

`python -m gpuexplore.jobs.supervisor` starts it: by hand, by systemd, or by a web server that finds none
(`jobs.client`). It holds the host's lock for its database all its life, so that there is one; a second one sees that
and ends. Then it discovers the devices, opens the database, as soon as that can be used, takes its lease, which it
renews every second (`jobs.heartbeat`), and warms up a worker for each device (`jobs.engines.local`), or finds the nodes
of a cluster.

From then on it measures what is queued (`jobs.queue_loop`).

It ends on SIGTERM or SIGINT, and with `--once` when nothing waits: what it was measuring waits again with the results
it has, the workers are killed, and the lease ends. Where it is killed itself, its workers end with it, and its lease
runs out: then another one takes over its runs (`store.leases`).
"""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Event, Thread

from gpuexplore.core import Device, GpuExploreError, InvalidInput, StoreUnavailable, require
from gpuexplore.hardware import discover
from gpuexplore.jobs import server_settings
from gpuexplore.jobs.engines import Engine
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.heartbeat import Heartbeat, this_instance
from gpuexplore.jobs.locks import HostLock, supervisor_lock
from gpuexplore.jobs.queue_loop import serve
from gpuexplore.registry import features
from gpuexplore.store import Store, database_url, open_store

LOG = logging.getLogger("gpuexplore.jobs.supervisor")
EXIT_UNUSABLE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the supervisor until it has to stop; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        _log_to(options.log)
        _alone(options)
    except InvalidInput as error:  # such as a home that cannot be written: logged, or printed where there is no log
        LOG.error("%s", error)
        return EXIT_UNUSABLE
    return 0


def _alone(options: argparse.Namespace) -> None:
    """Supervise, unless another supervisor of this host does."""
    stop = Event()
    lock = supervisor_lock(database_url(options.database))
    try:
        lock.acquire(timeout=1)  # testing whether it is free takes it for a moment
    except TimeoutError:
        LOG.info("%s already serves this database: there is nothing to do", lock.holder() or "Another supervisor")
        return
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        _supervise(options.database, lock, stop=stop, once=options.once)
    finally:
        lock.release()


def _supervise(database: str | None, lock: HostLock, *, stop: Event, once: bool = False) -> None:
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
    warming = Thread(target=_warm_all, args=(engine, heartbeat, devices), name="warming")
    warming.start()
    stack.callback(warming.join)
    return engine


def _cluster(scheduler: str, heartbeat: Heartbeat) -> Engine:
    """Return the engine of a cluster, whose nodes come and go, and warm up by themselves."""
    modules = [feature.cluster_engine for feature in features() if feature.cluster_engine]
    require(modules, "scheduler", scheduler, "none: no installed feature measures on other machines")
    LOG.info("Measuring on the nodes of %s", scheduler)
    return import_module(modules[0]).open_engine(scheduler, heartbeat.replace_devices)


def _open(database: str | None, lock: HostLock, stop: Event) -> Store | None:
    """Return the store as soon as it can be used; None when the supervisor has to stop before."""
    while not stop.is_set():
        try:
            return open_store(database)
        except StoreUnavailable as error:
            LOG.warning("%s", error)
            lock.sign_life()
            stop.wait(1)
    return None


def _log_to(path: Path | None) -> None:
    try:
        handlers = [RotatingFileHandler(path, maxBytes=5_000_000, backupCount=3)] if path else None
    except OSError as error:
        raise InvalidInput.of("log", path, f"files that can be written ({error.strerror})") from error
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", handlers=handlers)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _warm_all(engine: Engine, heartbeat: Heartbeat, devices: Sequence[Device]) -> None:
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
    about = "Start the supervisor, unless this host already runs one."
    parser = argparse.ArgumentParser(prog="python -m gpuexplore.jobs.supervisor", description=about)
    parser.add_argument("--database", metavar="URL", help="default: GPUEXPLORE_DATABASE_URL, then the data directory")
    parser.add_argument("--log", type=Path, metavar="FILE", help="log file (default: standard error)")
    parser.add_argument("--once", action="store_true", help="exit when the queue is empty")
    return parser


if __name__ == "__main__":
    sys.exit(main())
