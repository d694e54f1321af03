"""Waits until the idle pool threads of other libraries sleep: while they spin they take cores from the next one.

A library's threads keep spinning for a while after a call. The system tells which threads of this process run, or would
if they had a core; CPU time would tell at the next tick only, up to 4 ms later.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from gpuexplore.backends.timer import Call, Clock
from gpuexplore.core.model import Case, Result
from gpuexplore.devices import thread_waits

TASKS = Path("/proc/self/task")

# Keeps the threads of a library's pool off the core of the thread that calls it.
#
# A scheduler may wake a pool's thread on its caller's core and leave it there for seconds, while another core
# idles: the two then take turns of 3 ms, and torch's product of 128 x 128 takes 2.8 ms in place of 22 µs (seen on a
# virtual machine with two cores and nobody else on it, in most of the rounds that follow a pause).
#
# Right for pools whose caller works too, as OpenBLAS's and OpenMP's do; see docs/decisions/0005.


@contextmanager
def isolate_core(tasks: Path = TASKS) -> Iterator[None]:
    """Inside, this thread keeps the first core it may use to itself, the process's others share the rest.

    Threads started inside share the first core until it ends: whatever starts threads belongs outside. Does nothing on
    one core, and where the system does not let threads be placed.
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
            with suppress(OSError):  # it has ended, or has a core prescribed from outside
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
    """Return whether a thread runs or waits for a core: the field after its name, which may hold anything."""
    return (task / "stat").read_bytes().rpartition(b")")[2].lstrip().startswith(b"R")


def longest_wait_s(before_s: Mapping[int, float], after_s: Mapping[int, float]) -> float | None:
    """Return how long the thread that waited longest between two readings did; None where nobody counts it."""
    return max((after_s[thread] - before_s[thread] for thread in before_s.keys() & after_s.keys()), default=None)


def beside_anybody(_: float) -> AbstractContextManager[Callable[[], float]]:
    """Ask nobody to keep off the cores."""
    return nullcontext(lambda: 0.0)


def ignore_turn(case: Case, expected_s: float | None) -> None:
    """Tell nobody whose turn it is."""


def keep_nothing(result: Result) -> None:
    """Trust that the process lives on."""


def never() -> bool:
    """Measure to the end."""
    return False


@dataclass(frozen=True, slots=True)
class Timekeeper:
    """The clock, and what keeps other threads away from a measurement; tests pass their own.

    Attributes:
        clock: nanoseconds, monotonic.
        wait_for_idle_threads: returns when other libraries' pool threads sleep.
        isolate_core: inside it, pool threads keep off the core of the calling thread.
        undisturbed: inside it, what serves visitors keeps off the cores; gets about how many seconds that takes, and
            yields what tells the CPU seconds that it used all the same.
        look_at_cores: gets how many threads compute, and how to wait for idle pool threads; tells how fast the
            slowest core runs then, of its usual rate. None: nobody looks.
        thread_waits: tells for how many seconds each thread of this process has waited for a core, if anybody knows.
        begin_turn: gets the case that runs next, with about how many seconds its round of samples takes, or with None
            when it is checked and finished: whoever waits for it then knows what hangs.
        keep: gets a result that lacks only the cost of a call on one element, before that is measured: should the
            process end or hang meanwhile, it stands.
        leaves_off: asked between rounds; once true, what has a provisional result stays without a final one.
    """

    clock: Clock = time.perf_counter_ns
    wait_for_idle_threads: Call = wait_for_idle_threads
    isolate_core: Callable[[], AbstractContextManager[None]] = isolate_core
    undisturbed: Callable[[float], AbstractContextManager[Callable[[], float]]] = beside_anybody
    look_at_cores: Callable[[int, Call], float | None] | None = None
    thread_waits: Callable[[], Mapping[int, float]] = thread_waits
    begin_turn: Callable[[Case, float | None], None] = ignore_turn
    keep: Callable[[Result], None] = keep_nothing
    leaves_off: Callable[[], bool] = never
