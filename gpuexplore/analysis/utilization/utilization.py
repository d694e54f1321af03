"""Utilization: the share of a peak that a result reached, and which peak that is.

MFU (model FLOPs utilization) = achieved FLOP/s / peak FLOP/s. An unknown peak gives None, never a
neighbour's. An implementation that stores bf16 and computes in fp32 is held against the fp32 peak.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpuexplore.analysis.utilization.rates import byte_count, bytes_per_s, flop_per_s
from gpuexplore.model import Bandwidth, CacheState, Device, Peak, PeakKind, Result, Unit
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
BANDWIDTH_KINDS: Mapping[PeakKind, str] = MappingProxyType(
    {
        "datasheet": "the datasheet's memory bandwidth",
        "formula": "the memory bandwidth computed from clock and bus width",
        "held_clock": "the memory bandwidth at the clock that was held",
        "measured_ceiling": "the measured memory bandwidth",
        "published": "the best published memory bandwidth",
        "own": "the memory bandwidth you entered",
    }
)


def device_of(result: Result) -> Device | None:
    """Return the device a result was measured on, as it was then; None when nobody recorded it."""
    return None if result.environment is None else result.environment.device


def held_clock_hz(result: Result) -> float | None:
    """Return the clock in Hz the device ran at when this result's sampling ended; None when nobody told."""
    return (result.environment.after.clock_hz or None) if result.environment else None


def arithmetic_of(result: Result) -> tuple[str, Unit]:
    """Return the dtype and the units that a result's arithmetic ran in."""
    implementation = operation_named(result.case.operation).implementation_named(result.case.implementation)
    return implementation.computes_in(result.case.dtype, device_of(result))


def own_peak(result: Result, own_peaks: Iterable[Peak]) -> Peak | None:
    """Return the one of `own_peaks` that is of this result's arithmetic, or None."""
    arithmetic = arithmetic_of(result)
    return next((replace(peak, kind="own") for peak in own_peaks if (peak.dtype, peak.unit) == arithmetic), None)


def applicable_peak(result: Result, own_peaks: Iterable[Peak] = ()) -> Peak | None:
    """Return the compute peak this result is usually held against, or None when it is unknown.

    Args:
        own_peaks: peaks a user entered; one of the same dtype and unit replaces the device's.
    """
    device = device_of(result)
    return own_peak(result, own_peaks) or (None if device is None else device.peak(*arithmetic_of(result)))


def mfu(result: Result, own_peaks: Iterable[Peak] = ()) -> float | None:
    """Return achieved / peak FLOP/s as a share of one, against the usual peak."""
    return compute_share(result, applicable_peak(result, own_peaks))


def compute_share(result: Result, peak: Peak | None) -> float | None:
    """Return achieved FLOP/s over `peak` as a share of one.

    None without a measurement, with an unknown peak, or for an operation without FLOPs.
    """
    rate = flop_per_s(result)
    return rate / peak.flop_per_s if rate and peak else None


def known_bandwidth(result: Result, own: Bandwidth | None = None) -> Bandwidth | None:
    """Return the memory bandwidth this result is usually held against, or None when it is unknown.

    Args:
        own: what a user entered, instead of the device's.
    """
    device = device_of(result)
    return own or (None if device is None else device.bandwidth)


def cache_mode(result: Result) -> CacheState:
    """Return how the caches were treated: what the run flagged, else what was asked for, else warm.

    Warm is the careful guess: it claims no memory bandwidth that a cache may have delivered.
    """
    flagged = {flag.name for flag in result.flags}
    if "cold" in flagged or "warm" in flagged:
        return "cold" if "cold" in flagged else "warm"
    return "cold" if result.case.options.cache == "cold" else "warm"


def cache_resident_reason(result: Result) -> str | None:
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
    """Return achieved / peak memory bytes/s as a share of one, against the device's usual bandwidth."""
    return bandwidth_share(result, known_bandwidth(result))


def bandwidth_share(result: Result, bandwidth: Bandwidth | None) -> float | None:
    """Return achieved bytes/s over `bandwidth` as a share of one.

    None without a measurement, with an unknown bandwidth, or when `cache_resident_reason` gives a reason.
    """
    rate = bytes_per_s(result)
    return None if rate is None or bandwidth is None or cache_resident_reason(result) else rate / bandwidth.bytes_per_s
