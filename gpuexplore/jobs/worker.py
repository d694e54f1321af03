"""A worker's life: the process, one per device, in which measuring happens.

An engine starts it (`jobs.engines.worker_process`), with the threads and the visible devices in its environment, as
`python -m gpuexplore.jobs.worker RUNNER KIND`: it steps aside for pages, loads the runner, and ends with the engine,
whatever ends that. It then lives on, warm, from task to task. On standard input come directories, each with a task: to
load the libraries (a warm-up), to measure cases, or to do an activity; a line on standard output says that one is over.

What happens meanwhile is in the task's journal and in a word of shared memory (`jobs.journal`): that it was begun, the
case at work, provisional and final results, and how it ended. The engine follows them, and tells the worker to cancel
or to leave off by a file in the directory. It ends it, with all that it started, where it does not obey, hangs, or
takes too much memory, and after a task that broke the CUDA context, or left processes or threads behind. Where the
worker ends by itself, these records tell which case is to blame. The next task gets a fresh one. What a case prints
goes to standard error, and from there to the log.
"""

import ctypes
import logging
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from mmap import mmap
from pathlib import Path
from pkgutil import resolve_name
from typing import IO

import psutil

from gpuexplore.activity import DEVICE, ActivityReport
from gpuexplore.backends.host import installed_versions
from gpuexplore.core import PRIORITY, Case, Device, GpuExploreError, Result, Status, raise_priority
from gpuexplore.hardware import device_key, ensure_ceiling
from gpuexplore.jobs.engines import with_fewer_samples
from gpuexplore.jobs.journal import (
    CANCEL,
    JOURNAL,
    LEAVE,
    Begun,
    Ended,
    StandingResult,
    WorkerTask,
    current_case_word,
    read_task,
    write_current_case,
    write_event,
)
from gpuexplore.jobs.quiet import Rounds
from gpuexplore.measure.candidates.failure import breaks_context, describe_error, failed
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.conditions.watch import SPEEDS
from gpuexplore.measure.sample.compile_ahead import compile_ahead

LOG = logging.getLogger(__name__)
AUTOGROUP = Path("/proc/self/autogroup")
LOADING_NICE = 5  # while libraries are loaded: a page has three times its share of a core
LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU)


def main() -> None:
    """Carry out one task after the other, until standard input ends."""
    tasks, done = _take_pipes()
    # End with the engine, become the parent of every descendant that loses its own, and step aside for now
    _lower_priority()
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # https://man7.org/linux/man-pages/man2/prctl.2.html
    pr_set_pdeathsig = 1
    pr_set_child_subreaper = 36
    prctl(pr_set_pdeathsig, signal.SIGKILL)
    prctl(pr_set_child_subreaper, 1)
    _preload(*sys.argv[1:])
    engine = select.poll()
    engine.register(tasks, select.POLLHUP)
    for line in tasks:
        if engine.poll(0):  # it ended before prctl was called, and left a task in the pipe
            return
        perform(Path(line.rstrip("\n")))
        print(file=done, flush=True)


def _preload(runner: str, kind: str) -> None:
    """Load what a task will need, while the engine still writes the task."""
    with suppress(ImportError):  # the task reports what is missing
        resolve_name(runner)
    if kind == "cpu":
        SPEEDS.prepare()


def perform(directory: Path) -> None:
    """Carry out the task in `directory`; progress goes to its journal."""
    task = read_task(directory)
    with (directory / JOURNAL).open("a", encoding="utf-8") as journal:
        write_event(journal, Begun(os.getpid()))
        _raise_priority()
        if task.activity:
            ended = _perform_activity(task, directory, journal)
        else:
            ended = _measure(task, directory, journal) if task.cases else _warm_up(task, directory)
        write_event(journal, ended)


def _take_pipes() -> tuple[IO[str], IO[str]]:
    """Return what was standard input and output: what is measured reads nothing, and prints to standard error."""
    tasks = os.fdopen(os.dup(0))
    done = os.fdopen(os.dup(1), "w")
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return tasks, done


def _raise_priority() -> None:
    """Take priority over other processes, and as a session over other sessions, where the privilege of root allows it.

    Linux shares cores between sessions by their autogroups, https://man7.org/linux/man-pages/man7/sched.7.html. A
    supervisor leads one that is there to measure; that of a command is its user's shell's, which stays as it is.
    """
    with suppress(OSError):
        _take_priority(PRIORITY)


def _lower_priority() -> None:
    """Let pages go first while nothing is measured yet, where priority can be taken again."""
    with suppress(OSError):
        raise_priority()
        _take_priority(LOADING_NICE)


def _take_priority(priority: int) -> None:
    raise_priority(priority)
    if os.getsid(0) != os.getppid():
        return
    for _ in range(4):
        try:
            AUTOGROUP.write_text(str(priority), encoding="ascii")
        except BlockingIOError:  # without privileges it may be written ten times a second
            time.sleep(0.05)
        else:
            return


def _children() -> set[psutil.Process]:
    """Return the children that run; every running descendant has one of them above it, or is one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # none at all, as nearly always: 2 µs, where a list of processes takes milliseconds
        return set()
    with suppress(psutil.Error, OSError):  # /proc cannot be read: then what was left behind is not noticed
        return {child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE}
    return set()


def _running() -> set[psutil.Process | threading.Thread]:
    """Return what implementations may leave behind, at work: child processes, and threads of Python."""
    return {*_children(), *threading.enumerate()}


def _warm_up(task: WorkerTask, directory: Path) -> Ended:
    """Load the libraries the runner uses, until it has to hurry; what they start is part of a warm worker."""
    try:
        hurried = (directory / CANCEL).exists
        _lower_priority()
        resolve_name(task.runner).warm_up(task.device, hurried)
        _raise_priority()
        ready = ensure_ceiling(task.device, later=True, hurried=hurried)
    except Exception as error:
        _log(error, f"Warming up {task.device.id} failed")
        return Ended(describe_error(error))
    return Ended(device=ready)


def _perform_activity(task: WorkerTask, directory: Path, journal: IO[str]) -> Ended:
    """Do what no sweep of an operation is; what goes wrong in it is its own failure."""
    assert task.activity is not None
    children = _children()
    failure = None
    versions = {**installed_versions(), DEVICE: device_key(task.device)}
    try:
        resolve_name(task.runner).perform(
            dict(task.activity.arguments),
            ensure_ceiling(task.device),
            clock=time.perf_counter_ns,
            isolation=Isolation(exclude_servers=Rounds().undisturbed_by_pages),
            progress=ProgressHooks(
                report=lambda payload: write_event(journal, ActivityReport(payload, versions)),
                cancelled=(directory / CANCEL).exists,
            ),
        )
    except Exception as error:
        _log(error, f"{task.activity} failed")
        failure = describe_error(error)
    broken = failure if failure and breaks_context(failure, task.device) else None
    return Ended(broken, failure=failure, left_behind=len(_children() - children))


@contextmanager
def _limits_put_back() -> Iterator[None]:
    """Put back what the process may use of memory, files and time: another group is measured in it next."""
    before = {which: resource.getrlimit(which) for which in LIMITS}
    try:
        yield
    finally:
        for which, limits in before.items():
            with suppress(ValueError, OSError):  # a hard limit that was lowered stays so
                resource.setrlimit(which, limits)


def _measure(task: WorkerTask, directory: Path, journal: IO[str]) -> Ended:
    """Measure cases: every one ends with a result, also what the runner leaves out, or loses in an exception.

    Where a case breaks the CUDA context, and with it this process, it is the last one in the journal, and has
    no result.
    """
    if task.device.kind == "cpu":
        SPEEDS.prepare()  # its threads are the worker's own
    before = _running()
    reporter = _Reporter(task, current_case_word(directory), journal)
    try:
        with _limits_put_back():
            error = _measure_cases(task, reporter, directory)
    except BaseException as end:  # SystemExit and its like, of the case at work: this process ends
        return Ended(f"{type(end).__name__}: it ended the measuring process")
    status = Status.ERROR
    reason = "the runner reported no result for this case"
    if (directory / LEAVE).exists():
        status = Status.CANCELLED
        reason = "preempted by other runs: it will be finished later"
    for case in tuple(reporter.left):
        reporter.report(failed(case, error) if error else Result(case, status, reason))
    return Ended(reporter.context_error, left_behind=len(_running() - before))


class _Reporter:
    """Writes what a runner reports, until a case breaks the CUDA context: what follows would blame the wrong ones.

    Attributes:
        left: the cases without a final result.
        context_error: what broke the context.
    """

    def __init__(self, task: WorkerTask, current_case: mmap, journal: IO[str]) -> None:
        self.left = dict.fromkeys(task.cases)
        self.context_error: str | None = None
        self._device = task.device
        self._indices = {case: index for index, case in enumerate(task.cases)}
        self._current_case = current_case
        self._journal = journal
        self._process = os.getpid()

    def take_up(self, case: Case, expected_s: float | None = None) -> None:
        self._end_twin()
        if case in self._indices:  # others are called while one of these is finished: the cost of a call is sampled
            write_current_case(self._current_case, self._indices[case], expected_s)

    def pause(self) -> None:
        """Note that no case is at work: limits of cases do not count."""
        self._current_case[:] = bytes(len(self._current_case))

    def _end_twin(self) -> None:
        """End this process where it is a copy of the worker that an implementation made: both would report."""
        if os.getpid() != self._process:
            os._exit(0)

    def keep(self, result: Result) -> None:
        self._end_twin()
        if result.case in self.left:
            write_event(self._journal, StandingResult(with_fewer_samples(result)))

    def report(self, event: Case | Result) -> None:
        self._end_twin()
        if self.context_error is not None:
            return
        if isinstance(event, Case):
            self.take_up(event)
        elif event.status is Status.ERROR and breaks_context(event.reason or "", self._device):
            self.context_error = event.reason
            event = event.case
        else:
            if not event.provisional:
                del self.left[event.case]
            event = with_fewer_samples(event)
        write_event(self._journal, event)


def _measure_cases(task: WorkerTask, reporter: _Reporter, directory: Path) -> Exception | None:
    """Return what ended the runner before it was done."""
    threads = task.cases[0].options.threads

    @cache  # where no ceiling can be saved, too
    def with_peaks(device: Device) -> Device:
        reporter.pause()
        ends = (directory / CANCEL, directory / LEAVE)
        return ensure_ceiling(device, threads, hurried=lambda: any(end.exists() for end in ends))

    isolation = Isolation(exclude_servers=Rounds().undisturbed_by_pages, core_speed=SPEEDS.look)
    progress = ProgressHooks(
        report=reporter.report,
        cancelled=(directory / CANCEL).exists,
        preempted=(directory / LEAVE).exists,
        running=reporter.take_up,
        checkpoint=reporter.keep,
        with_peaks=with_peaks,
    )
    try:
        compile_ahead(task.cases, task.device)
        ready = ensure_ceiling(task.device, threads, hurried=lambda: True)
        resolve_name(task.runner).measure_cases(
            task.cases, ready, clock=time.perf_counter_ns, isolation=isolation, progress=progress
        )
    except Exception as error:
        _log(error, f"Measuring {len(task.cases)} cases on {task.device.id} failed")
        return error
    return None


def _log(error: Exception, what: str) -> None:
    """Log an error with where it arose; not what was raised on purpose, or by a package that is missing."""
    purposeful = isinstance(error, GpuExploreError | ModuleNotFoundError)
    LOG.error("%s: %s", what, describe_error(error), exc_info=None if purposeful else error)


if __name__ == "__main__":
    main()
