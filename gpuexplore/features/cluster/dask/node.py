"""A node of the cluster: what `dask worker` loads (`--preload`), and what it does with a task.

The node says who it is and what it has. Inside, the local engine measures, with its processes, limits and locks.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import distributed

import gpuexplore
from gpuexplore.activity import Activity
from gpuexplore.core import Case, Device, GpuExploreError, decode, encode
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines import Engine
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.journal import Begun, Event, encode_event

LOG = logging.getLogger(__name__)
TOPIC = "gpuexplore-nodes"
EXTENSION = "gpuexplore"


@dataclass(frozen=True, slots=True)
class _NodeWorker:
    """The state of a node; Dask closes it with the worker."""

    worker: distributed.Worker
    engine: Engine
    closing: threading.Event = field(default_factory=threading.Event)

    def announce(self, devices: Sequence[Device]) -> None:
        """Say which devices this node has, none when it leaves; the scheduler adds the worker's address."""
        host = str(self.worker.name)
        self.worker.log_event(TOPIC, {"host": host, "version": gpuexplore.__version__, "devices": encode(devices)})

    def warm(self, devices: Sequence[Device]) -> None:
        """Load the workers' libraries one after the other, and announce each device with its ceilings."""
        ready = {device.id: device for device in devices}
        for device in devices:
            try:
                ready[device.id] = self.engine.warm(device)
            except GpuExploreError as error:
                LOG.warning("%s", error)
            self.announce(tuple(ready.values()))

    async def close(self) -> None:
        """Leave the cluster: what is being measured here is measured again elsewhere."""
        self.announce(())
        self.closing.set()


def dask_setup(worker: distributed.Worker) -> None:
    """Make a node of `worker`: Dask calls this when it starts."""
    devices = discover()
    _join(worker, LocalEngine(devices), devices)


def _join(worker: distributed.Worker, engine: Engine, devices: Sequence[Device]) -> None:
    """Make a node of `worker` that measures on `devices` by `engine`."""
    node = worker.extensions[EXTENSION] = _NodeWorker(worker, engine)
    node.announce(devices)

    def leave(number: int, _: object) -> None:
        signal.signal(number, previous)
        worker.loop.add_callback_from_signal(worker.close_gracefully, reason="SIGTERM")

    previous = signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=node.warm, args=(devices,), name="warming", daemon=True).start()


def measure_here(cases: Sequence[dict[str, Any]], topic: str, token: str) -> None:
    """Measure cases of one device: a task that a supervisor submits.

    Args:
        cases: encoded, named by this node's devices.
        topic: of the events.
        token: of the task, in each event; who sets the cluster's event of that name cancels it.
    """
    with _task(topic, token) as (engine, tell, is_unwanted):
        engine.measure(tuple(decode(Case, case) for case in cases), tell, is_unwanted)


def perform_here(activity: dict[str, Any], topic: str, token: str) -> None:
    """Do an activity: the other task that a supervisor submits; see `measure_here`."""
    with _task(topic, token) as (engine, tell, is_unwanted):
        engine.perform(decode(Activity, activity), tell, is_unwanted)


@contextmanager
def _task(topic: str, token: str) -> Iterator[tuple[Engine, Callable[[Event], None], Callable[[], bool]]]:
    """Yield this node's engine, what tells the supervisor an event, and what asks whether the task is unwanted."""
    worker = distributed.get_worker()
    node: _NodeWorker = worker.extensions[EXTENSION]

    def tell(event: Event) -> None:
        worker.log_event(topic, {"token": token, "event": encode_event(event)})

    def is_unwanted() -> bool:
        task = worker.state.tasks.get(key)  # the scheduler forgets one whose supervisor has ended
        return cancelled() or node.closing.is_set() or task is None or task.state == "cancelled"

    key = worker.get_current_task()
    with _cancellation(token) as cancelled:
        tell(Begun(os.getpid()))
        yield node.engine, tell, is_unwanted


@contextmanager
def _cancellation(token: str) -> Iterator[Callable[[], bool]]:
    """Yield how to ask whether the task is cancelled: the news come by themselves, as each question costs a message."""
    shared = distributed.Event(token, distributed.get_client())
    heard = threading.Event()

    def listen() -> None:
        try:
            shared.wait()
        except (OSError, UnboundLocalError):  # the second is what distributed makes of a client that is closed
            LOG.warning("The scheduler is gone: its measurements are stopped")
        finally:
            heard.set()

    listener = threading.Thread(target=listen, name="cancellation", daemon=True)
    listener.start()
    try:
        yield heard.is_set
    finally:
        shared.set()  # ends the listener
        listener.join()
