"""Keeps one living supervisor on this host: light enough for the web process.

The supervisor is a program of its own and not a child that multiprocessing spawns: Streamlit
replaces `__main__`, which a spawned child would run again.
"""

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event

import psutil

import gpuexplore
from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware.directories import data_directory
from gpuexplore.jobs.locks import LockHolder, starter_lock, supervisor_lock
from gpuexplore.jobs.server_settings import is_external
from gpuexplore.store.database import URL_VARIABLE, database_url

LOG = logging.getLogger(__name__)
COMMAND = (sys.executable, "-m", "gpuexplore.jobs.supervisor")
FROZEN_S = 15.0  # without a sign of life: it is killed
LOOK_S = 0.5
START_S = 10.0
STOP_S = 10.0
POLL_S = 0.05


class _SupervisorKeeper:
    """Starts a supervisor when there is none, and replaces one that is frozen.

    Time is this process's own: a system clock that is set back or forward changes nothing.
    """

    def __init__(self, url: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._given_url = url
        self._clock = clock
        self._lock = supervisor_lock(database_url(url))
        self._sign: tuple[LockHolder, int | None] | None = None
        self._seen_s = clock()
        self._started: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """Look once, and do what is needed."""
        holder = self._lock.holder()
        if holder is None:
            self._sign = None
            if not self._lock.is_held():
                self.start()
            return
        sign = (holder, self._lock.last_sign())
        if sign != self._sign:
            self._sign = sign
            self._seen_s = self._clock()
        elif self._clock() - self._seen_s > FROZEN_S:
            LOG.warning("%s has not responded for %g s: it is killed and replaced", holder, FROZEN_S)
            self._end(holder, patience_s=0)

    def start(self) -> None:
        """Start a supervisor unless there is one, or another process starts one; it outlives this process."""
        with suppress(TimeoutError), self._starting(timeout_s=0):
            if not self._lock.is_held():
                self._start()

    def replace_other_version(self) -> None:
        """Replace a supervisor of another version than this process: it would measure by other rules."""
        # inside, no server of the other version starts one
        with suppress(TimeoutError), self._starting(START_S):
            holder = self._lock.holder()
            if holder is not None and holder.version != gpuexplore.__version__:
                LOG.warning("%s is version %s: it is replaced by %s", holder, holder.version, gpuexplore.__version__)
                self._end(holder, patience_s=STOP_S)
                self._start()

    @contextmanager
    def _starting(self, timeout_s: float) -> Iterator[None]:
        lock = starter_lock(database_url(self._given_url))
        lock.acquire(timeout=timeout_s)
        try:
            yield
        finally:
            lock.release()

    def _start(self) -> None:
        self.stop()
        self._started = _start(self._given_url)
        deadline_s = time.monotonic() + START_S
        while self._started.poll() is None and time.monotonic() < deadline_s and self._lock.holder() is None:
            time.sleep(POLL_S)

    def stop(self) -> None:
        """End the supervisor that was started here; what it measures is queued again."""
        if self._started is None or self._started.poll() is not None:
            return
        self._started.terminate()
        try:
            self._started.wait(STOP_S)
        except subprocess.TimeoutExpired:
            LOG.warning("The supervisor %d did not stop within %g s: it is killed", self._started.pid, STOP_S)
            self._started.kill()
            self._started.wait()

    def _end(self, holder: LockHolder, *, patience_s: float) -> None:
        """End a holder of the lock, which is free then: its parent may not have asked yet how it ended.

        Only a process of this user that has the lock is ended, whatever a file says.
        """
        process = holder.process() if self._lock.holder() == holder else None
        if process is None or process.uids().effective != os.geteuid():
            return
        with suppress(psutil.NoSuchProcess):
            if patience_s:
                process.terminate()
                if self._is_over(holder, patience_s):
                    return
            process.kill()
            self._is_over(holder, START_S)

    def _is_over(self, holder: LockHolder, within_s: float) -> bool:
        deadline_s = time.monotonic() + within_s
        while (now := self._lock.holder()) == holder or (now is None and self._lock.is_held()):
            if time.monotonic() > deadline_s:
                return False
            time.sleep(POLL_S)
        return True


def watch(stop: Event, url: str | None = None) -> None:
    """Keep a supervisor alive until `stop` is set, then end the one that was started here.

    Raises:
        InvalidInput: the setting GPUEXPLORE_SUPERVISOR is unknown.
    """
    if is_external():
        return
    keeper: _SupervisorKeeper | None = None
    said = ""
    while True:
        try:
            if keeper is None:
                keeper = _SupervisorKeeper(url)
                keeper.replace_other_version()
            keeper.look()
        except InvalidInput as error:  # a home that cannot be used: it may be there later
            if said != (said := str(error)):
                LOG.error("The supervisor cannot be monitored: %s", error)
        except (OSError, psutil.Error):
            LOG.exception("The supervisor could not be monitored; the next check is in %g s", LOOK_S)
        if stop.wait(LOOK_S):
            break
    if keeper is not None:
        keeper.stop()


def _start(url: str | None) -> subprocess.Popen[bytes]:
    environment = os.environ | ({URL_VARIABLE: url} if url else {})
    directory = data_directory() / "logs"
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "supervisor.err").open("wb") as errors:  # what is said before the log is open, and outside it
        process = subprocess.Popen(
            [*COMMAND, "--log", str(directory / "supervisor.log")],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
    LOG.info("Started the supervisor as process %d", process.pid)
    return process
