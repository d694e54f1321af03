"""Starts the supervisor, unless this host has one.

A spawned worker imports the main module of its parent again, unless that is a package's `__main__`:
so this is one, and the workers stay free of the database.
"""

import argparse
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from threading import Event, Thread

from filelock import Timeout

from gpuexplore.devices import discover
from gpuexplore.errors import GpuExploreError
from gpuexplore.jobs.engines import Engine
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.jobs.supervisor.heartbeat import Heartbeat
from gpuexplore.jobs.supervisor.loop import serve
from gpuexplore.model import Device
from gpuexplore.store import open_store

LOG = logging.getLogger("gpuexplore.jobs.supervisor")
LOCK_S = 1.0  # testing whether the lock is free takes it for a moment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the supervisor until it is told to stop; return the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    stop = Event()
    try:
        with supervisor_lock().acquire(timeout=LOCK_S):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: stop.set())
            supervise(options.database, stop=stop, once=options.once)
    except Timeout:
        LOG.info("Another supervisor is at work on this host: there is nothing to do")
    return 0


def supervise(database: str | None, *, stop: Event, once: bool = False) -> None:
    """Measure what is queued in `database` on the devices of this host until `stop` is set."""
    devices = discover()
    LOG.info("Measuring on %s", ", ".join(f"{device.id} ({device.name})" for device in devices))
    with ExitStack() as stack:
        store = stack.enter_context(open_store(database))
        heartbeat = stack.enter_context(Heartbeat(store, socket.gethostname(), devices, warming=True))
        engine = LocalEngine(devices)
        warming = Thread(target=warm_all, args=(engine, heartbeat, devices), name="warming")
        warming.start()
        stack.callback(warming.join)
        stack.callback(engine.close)
        serve(store, engine, heartbeat, stop=stop, once=once)


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
    parser = argparse.ArgumentParser(
        prog="python -m gpuexplore.jobs.supervisor", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--database", metavar="URL", help="default: GPUEXPLORE_DATABASE_URL, then the data directory")
    parser.add_argument("--once", action="store_true", help="end when nothing waits")
    return parser


if __name__ == "__main__":
    sys.exit(main())
