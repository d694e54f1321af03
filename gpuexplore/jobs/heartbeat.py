"""A supervisor among others: the name it has, the heartbeats that show it alive, and what it does for the dead.

It beats for three readers: in a file for this host, by messages for systemd (`Type=notify`), and in the database, for
all hosts, by its lease (`store.leases`). Two threads do so, because a database that does not answer must not make a
working supervisor look dead; neither shows anything once the loop that measures is stuck.
"""

import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Self

import psutil

import gpuexplore
from gpuexplore.core import Device, StoreUnavailable
from gpuexplore.jobs.locks import lock_directory
from gpuexplore.store import Store, Supervisor, SupervisorState
from gpuexplore.store.prune import purge_deleted

LOG = logging.getLogger(__name__)
BEAT_S = 1.0
STUCK_S = 60.0  # a loop that did nothing for so long is stuck


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
        instance: Supervisor,
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
        self._ticked_s = time.monotonic()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(act,), name=f"heartbeat-{act.__name__}", daemon=True)
            for act in (self.sign, self.beat)
        ]

    @property
    def state(self) -> SupervisorState:
        """The supervisor's current state."""
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

    def tick(self) -> None:
        """Note that the loop goes on."""
        self._ticked_s = time.monotonic()

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
            LOG.warning("The lease was not ended and will expire: %s", error)

    def _repeat(self, act: Callable[[], None]) -> None:
        while not self._stop.wait(BEAT_S):
            if time.monotonic() - self._ticked_s < STUCK_S:
                act()


class Housekeeping:
    """Keeps the queue in order.

    A supervisor counts as dead when its lease had expired at two looks in a row, or when it shared this one's locks:
    then the first look tells, for this one holds them now. One look alone would be deceived by a clock that is set
    forward; so would the absence of an owner, so that no owner counts as gone in the minutes after that.
    """

    def __init__(self, store: Store, instance: Supervisor, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._instance = instance
        self._clock = clock
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
            self._look_s = now_s + 5
        if now_s >= self._order_s:
            self._store.order_all()
            deleted_before = self._store.clock() - timedelta(days=30)  # an owner may want a run back
            purge_deleted(self._store, deleted_before.isoformat(timespec="microseconds"))
            self._order_s = now_s + 60

    def _drop_abandoned(self, now_s: float) -> None:
        before_s = self._ahead_s
        self._ahead_s = self._store.epoch_s() - now_s
        set_by_s = 0.0 if before_s is None else self._ahead_s - before_s
        if abs(set_by_s) > 60:  # one of two clocks was set, or the host slept
            LOG.warning("The clock was set by %+.0f s: no owner is treated as gone for a while", set_by_s)
            self._absence_counts_s = now_s + 180  # every open page says again that its owner is there, once a minute
        if now_s >= self._absence_counts_s and (dropped := self._store.drop_abandoned()):
            LOG.info("%d queued runs are cancelled: their owners have left", dropped)

    def _take_over(self) -> None:
        silent = self._store.silent_supervisors()
        count = self._store.take_over(self._instance, silent & self._silent)
        self._silent = silent
        if count:
            LOG.warning("%d runs were left by a supervisor that died: they are queued again", count)


def this_instance(*, side_by_side: bool = False) -> Supervisor:
    """Return this process as a supervisor: host, boot and a random part name it.

    Args:
        side_by_side: whether it measures on each of its devices by itself.
    """
    host = host_name()
    boot = _boot()
    locks = lock_directory().stat()  # of this container: two of one kernel share none
    return Supervisor(
        f"{host}/{boot[:8]}/{secrets.token_hex(4)}",
        host,
        scope=f"{boot}/{locks.st_dev}:{locks.st_ino}",
        pid=os.getpid(),
        version=gpuexplore.__version__,
        side_by_side=side_by_side,
    )


def host_name() -> str:
    """Return this host's name as its devices carry it: the setting GPUEXPLORE_HOST, or the system's."""
    return re.sub(r"[^\w.-]", "-", os.environ.get("GPUEXPLORE_HOST") or socket.gethostname())[:100]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        pass
    try:
        return f"{psutil.boot_time():.0f}"
    except (OSError, RuntimeError):  # /proc cannot be read; locks end with their processes all the same
        return "unknown"


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
