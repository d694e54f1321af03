"""Isolation of a measurement from other threads and processes, and its link to the supervisor.

A library's pool threads keep spinning for a while after a call, and take cores from the next library: they are waited
for. The system shows which threads of this process run, or would if they had a core; CPU time would show it at the next
tick only, up to 4 ms later.

Contention: other work on a device while something is measured on it, and how fast its cores run meanwhile.

Virtual machines share cores with others that no account of this machine shows: a neighbour on the other hardware thread
of a core takes half of it. A loop of multiply-adds on each core finds them: where it runs at half its best, a product
of 512 x 512 takes 1.5 times as long (benchmarks/README.md). They come for milliseconds or for seconds; waiting for them
to leave gained nothing, so results report them.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from gpuexplore.backends import Call
from gpuexplore.core import Case, Device, Environment, Flag, Result, format_percent, quantile
from gpuexplore.hardware import CpuLoss, thread_waits

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
        with_peaks: gets the device before a case is concluded; returns it with its peaks, which may have to be
            measured before.
    """

    report: Callable[[Any], object] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    preempted: Callable[[], bool] = lambda: False
    running: Callable[[Case, float | None], object] = lambda *_: None
    checkpoint: Callable[[Result], object] = lambda _: None
    with_peaks: Callable[[Device], Device] = lambda device: device


SLOW_BELOW = 0.9  # of a core's usual rate: the clocks of quiet cores vary by less
MOST_CORES = 8  # cores observed at once
FRESH_S = 0.1  # age up to which a reading holds for the next rounds too


def is_slow(share: float) -> bool:
    """Return whether what runs on a core at this share of its usual rate takes longer than it should."""
    return share < SLOW_BELOW


class CoreSpeeds:
    """The rates that this process has measured of its cores.

    Args:
        rates: FLOP/s of each of the cores it gets; none where that is unknown.
        clock: in seconds.
    """

    def __init__(
        self,
        rates: Callable[[Sequence[int]], Sequence[float]],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._rates = rates
        self._clock = clock
        self._seen: dict[tuple[int, int], deque[float]] = {}  # of a core, among so many that are observed
        self._last: tuple[float, int, float | None] = (-FRESH_S, 0, None)

    def prepare(self) -> None:
        """Probe each core once, which starts the probing threads; does nothing the second time."""
        if self._seen:
            return
        for threads in (1, len(_cores())):
            self.look(threads, lambda: None)

    def look(self, threads: int, wait: Call) -> float | None:
        """Wait until pool threads sleep; return how fast the slowest core runs then, of its usual rate.

        None where that is unknown.

        Args:
            threads: that compute. Fewer than there are cores may be on any: the first core is observed, which
                `isolate_core` leaves to the calling thread.
            wait: returns when pool threads of this process sleep.
        """
        cores = _cores()
        cores = cores[: MOST_CORES if 1 < len(cores) <= threads else 1]
        seen_s, same, slowest = self._last
        if self._clock() - seen_s < FRESH_S and same == len(cores):
            return slowest
        wait()
        shares = [self._share((core, len(cores)), rate) for core, rate in zip(cores, self._rates(cores), strict=False)]
        slowest = min(shares, default=None)
        self._last = (self._clock(), len(cores), slowest)
        return slowest

    def _share(self, core: tuple[int, int], rate: float) -> float:
        seen = self._seen.setdefault(
            core, deque(maxlen=256)
        )  # other work for a few seconds does not change the usual rate
        seen.append(rate)
        return rate / quantile(seen, 0.9)  # excludes bursts of the clock and slow periods due to neighbours


def _cores() -> list[int]:
    """Return the cores that this thread may use; none where the system has no thread affinity."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


WAITS = 0.08  # error of medians next to a busy loop, in 960 results of eight processes (benchmarks/README.md)
WAITED_ABOVE = 0.05  # share of a window in which our threads waited for cores used by other work


def contention(environment: Environment, losses: Sequence[CpuLoss], waited_share: float | None = None) -> Flag | None:
    """Return the flag of contention, or of unknown contention; None where there was none.

    Args:
        losses: of windows in which it was measured; any of them can show it.
        waited_share: of its own rounds, in which it waited for a core in use by others: the size of the disturbance,
            whatever others took of other cores. None is unknown: then it is what they took.
    """
    others = environment.after.foreign_processes
    if others:
        return Flag("contended", f"{others} other process{'es' if others > 1 else ''} used {environment.device.id}")
    known = [loss for loss in losses if loss.share is not None]
    lost = [found for loss in known if (found := _lost(loss))]
    if lost:
        worst = max(lost, key=lambda flag: flag.size or 0.0)
        return worst if waited_share is None else _with_effect_size(worst, waited_share)
    reasons = [] if known else [loss.reason or "not checked" for loss in losses[:1]] or ["not checked"]
    if environment.device.kind != "cpu" and others is None:
        reasons.append(f"the driver does not list the other processes on {environment.device.id}")
    return Flag("contention_unknown", "; ".join(reasons)) if reasons else None


def is_contended(share: float | None, step: float = 0.0) -> bool:
    """Return whether others took so much of the CPU that times cannot be trusted.

    Args:
        share: of the CPU time; None is unknown.
        step: the step in which the share is known, so that what rounding makes of nothing does not count.
    """
    return (
        share is not None and share > 0.05 + step
    )  # benchmarks/README.md: what that finds on a busy and a quiet machine


def _lost(loss: CpuLoss) -> Flag | None:
    """Return the flag of disturbance by other work; None without any."""
    if is_contended(loss.share, loss.step):
        taken = f"other work took {format_percent(loss.share)} of the CPU during the measurement"
        return Flag("contended", f"{taken}{_preemptions(loss)}", loss.share)
    if loss.waited_share > WAITED_ABOVE:
        waited = f"threads waited {format_percent(loss.waited_share)} of the time for cores used by other work"
        return Flag("contended", f"{waited}{_preemptions(loss)}", min(loss.waited_share, 1.0))
    return None


def _with_effect_size(flag: Flag, waited_share: float) -> Flag:
    """Return the flag with the size of the effect on the rounds of a case: shared caches and clocks, waits for cores.

    A median hardly depends on how long threads waited, as fewer than half of the samples do; only on whether they did.
    From half of the time on every sample may have waited: then it is longer in proportion to the time without a core.
    """
    waited = f"; its own rounds waited {format_percent(waited_share)} of their time for a core"
    longer = waited_share / (1 - min(waited_share, 0.99))
    of_caches = 0.1 * (flag.size or 0.0)  # others use caches, memory and clocks of the CPU all the same
    size = of_caches + WAITS * min(1.0, waited_share / WAITED_ABOVE) + max(0.0, longer - 1)
    return Flag(flag.name, f"{flag.evidence}{waited}", size)


def _preemptions(loss: CpuLoss) -> str:
    if not loss.preempted:
        return ""
    return f", and interrupted this process {loss.preempted:,} time{'s'[: loss.preempted > 1]}"
