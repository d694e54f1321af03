"""One device's worker: a warm process that is killed, with everything it started, and replaced when it fails.

Processes are known by what the kernel keeps for us, never by a number alone, which another process may have got
meanwhile: a child's number is its own until we reap it, and all that the child started carries its mark.
"""

import logging
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO

import psutil

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Case, Device
from gpuexplore.core.typed_text import readable
from gpuexplore.devices import TORCH_KINDS
from gpuexplore.measure import process_settings

LOG = logging.getLogger(__name__)
MAX_BYTES = 64_000  # of what each case prints: no more of it than a log can take
PIPE_BYTES = 4096  # a small pipe: so much at most of one case's output can be taken for the next one's
COMMAND = (sys.executable, "-P", "-m", "gpuexplore.jobs.worker")
MARK = "GPUEXPLORE_WORKER"
ELSEWHERE = (  # its priority, its end with ours and what it may use are the business of Linux alone
    f"measuring in a process of its own needs Linux, and this is {sys.platform}: in Python, gpuexplore.run(...) and "
    "gpuexplore.measure(..., isolated=False) measure in the one that is there"
)
KILL_ROUNDS = 2  # what a descendant started while the first round went on is met by the second
# Inductor compiles in the worker: helpers of its own would stay, and idle beside what is measured next
PASSWORDS = ("GPUEXPLORE_DATABASE_URL", "PGPASSWORD", "PGPASSFILE")  # that open the database
SETTINGS = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTHONUNBUFFERED": "1"}
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Worker:
    """A running worker process, the leader of a process group.

    What it prints is read all its life, so that it never waits, and goes to the log, up to a limit.

    Args:
        device: what it measures on.
        runner: module that it loads at once, before the first task.

    Attributes:
        name: that no other one has.
    """

    def __init__(self, device: Device, runner: str) -> None:
        if sys.platform != "linux":
            raise GpuExploreError(ELSEWHERE)
        self.name = secrets.token_hex(4)
        self._mark = secrets.token_hex(16)
        self._process = subprocess.Popen(
            (*COMMAND, runner, device.kind),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pipesize=PIPE_BYTES,
            process_group=0,
            env={**_without_passwords(), **worker_environment(device), MARK: self._mark},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._tasks, self._done = self._process.stdin, self._process.stdout
        self._seen = psutil.Process(self._process.pid)
        self._device_id = device.id
        self._printed_bytes: Counter[Case | None] = Counter()
        self._at_work: Callable[[], Case | None] = lambda: None
        Thread(target=self._read, args=(self._process.stderr,), name=f"output of {device.id}", daemon=True).start()

    def begin(self, directory: Path) -> None:
        """Give it the task in `directory`."""
        with suppress(BrokenPipeError):  # it has just ended, which `exit_code` tells
            self._tasks.write(f"{directory}\n".encode())

    def wait(self, timeout_s: float) -> None:
        """Return when a task is over, at the latest after `timeout_s`."""
        readable, _, _ = select.select([self._done], [], [], timeout_s)
        if readable and not os.read(self._done.fileno(), 1):
            time.sleep(timeout_s)  # nobody has the other end any more: the process is ending

    def exit_code(self) -> int | None:
        """Return how the process ended, a signal as a negative number; None while it runs.

        The process is not reaped here: until `end` does that, no other one can get its number.
        """
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def resident_bytes(self) -> int:
        """Return the memory that the process holds; 0 once it has ended, or where the system does not tell."""
        with suppress(psutil.Error, OSError):
            return int(self._seen.memory_info().rss)
        return 0

    def end(self) -> None:
        """Kill the process and everything it started, in whatever group or session that is by now."""
        os.killpg(self._process.pid, signal.SIGKILL)  # before it is reaped, for the group has its number
        with self._tasks, self._done:
            self._process.wait()
        for _ in range(KILL_ROUNDS):
            for descendant in _marked(self._mark):
                with suppress(psutil.NoSuchProcess):
                    descendant.kill()

    def attribute_output_to(self, at_work: Callable[[], Case | None]) -> None:
        """Count from now on what is printed as that of the case `at_work` returns."""
        self._at_work = at_work
        self._printed_bytes.clear()

    def output_was_cut(self, case: Case) -> bool:
        """Return whether `case` printed more than `MAX_BYTES`: the rest was dropped."""
        return self._printed_bytes[case] > MAX_BYTES

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe:
            while chunk := os.read(pipe.fileno(), PIPE_BYTES):
                self._keep(chunk, self._at_work())

    def _keep(self, chunk: bytes, case: Case | None) -> None:
        before = self._printed_bytes[case]
        self._printed_bytes[case] += len(chunk)
        if before > MAX_BYTES:
            return
        name = f"{case.implementation} on {self._device_id}" if case else f"the worker of {self._device_id}"
        LOG.warning("%s printed: %s", name, readable(chunk.decode(errors="replace")).rstrip())
        if before + len(chunk) > MAX_BYTES:
            LOG.warning("%s printed more than %d kB: the rest is dropped", name, MAX_BYTES // 1000)


class DeviceProcess:
    """The worker of one device; a task starts it when there is none.

    Args:
        runner: module that its worker measures with.
        starter: a thread that lives as long as the worker shall: on Linux the signal that ends a
            child with its parent is sent when the thread that started the child ends.
    """

    def __init__(self, device: Device, runner: str, starter: ThreadPoolExecutor) -> None:
        self.device = device
        self._runner = runner
        self._starter = starter
        self._worker: Worker | None = None

    @property
    def name(self) -> str | None:
        """The name of the worker; None where there is none."""
        return self._worker.name if self._worker else None

    def worker(self) -> Worker:
        """Return the warm worker, or a new one where there is none or it died while it had nothing to do."""
        if self._worker is not None and self._worker.exit_code() is not None:
            self.discard()
        if self._worker is None:
            self._worker = self._starter.submit(Worker, self.device, self._runner).result()
        return self._worker

    def discard(self) -> None:
        """Kill the worker with everything it started; the next task gets a fresh one."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()


def worker_environment(device: Device) -> Mapping[str, str]:
    """Return the variables that must be set before numpy or CUDA is loaded: threads and visible devices.

    Devices that only torch finds keep the numbers they were discovered under, and so what the process may see.
    """
    threads = str(psutil.cpu_count(logical=False) or os.cpu_count() or 1)
    visible = {"CUDA_VISIBLE_DEVICES": device.uuid or device.id.partition(":")[2] if device.kind == "cuda" else ""}
    return {
        **dict.fromkeys(THREAD_VARIABLES, threads),
        **process_settings(),
        **SETTINGS,
        **(visible if device.kind not in TORCH_KINDS else {}),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def _without_passwords() -> Mapping[str, str]:
    """Return this process's environment without what opens the database: a worker computes, and writes to files."""
    return {name: value for name, value in os.environ.items() if name not in PASSWORDS}


def _process_ids() -> list[int]:
    """Return every process there is; none where /proc cannot be read: then what left its group lives on."""
    try:
        return psutil.pids()
    except (OSError, IndexError):  # no directory; one without a process
        LOG.warning("The system lists no processes: what a worker started outside its group is not ended with it")
        return []


def _marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the running processes that inherited `mark`; psutil signals no other one that got such a number since."""
    for pid in _process_ids():
        with suppress(psutil.Error):  # it has ended, or is another user's
            process = psutil.Process(pid)
            if process.environ().get(MARK) == mark:
                yield process
