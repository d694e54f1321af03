"""Isolation of a measurement from other threads and processes, and its link to the supervisor.

A library's pool threads keep spinning for a while after a call, and take cores from the next library: they are waited
for. The system shows which threads of this process run, or would if they had a core; CPU time would show it at the next
tick only, up to 4 ms later.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuexplore.backends.timer import Call
from gpuexplore.core.model import Case, Result
from gpuexplore.hardware import thread_waits

TASKS = Path("/proc/self/task")

# Keeps the threads of a library's pool off the core of the thread that calls it.
#
# A scheduler may wake a pool's thread on its caller's core and leave it there for seconds, while another core
# idles: the two then share it in slices of 3 ms, and torch's product of 128 x 128 takes 2.8 ms instead of 22 µs (seen
# on an otherwise idle virtual machine with two cores, in most of the rounds that follow a pause).
#
# Right for pools whose caller works too, as OpenBLAS's and OpenMP's do; see docs/decisions/0005.


@contextmanager
def isolate_core(tasks: Path = TASKS) -> Iterator[None]:
    """Inside, this thread keeps the first core it may use to itself, the process's others share the rest.

    Threads started inside share the first core until it ends: whatever starts threads belongs outside. Does nothing on
    one core, and where the system has no thread affinity.
    """
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cpus) < 2 or not tasks.exists():
        yield
        return
    own = threading.get_native_id()
    before = {thread_id: mask for thread_id in _thread_ids(tasks) if (mask := _mask(thread_id))}
    _set_masks({thread: {cpus[0]} if thread == own else mask - {cpus[0]} for thread, mask in before.items()})
    try:
        yield
    finally:
        inherited = {thread: before[own] for thread in _thread_ids(tasks) if thread not in before}
        _set_masks(before | {thread: mask for thread, mask in inherited.items() if _mask(thread) == {cpus[0]}})


def _thread_ids(tasks: Path) -> list[int]:
    return [int(path.name) for path in tasks.iterdir()]


def _mask(thread: int) -> set[int]:
    """Return the CPUs a thread may use; empty when it has ended."""
    try:
        return os.sched_getaffinity(thread)
    except OSError:
        return set()


def _set_masks(masks: Mapping[int, set[int]]) -> None:
    for thread, mask in masks.items():
        if mask:
            with suppress(OSError):  # it has ended, or its affinity is set from outside
                os.sched_setaffinity(thread, mask)


SLICE_S = 200e-6
MAX_WAIT_S = 0.25  # OpenBLAS spins for 0.1 s unless POOL_SETTINGS were there when it was loaded


def wait_for_idle_threads(tasks: Path = TASKS, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Sleep until no other thread of this process runs, at most 0.25 s; return whether so."""
    for _ in range(int(MAX_WAIT_S / SLICE_S)):
        if not _others_run(tasks):
            return True
        sleep(SLICE_S)
    return False


def _others_run(tasks: Path) -> bool:
    own = str(threading.get_native_id())
    with suppress(OSError):  # a thread has ended, or the system has no such folder
        return any(_runs(tasks / thread) for thread in os.listdir(tasks) if thread != own)  # noqa: PTH208 twice as fast
    return False


def _runs(task: Path) -> bool:
    """Return whether a thread runs or waits for a core: the field after its name, which may contain anything."""
    return (task / "stat").read_bytes().rpartition(b")")[2].lstrip().startswith(b"R")


def longest_wait_s(before_s: Mapping[int, float], after_s: Mapping[int, float]) -> float | None:
    """Return the longest wait of any thread between two readings; None where the system does not count it."""
    return max((after_s[thread] - before_s[thread] for thread in before_s.keys() & after_s.keys()), default=None)


@dataclass(frozen=True, slots=True)
class Isolation:
    """Isolation of a measurement from other threads and processes, or the time that they took; tests pass their own.

    Attributes:
        wait_for_idle_threads: returns when other libraries' pool threads sleep.
        isolate_core: inside it, pool threads keep off the core of the calling thread.
        exclude_servers: inside it, web servers of this host start no work; gets the expected seconds, and yields a
            function that returns the CPU seconds they used all the same.
        core_speed: gets the number of computing threads and `wait_for_idle_threads`; returns how fast the slowest core
            runs then, of its usual rate. None: not observed.
        thread_waits: returns the seconds that each thread of this process has waited for a core, where counted.
    """

    wait_for_idle_threads: Call = wait_for_idle_threads
    isolate_core: Callable[[], AbstractContextManager[None]] = isolate_core
    exclude_servers: Callable[[float], AbstractContextManager[Callable[[], float]]] = lambda _: nullcontext(lambda: 0.0)
    core_speed: Callable[[int, Call], float | None] | None = None
    thread_waits: Callable[[], Mapping[int, float]] = thread_waits


@dataclass(frozen=True, slots=True)
class ProgressHooks:
    """Hooks by which a measurement reports to its supervisor and polls it; by default none, and it runs to its end.

    Attributes:
        report: gets a case when work on it starts, and its results; of an activity, its payloads.
        cancelled: polled between rounds; whether to stop.
        preempted: polled between rounds; once true, what has a provisional result stays without a final one.
        running: gets the case at work, with the expected seconds of its round of samples, or with None while it is
            checked and finished; used to attribute a hang.
        checkpoint: gets a result that lacks only the cost of a call on one element, before that is measured: it stands
            if the process ends or hangs meanwhile.
    """

    report: Callable[[Any], object] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    preempted: Callable[[], bool] = lambda: False
    running: Callable[[Case, float | None], object] = lambda *_: None
    checkpoint: Callable[[Result], object] = lambda _: None
