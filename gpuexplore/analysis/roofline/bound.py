"""The roofline: attainable FLOP/s = min(peak, intensity · bandwidth), and which side a result is on.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for
multicore architectures", CACM 52(4), 2009, https://doi.org/10.1145/1498765.1498785.
"""

from collections.abc import Iterable
from typing import Literal

from gpuexplore.analysis.utilization.rates import byte_count, flop_count
from gpuexplore.analysis.utilization.utilization import (
    applicable_peak,
    cache_resident_reason,
    device_of,
    known_bandwidth,
)
from gpuexplore.model import Bandwidth, CacheRoof, Case, Device, Peak, Result

Bound = Literal["compute", "memory", "cache", "overhead"]


def intensity(case: Case) -> float:
    """Return the arithmetic intensity in FLOP/byte, with each array moved once."""
    return flop_count(case) / byte_count(case)


def ridge_point(flop_per_s: float, bytes_per_s: float) -> float:
    """Return the intensity in FLOP/byte from which a peak of `flop_per_s` can be reached."""
    return flop_per_s / bytes_per_s


def attainable_flop_per_s(flop_per_byte: float, flop_per_s: float, bytes_per_s: float) -> float:
    """Return the roof in FLOP/s above an intensity of `flop_per_byte`."""
    return min(flop_per_s, flop_per_byte * bytes_per_s)


def feed(result: Result, own_bandwidth: Bandwidth | None = None) -> Bandwidth | None:
    """Return the bandwidth of what delivers its data: the smallest cache that holds them, where one does, else memory.

    None where that is unknown.

    Args:
        own_bandwidth: of the memory, as a user entered it.
    """
    if cache_resident_reason(result) is None:
        return known_bandwidth(result, own_bandwidth)
    device = device_of(result)
    smallest = smallest_cache(device, byte_count(result.case)) if device else None
    return smallest.bandwidth if smallest else None


def smallest_cache(device: Device, size_bytes: int) -> CacheRoof | None:
    """Return the smallest cache with a known bandwidth that holds so many bytes; None where none does."""
    holding = [cache for cache in device.caches if cache.size_bytes >= size_bytes]
    return min(holding, key=lambda one: one.size_bytes, default=None)


def bound(result: Result, own_peaks: Iterable[Peak] = (), own_bandwidth: Bandwidth | None = None) -> Bound | None:
    """Return what limits this result at best; None when a peak that decides it is unknown (without FLOPs none does).

    `overhead`: its time is near the cost of a call. `compute`: its intensity is at the ridge or above, that of the
    cache its data stay in where its bandwidth is known, else that of memory. Below `memory`, or `cache`.
    """
    if any(flag.name == "launch_bound" for flag in result.flags):
        return "overhead"
    peak, memory = applicable_peak(result, own_peaks), known_bandwidth(result, own_bandwidth)
    slope = feed(result, own_bandwidth) or memory
    if slope is None or (peak is None and flop_count(result.case)):
        return None
    if peak and intensity(result.case) >= ridge_point(peak.flop_per_s, slope.bytes_per_s):
        return "compute"
    return "cache" if cache_resident_reason(result) else "memory"
