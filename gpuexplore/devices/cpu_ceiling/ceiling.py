"""The value of a CPU's measured ceilings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from gpuexplore.errors import InvalidInput
from gpuexplore.model import CacheRoof


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The best rates short loops reached on all threads of one CPU.

    Attributes:
        cpu_name: for a reader of the file; another processor may have the same.
        flop_per_s: by dtype, for those with instructions of their own.
        unreached: dtypes with a faster unit these loops do not drive (AMX tiles, Arm matrix instructions).
        bytes_per_s: STREAM triad, three arrays counted.
        caches: the same from each cache level that can be told apart, the nearest first.
        trials: how many the best was taken of.
        measured_utc: ISO 8601.
        contended: others used the CPU meanwhile, so the true ceiling may be higher.
        attempts: measurements the best was taken of.
    """

    cpu_name: str
    threads: int
    flop_per_s: Mapping[str, float] = field(hash=False)
    bytes_per_s: float
    trials: int
    measured_utc: str
    unreached: tuple[str, ...] = ()
    caches: tuple[CacheRoof, ...] = ()
    contended: bool = False
    attempts: int = 1

    def __post_init__(self) -> None:
        rates = (*(self.flop_per_s.get(dtype) for dtype in ("fp64", "fp32")), self.bytes_per_s)
        rates = (*rates, *(cache.bandwidth.bytes_per_s for cache in self.caches))
        for rate in (*rates, *self.flop_per_s.values()):
            if not isinstance(rate, float) or not (isfinite(rate) and rate > 0):
                raise InvalidInput.of("ceiling", rate, "rates above 0, those of fp64 and fp32 always")
