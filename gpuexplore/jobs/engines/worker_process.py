"""A worker process and one attempt at a task in it: followed until it ends, or has to be ended, and why.

A warm process lives on from task to task. It is killed with everything it started, and replaced, when it fails.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import IO

import psutil

from gpuexplore.activity import ActivityReport
from gpuexplore.core import (
    CANCELLED,
    Case,
    Device,
    Flag,
    GpuExploreError,
    Result,
    Status,
    format_gigabytes,
    format_seconds,
    readable,
)
from gpuexplore.hardware import TORCH_KINDS
from gpuexplore.jobs.engines import PREEMPT, IsCancelled, WorkerLimits
from gpuexplore.jobs.journal import (
    CANCEL,
    LEAVE,
    Begun,
    CurrentCase,
    Ended,
    Event,
    StandingResult,
    current_case_word,
    journal_reader,
    read_current_case,
)
from gpuexplore.measure import process_settings
from gpuexplore.measure.conditions.environment import USABLE_SHARE, free_host_bytes
from gpuexplore.operations.implementation import OF_USERS

LOG = logging.getLogger(__name__)
MAX_BYTES = 64_000  # of what each case prints: no more of it than a log can take
PIPE_BYTES = 4096  # a small pipe: so much at most of one case's output can be taken for the next one's
COMMAND = (sys.executable, "-P", "-m", "gpuexplore.jobs.worker")
MARK = "GPUEXPLORE_WORKER"
PASSWORDS = ("GPUEXPLORE_DATABASE_URL", "PGPASSWORD", "PGPASSFILE")  # of the database, which no worker opens
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
VMSTAT = Path("/proc/vmstat")


class Worker:
    """A running worker process, the leader of a process group.

    What it prints is read all its life, so that it never waits, and goes to the log, up to a limit.

    On Linux the signal that ends a child with its parent is sent when the thread that started the child ends: that
    thread has to live as long as the worker shall.

    Args:
        device: what it measures on.
        runner: module that it loads at once, before the first task.

    Attributes:
        name: that no other one has.
    """

    def __init__(self, device: Device, runner: str) -> None:
        if sys.platform != "linux":
            raise GpuExploreError(  # its priority, its end with ours and what it may use are of Linux alone
                f"measuring in a separate process needs Linux, but this is {sys.platform}: in Python, "
                "gpuexplore.run(...) and gpuexplore.measure(..., isolated=False) measure in the current process"
            )
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
            env={
                **{name: value for name, value in os.environ.items() if name not in PASSWORDS},
                **_worker_environment(device),
                MARK: self._mark,
            },
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._tasks = self._process.stdin
        self._done = self._process.stdout
        self._seen = psutil.Process(self._process.pid)
        self._device_id = device.id
        self._printed_bytes: Counter[Case | None] = Counter()
        self._at_work: Callable[[], Case | None] = lambda: None
        Thread(target=self._read, args=(self._process.stderr,), name=f"output of {device.id}", daemon=True).start()

    def begin(self, directory: Path) -> None:
        """Give it the task in `directory`."""
        with suppress(BrokenPipeError):  # it has just ended, as `exit_code` shows
            self._tasks.write(f"{directory}\n".encode())

    def wait(self, timeout_s: float) -> None:
        """Return when a task is over, at the latest after `timeout_s`."""
        readable, _, _ = select.select([self._done], [], [], timeout_s)
        if readable and not os.read(self._done.fileno(), 1):
            time.sleep(timeout_s)  # the other end is closed: the process is ending

    def exit_code(self) -> int | None:
        """Return how the process ended, a signal as a negative number; None while it runs.

        The process is not reaped here: until `end` does that, no other one can get its number.
        """
        ended = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def resident_bytes(self) -> int:
        """Return the memory that the process uses; 0 once it has ended, or where the system does not state it."""
        with suppress(psutil.Error, OSError):
            return int(self._seen.memory_info().rss)
        return 0

    def end(self) -> None:
        """Kill the process and everything it started, in whatever group or session that is by now."""
        os.killpg(self._process.pid, signal.SIGKILL)  # before it is reaped, for the group has its number
        with self._tasks, self._done:
            self._process.wait()
        for _ in range(2):  # what a descendant started while the first round went on is met by the second
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


def _worker_environment(device: Device) -> Mapping[str, str]:
    """Return the variables that must be set before numpy or CUDA is loaded: threads and visible devices.

    Devices that only torch finds keep the numbers they were discovered under, and so what the process may see.
    """
    threads = str(psutil.cpu_count(logical=False) or os.cpu_count() or 1)
    visible = {"CUDA_VISIBLE_DEVICES": device.uuid or device.id.partition(":")[2] if device.kind == "cuda" else ""}
    return {
        **dict.fromkeys(THREAD_VARIABLES, threads),
        **process_settings(),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # helpers of its own would stay, and idle while the next case is measured
        "PYTHONUNBUFFERED": "1",
        **(visible if device.kind not in TORCH_KINDS else {}),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def _process_ids() -> list[int]:
    """Return every process there is; none where /proc cannot be read: then what left its group lives on."""
    try:
        return psutil.pids()
    except (OSError, IndexError):  # no directory; one without a process
        LOG.warning(
            "The system lists no processes: processes that a worker starts outside its group are not ended with it"
        )
        return []


def _marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the running processes that inherited `mark`; psutil signals no other one that got such a number since."""
    for pid in _process_ids():
        with suppress(psutil.Error):  # it has ended, or is another user's
            process = psutil.Process(pid)
            if process.environ().get(MARK) == mark:
                yield process


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why an attempt ended before every case had its result.

    Attributes:
        case: the one that is to blame, where no other can be.
    """

    status: Status
    reason: str
    case: Case | None = None


CANCELLATION = Failure(Status.CANCELLED, CANCELLED)


def _failure_of_exit(exit_code: int, oom_kills_before: int | None) -> Failure:
    """Return what is known of a worker that ended in the middle of its task.

    Args:
        exit_code: of the process, a signal as a negative number.
        oom_kills_before: how many processes Linux had ended for want of memory when the task began.
    """
    if exit_code >= 0:
        return Failure(Status.CRASHED, f"the worker ended with exit code {exit_code}")
    name = signal.Signals(-exit_code).name
    if name != "SIGKILL":
        return Failure(Status.CRASHED, f"the worker was ended by {name}")
    now = _oom_kills()
    if now is None or oom_kills_before is None:
        return Failure(Status.CRASHED, "the worker was ended by SIGKILL: out of memory, or killed by a user")
    if now > oom_kills_before:
        return Failure(Status.OUT_OF_MEMORY, "Linux ended the worker: its memory was exhausted")
    return Failure(Status.CRASHED, "the worker was ended by SIGKILL, but not because memory ran out")


def _oom_kills() -> int | None:
    """Return how many processes of this host Linux has ended for want of memory; None where it does not say."""
    try:
        lines = VMSTAT.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


class Attempt:
    """One attempt at a task, and what is known of it while a worker carries it out.

    Attributes:
        pending: the cases without a final result.
        provisional: what is known of them so far.
        started: those of them that the worker took up, in that order.
        statuses: of the final results so far.
        kept: results of pending cases that stand should the worker end before it reports them.
        ended: what the worker said when it was done.
        hurried: whether the worker was asked to hurry.

    Args:
        on_observation: gets what an activity reports.
        hurries: asked all the while; once true, the worker is asked to cancel, and has all the time it needs to.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        on_event: Callable[[Case | Result], None],
        limits: WorkerLimits,
        *,
        on_observation: Callable[[ActivityReport], None] = lambda _: None,
        hurries: Callable[[], bool] = lambda: False,
    ) -> None:
        self.hurried = False
        self._hurries = hurries
        self.pending = list(cases)
        self.provisional: dict[Case, Result] = {}
        self.started: list[Case] = []
        self.statuses: set[Status] = set()
        self.kept: dict[Case, Result] = {}
        self.ended: Ended | None = None
        self._cases = tuple(cases)
        self._on_event = on_event
        self._on_observation = on_observation
        self._observed = 0
        self._limits = limits
        self._seconds_in = _stopwatch()
        self._begun = False
        self._last: Case | None = None  # at work when the worker ended
        self._cancelled_s: float | None = None

    def follow(self, worker: Worker, directory: Path, cancelled: IsCancelled) -> Failure | None:
        """Pass on what the journal in `directory` says until the task ends or must end; return why it failed."""
        new_events = journal_reader(directory)
        word = current_case_word(directory, create=True)
        kills = _oom_kills()
        free = free_host_bytes()
        share = 0.5 if any(OF_USERS in case.implementation for case in self._cases) else USABLE_SHARE
        share_bytes = None if free is None else worker.resident_bytes() + int(share * free)
        worker.attribute_output_to(lambda: self._at_work(read_current_case(word)))
        worker.begin(directory)
        while True:
            exit_code = worker.exit_code()  # first, so that all a process wrote before it ended is read
            self._pass_on(new_events(), worker)
            current = read_current_case(word)
            if self.ended is not None:
                return Failure(Status.ERROR, self.ended.error) if self.ended.error else None
            if exit_code is not None:
                self._last = self._at_work(current)
                return _failure_of_exit(exit_code, kills)
            if not self.hurried and self._hurries():
                (directory / CANCEL).touch()
                self.hurried = True
            chosen_bytes = (
                self._limits.memory_bytes if current.count else None
            )  # peaks before may overflow a large cache
            most_bytes = chosen_bytes or share_bytes
            failure = self._cancel(directory, cancelled) or self._timeout(current)
            if failure := failure or self._too_large(worker.resident_bytes(), most_bytes, current):
                return failure
            worker.wait(0.02)

    def suspects(self, failure: Failure) -> list[Case]:
        """Return the cases one of which caused `failure`: the one it names, those taken up, or the only one left.

        The last of them is the one to look at first: the process ended while it was at work. None where the worker
        ended before it took up the task: it may have ended while it was idle.
        """
        if failure.case in self.pending:
            return [failure.case]
        if not self._begun and failure.status is not Status.TIMEOUT:
            return []
        started = sorted(self.started, key=lambda case: case == self._last)
        return started or (self.pending if len(self.pending) == 1 else [])

    def report_kept(self, worker_failure: Failure) -> bool:
        """Report the results that stand; return whether there were any: then the failure is that of a further call."""
        found = tuple(self.kept.values())
        for result in found:
            LOG.warning("%s, called on one element: %s", result.case.implementation, worker_failure.reason)
            self._note(result)
            self._on_event(result)
        return bool(found)

    def _at_work(self, current: CurrentCase) -> Case | None:
        return self._cases[current.index] if current.count else None

    def _pass_on(self, events: Iterable[Event], worker: Worker) -> None:
        for event in events:
            if isinstance(event, Begun):
                self._begun = True
            elif isinstance(event, Ended):
                self.ended = event
            elif isinstance(event, ActivityReport):
                self._observed += 1
                self._on_observation(event)
            elif isinstance(event, StandingResult):
                self.kept[event.result.case] = event.result
            else:
                self._note(event)
                reported = event
                if isinstance(event, Result) and worker.output_was_cut(event.case):
                    printed = Flag("truncated", f"it printed more than {MAX_BYTES // 1000} kB: the rest was dropped")
                    reported = replace(event, flags=(*event.flags, printed))
                self._on_event(reported)

    def _note(self, event: Case | Result) -> None:
        case = event.case if isinstance(event, Result) else event
        if isinstance(event, Result) and event.provisional:
            self.provisional[case] = event
            return
        self.started = [earlier for earlier in self.started if earlier != case]
        if isinstance(event, Result):
            self.pending.remove(case)
            self.provisional.pop(case, None)
            self.kept.pop(case, None)
            self.statuses.add(event.status)
        else:
            self.started.append(case)

    def _cancel(self, directory: Path, cancelled: IsCancelled) -> Failure | None:
        """Tell the worker of a cancellation; return it once the worker had its time to obey."""
        if self._cancelled_s is None and (stop := cancelled()):
            (directory / (LEAVE if stop == PREEMPT else CANCEL)).touch()
            self._cancelled_s = time.monotonic()
        if self._cancelled_s is None or time.monotonic() - self._cancelled_s < self._limits.grace_s:
            return None
        return CANCELLATION

    def _timeout(self, current: CurrentCase) -> Failure | None:
        case = self._at_work(current)
        limit_s = self._limits.of_case(case, current.expected_s) if case else self._limits.start_s
        if self._seconds_in((self._begun, current, self._observed)) <= limit_s:
            return None
        what = "no result" if case else "nothing was reported" if self._begun else "the worker did not start"
        more = ": --time-limit sets another limit" if case and current.expected_s is None else ""
        return Failure(Status.TIMEOUT, f"{what} within {format_seconds(limit_s)}{more}", case)

    def _too_large(self, used_bytes: int, most_bytes: int | None, current: CurrentCase) -> Failure | None:
        if most_bytes is None or used_bytes <= most_bytes:
            return None
        reason = (
            f"its process took more than {format_gigabytes(most_bytes)} of memory: --memory-limit sets another limit"
        )
        return Failure(Status.OUT_OF_MEMORY, reason, self._at_work(current))


def _stopwatch() -> Callable[[object], float]:
    """Return a function for how long a state has been the same, without time in which this process was stopped."""
    last: object = None
    seconds = 0.0
    looked_s = time.monotonic()

    def seconds_in(state: object) -> float:
        nonlocal last, seconds, looked_s
        now_s = time.monotonic()
        # where more passes between two looks, this process stood still, and perhaps the worker with it
        passed_s = min(now_s - looked_s, 1.0)
        seconds = seconds + passed_s if state == last else 0.0
        last = state
        looked_s = now_s
        return seconds

    return seconds_in
