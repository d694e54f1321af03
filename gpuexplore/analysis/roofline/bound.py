"""The roofline: attainable FLOP/s = min(peak, intensity · bandwidth), and which side a result is on.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009, https://doi.org/10.1145/1498765.1498785.
"""

from gpuexplore.analysis.model import Bound, ImplementationLimits
from gpuexplore.analysis.utilization.rates import byte_count, flop_count, has_nominal_flops
from gpuexplore.analysis.utilization.utilization import is_cache_resident
from gpuexplore.model import Case, Result


def intensity(case: Case) -> float:
    """Return the arithmetic intensity in FLOP/byte, with each array moved once."""
    return flop_count(case) / byte_count(case)


def ridge_point(flop_per_s: float, bytes_per_s: float) -> float:
    """Return the intensity in FLOP/byte from which a peak of `flop_per_s` can be reached."""
    return flop_per_s / bytes_per_s


def attainable_flop_per_s(flop_per_byte: float, flop_per_s: float, bytes_per_s: float) -> float:
    """Return the roof in FLOP/s above an intensity of `flop_per_byte`."""
    return min(flop_per_s, flop_per_byte * bytes_per_s)


def bound_of(result: Result, limits: ImplementationLimits) -> Bound | None:
    """Return what limits this result at best; None without a time, or when a peak that decides it is unknown.

    That is so, too, where FLOPs that are a convention would make it `compute`.

    Without FLOPs no peak decides. `overhead`: its time is near the cost of a call. `compute`: its intensity is at the
    ridge or above, that of the cache its data stay in where its bandwidth is known, else that of memory. Below
    `memory`, or `cache`.
    """
    if result.measurement is None:
        return None
    if any(flag.name == "launch_bound" for flag in result.flags):
        return "overhead"
    peak, slope = limits.peak, limits.serving or limits.memory
    if slope is None or (peak is None and flop_count(result.case)):
        return None
    if peak and intensity(result.case) >= ridge_point(peak.flop_per_s, slope.bytes_per_s):
        return None if has_nominal_flops(result.case) else "compute"
    return "cache" if is_cache_resident(result) else "memory"
