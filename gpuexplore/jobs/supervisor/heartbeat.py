"""Heartbeats of the supervisor: a file for this host, messages for systemd (`Type=notify`), a lease for all hosts.

Two threads, because a database that does not answer must not make a working supervisor look dead. Neither shows
anything once the loop that measures has stopped turning.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from gpuexplore.errors import StoreUnavailable
from gpuexplore.model import Device
from gpuexplore.store import Instance, Store, SupervisorState

LOG = logging.getLogger(__name__)
BEAT_S = 1.0
STUCK_S = 60.0  # a loop that has not turned for so long is stuck


def _notify(state: str) -> None:
    """Send `state` to systemd, e.g. `READY=1`; nothing happens where no systemd listens.

    See https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
    """
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(state.encode())


class Heartbeat:
    """Beats in threads of its own between entering and leaving it.

    Args:
        store: where the lease is.
        instance: this supervisor.
        devices: of this host.
        warming: whether workers still load their libraries.
        sign_life: shows this host that the supervisor works.
    """

    def __init__(
        self,
        store: Store,
        instance: Instance,
        devices: Sequence[Device],
        *,
        warming: bool = False,
        sign_life: Callable[[], None] = lambda: None,
    ) -> None:
        self.instance = instance
        self.warming = warming
        self._store = store
        self._sign_life = sign_life
        self._devices = {device.id: device for device in devices}
        self._measuring: set[object] = set()
        self._turned_s = time.monotonic()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(act,), name=f"heartbeat-{act.__name__}", daemon=True)
            for act in (self.sign, self.beat)
        ]

    @property
    def state(self) -> SupervisorState:
        """What the supervisor does."""
        if self._measuring:
            return "measuring"
        return "warming" if self.warming else "ready"

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices as they were last reported."""
        return tuple(self._devices.values())

    def update(self, device: Device) -> None:
        """Report `device` as it is now, with what was measured on it."""
        self._devices[device.id] = device

    def replace_devices(self, devices: Sequence[Device]) -> None:
        """Report `devices`, and no others."""
        self._devices = {device.id: device for device in devices}

    def turn(self) -> None:
        """Note that the loop goes on."""
        self._turned_s = time.monotonic()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Report as measuring meanwhile."""
        run = object()
        self._measuring.add(run)
        self.beat()
        try:
            yield
        finally:
            self._measuring.remove(run)

    def sign(self) -> None:
        """Show this host and systemd that the supervisor works."""
        self._sign_life()
        _notify("WATCHDOG=1")

    def beat(self) -> None:
        """Renew the lease; a database that cannot be used is tried again a second later."""
        try:
            self._store.heartbeat(self.instance, state=self.state, devices=self.devices)
        except StoreUnavailable as error:
            LOG.warning("The lease was not renewed: %s", error)

    def __enter__(self) -> Self:
        self.sign()
        self.beat()
        for thread in self._threads:
            thread.start()
        _notify("READY=1")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        try:
            self._store.end_lease(self.instance)
        except StoreUnavailable as error:
            LOG.warning("The lease was not ended, it runs out: %s", error)

    def _repeat(self, act: Callable[[], None]) -> None:
        while not self._stop.wait(BEAT_S):
            if time.monotonic() - self._turned_s < STUCK_S:
                act()
