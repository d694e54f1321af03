"""The measured ceilings of a CPU, and the caches that they distinguish."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from gpuexplore.core import CacheRoof, InvalidInput
from gpuexplore.hardware.cpu import CacheLevel

CACHES_OVERFLOWN = 4  # STREAM's rule: arrays of four caches, so that memory delivers nearly all of them
ASSUMED_CACHE_BYTES = 64 * 2**20  # assumed where unknown: more than most CPUs have


def plan_caches(
    levels: Sequence[CacheLevel], threads: int, *, cores_of: Callable[[tuple[int, ...]], int]
) -> tuple[tuple[int, int, int], ...]:
    """Return how to measure each of `levels` with `threads` threads, the nearest first.

    A level whose share is hardly larger than the one before it is not distinguishable, and is left out.

    Args:
        cores_of: physical cores behind logical CPUs.

    Returns:
        Of each its level, the bytes that all threads have of it together, and those of the arrays of one thread: within
        its share of this level, and too large for the one before.
    """
    plans = []
    below_bytes = 0
    for level in levels:
        share_bytes = level.size_bytes // max(1, min(threads, cores_of(level.cpus)))
        # Half of a thread's share: other data, the code and the stack fit next to the arrays. Twice the level before:
        # cyclic reading of that leaves next to nothing in it, so the level behind it delivers.
        wanted = max(int(0.5 * share_bytes), 2 * below_bytes)
        if wanted <= 0.8 * share_bytes:
            plans.append((level.level, share_bytes * threads, wanted))
        below_bytes = max(below_bytes, share_bytes)
    return tuple(plans)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best rates short loops reached on all threads of one CPU, or on one of them.

    Attributes:
        cpu_name: for a reader of the file; another processor may have the same.
        flop_per_s: by dtype, for those with instructions of their own.
        unreached: dtypes with a matrix unit of unknown rate (Arm's matrix instructions).
        tiles: dtypes that AMX multiplies, 16 times as fast as the fp32 loop runs.
        bytes_per_s: STREAM triad, three arrays counted, with stores past the cache.
        caches: the same from each distinguishable cache level, the nearest first.
        trials: how many the best was taken of, at most.
        measured_utc: ISO 8601.
        contended: others used the CPU meanwhile, so the true ceiling may be higher.
        attempts: measurements the best was taken of.
        device_key: of the processor (`gpuexplore.hardware.identity.device_key`); empty where it was not saved yet.
        ordinary_bytes_per_s: the triad with ordinary stores: each line is read before it is written, not counted.
        one_thread: the same of a thread with the other cores idle; None where `threads` is one.
    """

    cpu_name: str
    threads: int
    flop_per_s: Mapping[str, float] = field(hash=False)
    bytes_per_s: float
    trials: int
    measured_utc: str
    unreached: tuple[str, ...] = ()
    tiles: tuple[str, ...] = ()
    caches: tuple[CacheRoof, ...] = ()
    contended: bool = False
    attempts: int = 1
    device_key: str = ""
    ordinary_bytes_per_s: float | None = None
    one_thread: "Ceiling | None" = None

    def __post_init__(self) -> None:
        rates = (*(self.flop_per_s.get(dtype) for dtype in ("fp64", "fp32")), self.bytes_per_s)
        rates = (*rates, *(cache.bandwidth.bytes_per_s for cache in self.caches))
        rates = (*rates, *((self.ordinary_bytes_per_s,) if self.ordinary_bytes_per_s is not None else ()))
        for rate in (*rates, *self.flop_per_s.values()):
            if not isinstance(rate, float) or not (isfinite(rate) and rate > 0):
                raise InvalidInput.of("ceiling", rate, "rates above 0, those of fp64 and fp32 always")
