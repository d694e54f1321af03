"""Which caches a CPU's ceiling can tell apart, and how much data measures each of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpuexplore.devices.cpu import CacheLevel

FILLED = 0.5  # of a thread's share: other data, the code and the stack have room beside the arrays
PASSES_BY = 2  # cyclic reading of twice a cache leaves next to nothing in it, so the level behind it delivers
MOST_FILLED = 0.8
CACHES_OVERFLOWN = 4  # STREAM's rule: arrays of four caches, so that memory delivers nearly all of them
ASSUMED_CACHE_BYTES = 64 * 2**20  # where nothing states it: more than most have


@dataclass(frozen=True, slots=True)
class CachePlan:
    """How one level is measured.

    Attributes:
        size_bytes: what all threads have of it together.
        thread_bytes: the arrays of one thread: within its share of this level, and too large for the one before.
    """

    level: int
    size_bytes: int
    thread_bytes: int


def plan_caches(
    levels: Sequence[CacheLevel], threads: int, *, cores_of: Callable[[tuple[int, ...]], int]
) -> tuple[CachePlan, ...]:
    """Return how to measure each of `levels` with `threads` threads, the nearest first.

    A level whose share is hardly larger than the one before it cannot be told from it, and is left out.

    Args:
        cores_of: physical cores behind logical CPUs.
    """
    plans, below_bytes = [], 0
    for level in levels:
        share_bytes = level.size_bytes // max(1, min(threads, cores_of(level.cpus)))
        wanted = max(int(FILLED * share_bytes), PASSES_BY * below_bytes)
        if wanted <= MOST_FILLED * share_bytes:
            plans.append(CachePlan(level.level, share_bytes * threads, wanted))
        below_bytes = max(below_bytes, share_bytes)
    return tuple(plans)
