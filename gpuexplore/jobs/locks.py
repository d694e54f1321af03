"""Locks of the operating system, shared by every user, home and database of a host: they end with their process.

For each lock its holder writes who it is, in a file of its user's own, and a supervisor shows there that it works.
Other users may write to the directory: nothing in it is opened through a link, nor believed of another user's process.
"""

import fcntl
import getpass
import json
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

import psutil

import gpuexplore
from gpuexplore.core import Device, InvalidInput

DIRECTORY_VARIABLE = "GPUEXPLORE_LOCKS"
SHARED_MEMORY = Path("/dev/shm")
_ASKING = "asks-cpu-"


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that holds a lock.

    Attributes:
        started: when it started, by `_start_of`: with `pid` it names this process and no later one.
    """

    pid: int
    started: float
    user: str
    program: str
    version: str

    def process(self) -> psutil.Process | None:
        """Return the process while it lives: never another one that got its number."""
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            if _start_of(self.pid) == self.started:
                return psutil.Process(self.pid)
        return None

    def __str__(self) -> str:
        return f"{self.program} of {self.user} (process {self.pid})"


class HostLock:
    """A lock that one process of this host holds at a time; a context manager that waits for it."""

    def __init__(self, name: str) -> None:
        self._directory = lock_directory()
        self._name = name
        self._path = self._directory / f"{name}.lock"
        self._file: int | None = None  # open while it is held
        self._own = self._directory / f"{name}.{os.geteuid()}.holder"

    def acquire(self, timeout: float = -1, cancel_check: Callable[[], bool] | None = None) -> None:
        """Wait at most `timeout` seconds, without end if negative, and no longer once `cancel_check` is true.

        By flock, whichever user created the file: creating it first does not lock out other users.

        Raises:
            TimeoutError: another process holds it.
            InvalidInput: its file cannot be opened, as where another user put a link at its path.
        """
        began_s = time.monotonic()
        while not self._has_taken():
            if 0 <= timeout <= time.monotonic() - began_s or (cancel_check is not None and cancel_check()):
                raise TimeoutError(str(self._path))
            time.sleep(0.05)
        with suppress(OSError):  # a full disk: then it is not known who it is
            myself = LockHolder(os.getpid(), _start_of(os.getpid()), user_name(), _program(), gpuexplore.__version__)
            self._write(json.dumps(asdict(myself)))

    def _has_taken(self) -> bool:
        """Return whether it is held now, by this object."""
        try:
            file = open_shared(self._path, os.O_RDONLY | os.O_CREAT)
        except FileExistsError:  # another process made it meanwhile
            return False
        except OSError as error:
            files = f"directories whose locks can be opened ({error})"
            raise InvalidInput.of(DIRECTORY_VARIABLE, self._directory, files) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), self._path.stat()):  # else it was replaced before it was locked
                self._file = os.dup(file)  # of the same lock
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            os.close(file)
        return False

    def release(self) -> None:
        """Let others have it, who are not taken for this process until they have said who they are."""
        if self._file is not None:
            with suppress(OSError):
                self._write("")
            os.close(self._file)
            self._file = None

    def _write(self, text: str) -> None:
        file = open_shared(self._own, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if os.fstat(file).st_uid == os.geteuid():
                os.ftruncate(file, 0)
                os.write(file, text.encode())
        finally:
            os.close(file)

    def __enter__(self) -> "HostLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def is_held(self) -> bool:
        """Return whether a process holds it now: two that ask at once are not taken for holders by each other."""
        try:
            file = open_shared(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def holder(self) -> LockHolder | None:
        """Return who holds it now; None when it is free, or its holder is not known.

        A file names processes of its owner alone, and none that has not opened the lock.
        """
        files = (*self._directory.glob(f"{self._name}.*.holder"), self._directory / f"{self._name}.holder")
        found = next(filter(None, map(self._holder_in, files)), None)
        return found if found is not None and self.is_held() else None

    def _holder_in(self, path: Path) -> LockHolder | None:
        with suppress(OSError, ValueError, TypeError, psutil.Error):
            file = open_shared(path, os.O_RDONLY)
            try:
                about = os.fstat(file)
                text = os.read(file, 4096).decode()
            finally:
                os.close(file)
            is_open_to_all = stat.S_IMODE(about.st_mode) & 0o022  # as of 0.2.0, which is replaced where it is ours
            owner = os.geteuid() if is_open_to_all else about.st_uid
            found = LockHolder(**json.loads(text))
            process = found.process()
            if process is not None and process.uids().effective == owner and self._is_open_in(process):
                return found
        return None

    def _is_open_in(self, process: psutil.Process) -> bool:
        """Return whether a process has the file of the lock open; only root sees those of other users."""
        try:
            return any(self._is_lock(opened.path) for opened in process.open_files())
        except psutil.AccessDenied:
            return True

    def _is_lock(self, path: str) -> bool:
        try:
            return Path(path).samefile(self._path)
        except OSError:
            return False

    def sign_life(self) -> None:
        """Show that the holder still works: see `last_sign`."""
        with suppress(OSError):
            os.utime(self._own, follow_symlinks=False)

    def last_sign(self) -> int | None:
        """Return a number that changes while the holder shows that it works."""
        signs = []
        for path in self._directory.glob(f"{self._name}.*.holder"):
            with suppress(OSError):
                signs.append(path.lstat().st_mtime_ns)
        return max(signs, default=None)


def supervisor_lock(database_url: str) -> HostLock:
    """Return the lock that a host's one supervisor of a database holds all its life."""
    return HostLock(f"supervisor-{_digest(database_url)}")


def starter_lock(database_url: str) -> HostLock:
    """Return the lock that is held while a supervisor is being started."""
    return HostLock(f"starter-{_digest(database_url)}")


def compiler_lock() -> HostLock:
    """Return the lock to hold while CUDA kernels are compiled, one compiler at a time.

    Who measures on the CPU waits for it before each group, so that a compiler gets the CPU between two of them.
    """
    return HostLock("compiler")


@contextmanager
def first_free(name: str, most: int) -> Iterator[None]:
    """Hold the first free one of the locks `name`0, `name`1 and so on; none where `most` processes hold theirs."""
    for number in range(most):
        lock = HostLock(f"{name}{number}")
        try:
            lock.acquire(timeout=0)
        except TimeoutError:
            continue
        try:
            yield
        finally:
            lock.release()
        return
    yield


def asking_for_cpu() -> AbstractContextManager[None]:
    """Context in which compilers and interpreters of pages yield the CPU to a measurement."""
    return first_free(_ASKING, most=8)  # one that comes later is not seen to ask, and waits as others do


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
        InvalidInput: it cannot be written, or is a link that another user may have made.
    """
    sticky_world_writable = 0o1777  # each user may remove what is theirs
    shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
    asked = os.environ.get(DIRECTORY_VARIABLE)
    directory = Path(asked).resolve() if asked else shared / "gpuexplore-locks"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError("it is a link")
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != sticky_world_writable:
            directory.chmod(sticky_world_writable)
    except OSError as error:
        raise InvalidInput.of(DIRECTORY_VARIABLE, directory, f"directories that can be written ({error})") from error
    return directory


def open_shared(path: Path, flags: int, mode: int = 0o666) -> int:
    """Return the descriptor of a file in a directory that other users write to: never what a link of theirs names.

    Raises:
        OSError: it is a link, has a second name, or is not a regular file.
    """
    create = flags & os.O_CREAT
    flags = (flags & ~os.O_CREAT) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags)  # Linux creates no file anew in such a directory that is another user's
    except FileNotFoundError:
        if not create:
            raise
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, mode)
        with suppress(OSError):
            os.fchmod(file, mode)
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return file
    os.close(file)
    raise PermissionError(f"{path} is not a regular file")


def _start_of(pid: int) -> float:
    """Return when a process started, in a unit of its own: on Linux ticks since the boot, which no clock changes.

    Raises:
        FileNotFoundError, psutil.NoSuchProcess: there is no such process.
    """
    if sys.platform == "linux":
        return float(Path(f"/proc/{pid}/stat").read_text(encoding="utf8").rpartition(")")[2].split()[19])
    return psutil.Process(pid).create_time()


def _digest(database_url: str) -> str:
    return sha256(database_url.encode()).hexdigest()[:16]


def user_name() -> str:
    """Return what the operating system calls the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in a container
        return f"user {os.getuid()}"


def _program() -> str:
    words = [Path(word).name for word in psutil.Process().cmdline()]
    return next((word for word in words if "gpuexplore" in word), words[0] if words else "a program")
