"""Contention: other work on a device while something is measured on it, and how fast its cores run meanwhile.

Virtual machines share cores with others that no account of this machine shows: a neighbour on the other hardware thread
of a core takes half of it. A loop of multiply-adds on each core finds them: where it runs at half its best, a product
of 512 x 512 takes 1.5 times as long (benchmarks/README.md). They come for milliseconds or for seconds; waiting for them
to leave gained nothing, so results report them.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter

from gpuexplore.backends.timer import Call
from gpuexplore.core.model import Environment, Flag
from gpuexplore.core.statistics import quantile
from gpuexplore.core.units import format_percent
from gpuexplore.hardware import CpuLoss

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
