"""Locks of the operating system, shared by every user, home and database of a host: they end with their process.

Beside each lock stands who holds it, so that whoever waits can say for whom, and a supervisor's signs of life.
"""

import getpass
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

import gpuexplore
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Device

DIRECTORY_VARIABLE = "GPUEXPLORE_LOCKS"
SHARED_MEMORY = Path("/dev/shm")
EVERYBODY = 0o777
_ASKING = "asks-cpu-"
MOST_ASKING = 8  # who comes later is not seen to ask, and waits as anybody


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock.

    Attributes:
        started: when it started, as `start_of` tells: with `pid` it names this process and no later one.
    """

    pid: int
    started: float
    user: str
    program: str
    version: str

    def process(self) -> psutil.Process | None:
        """Return the process while it lives: never another one that got its number."""
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            if start_of(self.pid) == self.started:
                return psutil.Process(self.pid)
        return None

    def __str__(self) -> str:
        return f"{self.program} of {self.user} (process {self.pid})"


class HostLock:
    """A lock that one process of this host holds at a time; a context manager that waits for it."""

    def __init__(self, name: str) -> None:
        directory = lock_directory()
        self._lock = FileLock(directory / f"{name}.lock", mode=0o666)
        self._holder = directory / f"{name}.holder"

    def acquire(self, timeout: float = -1, cancel_check: Callable[[], bool] | None = None) -> None:
        """Wait at most `timeout` seconds, without end if negative, and no longer once `cancel_check` is true.

        Raises:
            Timeout: somebody else holds it.
        """
        self._lock.acquire(timeout=timeout, cancel_check=cancel_check)
        with suppress(OSError):  # a full disk: then nobody can be told who it is
            self._holder.write_text(json.dumps(asdict(_myself())), encoding="utf8")
            self._holder.chmod(0o666)

    def release(self) -> None:
        """Let others have it, who are not taken for this process until they have said who they are."""
        if self._lock.is_locked:
            with suppress(OSError):
                self._holder.write_text("", encoding="utf8")
        self._lock.release()

    def __enter__(self) -> "HostLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def is_held(self) -> bool:
        """Return whether somebody holds it now."""
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return True
        self._lock.release()
        return False

    def holder(self) -> Holder | None:
        """Return who holds it now; None when nobody does, or nobody can tell."""
        try:
            found = Holder(**json.loads(self._holder.read_text(encoding="utf8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.process() is not None and self.is_held() else None

    def sign_life(self) -> None:
        """Show that the holder still works: see `last_sign`."""
        with suppress(OSError):
            os.utime(self._holder)

    def last_sign(self) -> int | None:
        """Return a number that changes while the holder shows that it works."""
        try:
            return self._holder.stat().st_mtime_ns
        except OSError:
            return None


def supervisor_lock(database_url: str) -> HostLock:
    """Return the lock that a host's one supervisor of a database holds all its life."""
    return HostLock(f"supervisor-{_digest(database_url)}")


def starter_lock(database_url: str) -> HostLock:
    """Return the lock that is held while a supervisor is being started."""
    return HostLock(f"starter-{_digest(database_url)}")


def compiler_lock() -> HostLock:
    """Return the lock to hold while CUDA kernels are compiled, one compiler at a time.

    Who measures on the CPU waits for it before each group, so that a compiler gets a turn between two of them.
    """
    return HostLock("compiler")


@contextmanager
def asking_for_cpu() -> Iterator[None]:
    """Inside, whoever compiles or interprets for a page sees that a measurement would have the CPU, and gives way."""
    for number in range(MOST_ASKING):
        lock = HostLock(f"{_ASKING}{number}")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            yield
        finally:
            lock.release()
        return
    yield


def cpu_is_asked_for() -> bool:
    """Return whether a measurement waits for the CPU."""
    return any(HostLock(path.stem).is_held() for path in lock_directory().glob(f"{_ASKING}*.lock"))


def device_lock(device: Device) -> HostLock:
    """Return the lock to hold while `device` is measured: only one process of this host may at a time.

    By its UUID, for CUDA_VISIBLE_DEVICES gives one GPU another number in each process.
    """
    return HostLock("device-" + re.sub(r"[^\w.-]", "-", device.uuid or device.id))


def lock_directory() -> Path:
    """Return the directory of the locks, which every user of this host may write.

    Raises:
        InvalidInput: it cannot be written.
    """
    shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    directory = Path(os.environ.get(DIRECTORY_VARIABLE) or shared / "gpuexplore-locks")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # another user's, who has opened it already
            directory.chmod(EVERYBODY)
    except OSError as error:
        raise InvalidInput.of(DIRECTORY_VARIABLE, directory, f"directories that can be written ({error})") from error
    return directory


def start_of(pid: int) -> float:
    """Return when a process started, in a unit of its own: on Linux ticks since the boot, which no clock changes.

    Raises:
        FileNotFoundError, psutil.NoSuchProcess: there is no such process.
    """
    if sys.platform == "linux":
        return float(Path(f"/proc/{pid}/stat").read_text(encoding="utf8").rpartition(")")[2].split()[19])
    return psutil.Process(pid).create_time()


def _digest(database_url: str) -> str:
    return sha256(database_url.encode()).hexdigest()[:16]


def _myself() -> Holder:
    return Holder(os.getpid(), start_of(os.getpid()), user_name(), _program(), gpuexplore.__version__)


def user_name() -> str:
    """Return what the operating system calls whoever runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in a container
        return f"user {os.getuid()}"


def _program() -> str:
    words = [Path(word).name for word in psutil.Process().cmdline()]
    return next((word for word in words if "gpuexplore" in word), words[0] if words else "a program")
