"""Whether a rate can be: how much clocks and caches explain of what is above a limit of the hardware."""

from gpuexplore.analysis.utilization.measured_ceiling import bytes_from_memory
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.rated_clock import measured_over_rated
from gpuexplore.analysis.utilization.utilization import default_bandwidth, default_peak, mfu
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.model import Bandwidth, Peak, Result

FAR_ABOVE_A_CEILING = 2.0  # a loop of ours, measured again when it is passed, can miss the most, though not by half


def is_plausible(result: Result) -> bool:
    """Return whether no default limit of its device proves this result's time wrong; one without a time is not."""
    peak, bandwidth = default_peak(result), default_bandwidth(result)
    above_peak = peak is not None and exceeds_peak_at_any_clock(result, peak)
    above_memory = bandwidth is not None and exceeds_bandwidth_of_any_cache(result, bandwidth)
    return result.measurement is not None and not above_peak and not above_memory


def exceeds_peak_at_any_clock(result: Result, peak: Peak) -> bool:
    """Return whether no clock explains a rate above `peak`, nor a ceiling that was measured in a bad moment."""
    fraction, basis = mfu(result, peak) or 0.0, PEAK_SOURCES[peak.kind].basis
    if basis == "measured":
        return fraction > FAR_ABOVE_A_CEILING
    return basis == "rated" and fraction / (measured_over_rated(result, peak) or 1.0) > FAR_ABOVE


def exceeds_bandwidth_of_any_cache(result: Result, bandwidth: Bandwidth) -> bool:
    """Return whether even what no cache can have delivered came faster than the memory's rated bandwidth."""
    surely = bytes_from_memory(result)
    if PEAK_SOURCES[bandwidth.kind].basis != "rated" or surely is None or result.measurement is None:
        return False
    return surely / result.measurement.median_s > FAR_ABOVE * bandwidth.bytes_per_s
