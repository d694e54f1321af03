"""How fast the cores run that a candidate computes on: a neighbour on the other thread of a core takes half of it.

Virtual machines share cores with others of whom no account of this machine knows. A loop of multiply-adds on each core
finds them: where it runs at half its best, a product of 512 x 512 takes 1.5 times as long (benchmarks/README.md). They
come for milliseconds or for seconds; waiting for them to go bought nothing, so results tell of them.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter

from gpuexplore.backends.timer import Call
from gpuexplore.statistics import quantile

SLOW_BELOW = 0.9  # of what a core usually reaches: the clocks of quiet ones change by less
USUAL = 0.9  # of the looks at a core were below it: neither a burst of its clock nor what neighbours leave
KEPT = 256  # looks: a neighbour of seconds is not what is usual
MOST_CORES = 8  # that are looked at, at once
FRESH_S = 0.1  # the rounds of a turn, and of the next one


def is_slow(share: float) -> bool:
    """Return whether what runs on a core at this share of its usual rate takes longer than it should."""
    return share < SLOW_BELOW


class CoreSpeeds:
    """What this process has seen of its cores.

    Args:
        rates: FLOP/s of each of the cores it gets; none where that is unknown.
        clock: in seconds.
    """

    def __init__(
        self,
        rates: Callable[[Sequence[int]], Sequence[float]],
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._rates, self._clock = rates, clock
        self._seen: dict[tuple[int, int], deque[float]] = {}  # of a core, among so many that are looked at
        self._last: tuple[float, int, float | None] = (-FRESH_S, 0, None)

    def prepare(self) -> None:
        """See each core once, unless it was, which starts what it is seen by."""
        if self._seen:
            return
        for threads in (1, len(_cores())):
            self.look(threads, lambda: None)

    def look(self, threads: int, wait: Call) -> float | None:
        """Wait until pool threads sleep; return how fast the slowest core runs then, of its usual rate.

        None where that is unknown.

        Args:
            threads: that compute. Those of fewer than there are cores may be on any: the first one is looked at, which
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

    def _share(self, place: tuple[int, int], rate: float) -> float:
        seen = self._seen.setdefault(place, deque(maxlen=KEPT))
        seen.append(rate)
        return rate / quantile(seen, USUAL)


def _cores() -> list[int]:
    """Return the cores that this thread may use; none where the system does not let threads be placed."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
