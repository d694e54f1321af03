"""Reports once a second that the supervisor is alive, what it does and on which devices."""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from sqlalchemy.exc import OperationalError

from gpuexplore.model import Device
from gpuexplore.store import Store, SupervisorState

LOG = logging.getLogger(__name__)
BEAT_S = 1.0


class Heartbeat:
    """Beats in a thread of its own between entering and leaving it.

    Attributes:
        name: of the supervisor, one per host.
        warming: whether workers still load their libraries.
    """

    def __init__(self, store: Store, name: str, devices: Sequence[Device], *, warming: bool = False) -> None:
        self.name = name
        self.warming = warming
        self._store = store
        self._devices = {device.id: device for device in devices}
        self._measuring = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat_until_stopped, name="heartbeat", daemon=True)

    @property
    def state(self) -> SupervisorState:
        """What the supervisor does."""
        if self._measuring:
            return "measuring"
        return "warming" if self.warming else "ready"

    def update(self, device: Device) -> None:
        """Report `device` as it is now, with what was measured on it."""
        self._devices[device.id] = device

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Report as measuring meanwhile."""
        self._measuring = True
        self.beat()
        try:
            yield
        finally:
            self._measuring = False

    def beat(self) -> None:
        """Report now."""
        self._store.heartbeat(self.name, os.getpid(), state=self.state, devices=tuple(self._devices.values()))

    def __enter__(self) -> Self:
        self.beat()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat_until_stopped(self) -> None:
        while not self._stop.wait(BEAT_S):
            try:
                self.beat()
            except OperationalError:
                LOG.exception("A heartbeat could not be written; the next one is due in %g s", BEAT_S)
