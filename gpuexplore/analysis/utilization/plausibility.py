"""Whether a rate can be: how much clocks and caches explain of what is above a limit of the hardware."""

from math import prod

from gpuexplore.analysis.utilization.rates import byte_count
from gpuexplore.analysis.utilization.utilization import (
    applicable_peak,
    cache_mode,
    compute_share,
    device_of,
    held_clock_hz,
    known_bandwidth,
)
from gpuexplore.devices import printed_clock_hz
from gpuexplore.dtypes import dtype_named
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.model import Bandwidth, Peak, PeakKind, Result
from gpuexplore.operations import operation_named

FAR_ABOVE_A_CEILING = 2.0  # a loop of ours, measured again when it is passed, can miss the most, though not by half
PRINTED: tuple[PeakKind, ...] = ("datasheet", "formula")  # what hardware cannot pass by far


def is_plausible(result: Result) -> bool:
    """Return whether no usual limit of its device proves this result's time wrong; one without a time is not."""
    peak, bandwidth = applicable_peak(result), known_bandwidth(result)
    above_peak = peak is not None and exceeds_peak_at_any_clock(result, peak)
    above_memory = bandwidth is not None and exceeds_bandwidth_of_any_cache(result, bandwidth)
    return result.measurement is not None and not above_peak and not above_memory


def exceeds_peak_at_any_clock(result: Result, peak: Peak) -> bool:
    """Return whether no clock explains a rate above `peak`, nor a ceiling that was measured in a bad moment."""
    share = compute_share(result, peak) or 0.0
    if peak.kind == "measured_ceiling":
        return share > FAR_ABOVE_A_CEILING
    return peak.kind in PRINTED and share / (held_over_printed(result, peak) or 1.0) > FAR_ABOVE


def held_over_printed(result: Result, peak: Peak) -> float | None:
    """Return the clock that was held over the one `peak` is printed for; None where either is unknown."""
    device, held_hz = device_of(result), held_clock_hz(result)
    printed_hz = printed_clock_hz(device, peak) if device else None
    return held_hz / printed_hz if held_hz and printed_hz else None


def exceeds_bandwidth_of_any_cache(result: Result, bandwidth: Bandwidth) -> bool:
    """Return whether even what no cache can have delivered came faster than the memory's printed bandwidth."""
    surely = bytes_from_memory(result)
    if bandwidth.kind not in PRINTED or surely is None or result.measurement is None:
        return False
    return surely / result.measurement.median_s > FAR_ABOVE * bandwidth.bytes_per_s


def bytes_from_memory(result: Result) -> int | None:
    """Return the bytes that no cache can have delivered; None when the size of the cache is unknown.

    A cold cache has none of the inputs, though it can hold back what is written; a warm one has all it can hold.
    """
    device, case = device_of(result), result.case
    if device is None or device.cache_bytes is None:
        return None
    total, written = byte_count(case), prod(operation_named(case.operation).output(case.shape))
    held = written * dtype_named(case.dtype).itemsize_bytes if cache_mode(result) == "cold" else total
    return total - min(held, device.cache_bytes)
