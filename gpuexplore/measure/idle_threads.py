"""Waits until no idle thread of another library spins: its pool would take a core from the next one.

A library's threads keep spinning for a while after a call. While this thread sleeps, only they can use
the CPU in the name of this process, so its CPU time tells when they have gone to sleep.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from gpuexplore.backends.timer import Clock, Run
from gpuexplore.measure.cpu_affinity import isolate_core

SLICE_S = 200e-6  # what it waits at least, before every round: short, yet ten times what waking up costs
QUIET_SHARE = 0.3
LONGEST_WAIT_S = 0.25  # OpenBLAS spins for 0.1 s unless POOL_SETTINGS were there when it was loaded


def wait_for_idle_threads(
    cpu_s: Callable[[], float] = time.process_time, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Sleep until this process uses less than a third of a core while it sleeps, at most 0.25 s."""
    for _ in range(int(LONGEST_WAIT_S / SLICE_S)):
        before_s = cpu_s()
        sleep(SLICE_S)
        if cpu_s() - before_s < QUIET_SHARE * SLICE_S:
            return


@dataclass(frozen=True, slots=True)
class Timekeeper:
    """The clock that is read and the silence that is waited for; tests pass their own.

    Attributes:
        clock: nanoseconds, monotonic.
        quiet: waits until other libraries' threads sleep.
        apart: inside it, pool threads keep off the core of the calling thread.
    """

    clock: Clock = time.perf_counter_ns
    quiet: Run = wait_for_idle_threads
    apart: Callable[[], AbstractContextManager[None]] = isolate_core
