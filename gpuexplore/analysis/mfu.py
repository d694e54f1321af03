"""Utilization: the share of a peak that a result reached, and which peak that is.

MFU (model FLOPs utilization) = achieved FLOP/s / peak FLOP/s. An unknown peak gives None, never a
neighbour's. An implementation that stores bf16 and computes in fp32 is held against the fp32 peak.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpuexplore.analysis.rates import byte_count, bytes_per_s, flop_per_s
from gpuexplore.model import Bandwidth, CacheState, Device, Peak, PeakKind, Result
from gpuexplore.operations import operation_named
from gpuexplore.units import format_bytes

PEAK_KINDS: Mapping[PeakKind, str] = MappingProxyType(
    {
        "datasheet": "the datasheet peak",
        "formula": "the peak computed from cores and clock",
        "measured_ceiling": "the measured ceiling",
        "own": "the peak you entered",
        "held_clock": "the peak at the clock that was held",
        "published": "the best published result",
    }
)


def device_of(result: Result) -> Device | None:
    """Return the device a result was measured on, as it was then; None when nobody recorded it."""
    return None if result.environment is None else result.environment.device


def applicable_peak(result: Result, own_peaks: Iterable[Peak] = ()) -> Peak | None:
    """Return the compute peak this result is held against, or None when it is unknown.

    Args:
        own_peaks: peaks a user entered; one of the same dtype and unit replaces the device's.
    """
    implementation = operation_named(result.case.operation).implementation_named(result.case.implementation)
    device = device_of(result)
    dtype, unit = implementation.computes_in(result.case.dtype, device)
    for own in own_peaks:
        if (own.dtype, own.unit) == (dtype, unit):
            return replace(own, kind="own")
    return None if device is None else device.peak(dtype, unit)


def mfu(result: Result, own_peaks: Iterable[Peak] = ()) -> float | None:
    """Return achieved / peak FLOP/s as a share of one.

    None without a measurement, with an unknown peak, or for an operation without FLOPs.
    """
    rate, peak = flop_per_s(result), applicable_peak(result, own_peaks)
    return rate / peak.flop_per_s if rate and peak else None


def known_bandwidth(result: Result) -> Bandwidth | None:
    """Return the memory bandwidth of the result's device, or None when it is unknown."""
    device = device_of(result)
    return None if device is None else device.bandwidth


def cache_mode(result: Result) -> CacheState:
    """Return how the caches were treated: what the run flagged, else what was asked for, else warm.

    Warm is the careful guess: it claims no memory bandwidth that a cache may have delivered.
    """
    flagged = {flag.name for flag in result.flags}
    if "cold" in flagged or "warm" in flagged:
        return "cold" if "cold" in flagged else "warm"
    return "cold" if result.case.options.cache == "cold" else "warm"


def cached_because(result: Result) -> str | None:
    """Return why memory bandwidth does not bound this result (its data stay in a cache), or None."""
    device = device_of(result)
    if device is None or device.cache_bytes is None or cache_mode(result) == "cold":
        return None
    data = byte_count(result.case)
    if data > device.cache_bytes:
        return None
    return (
        f"its {format_bytes(data)} stay in the last-level cache ({format_bytes(device.cache_bytes)}), "
        "so memory bandwidth is not what bounds it"
    )


def bandwidth_utilization(result: Result) -> float | None:
    """Return achieved / peak memory bytes/s as a share of one.

    None without a measurement, with an unknown bandwidth, or when `cached_because` gives a reason.
    """
    rate, peak = bytes_per_s(result), known_bandwidth(result)
    if rate is None or peak is None or cached_because(result):
        return None
    return rate / peak.bytes_per_s
