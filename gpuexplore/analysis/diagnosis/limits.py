"""What bounds a result on the roofline, how near it came to that limit, and what would help."""

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.roofline.bound import ridge_point
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.utilization import arithmetic_of
from gpuexplore.units import (
    format_bytes_per_s,
    format_flop_per_s,
    format_intensity,
    format_percent,
    format_ratio,
    format_seconds,
)

CLOSE_TO_A_PEAK = 0.75
FAR_FROM_A_PEAK = 0.25
FEWER_BYTES = "fewer bytes would help, by a narrower dtype or several steps in one pass"


def launch_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the call itself takes most of the time."""
    flag = analyzed.flag("launch_bound")
    if flag is None:
        return None
    sentence = (
        f"{analyzed.label} is launch-bound: the call itself takes a good part of its time, so larger sizes gain most."
    )
    return Diagnosis("launch_bound", sentence, f"{flag.evidence}, and this one {format_seconds(analyzed.median_s)}")


def compute_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that arithmetic limits it, and how near it is to the peak."""
    peak, fraction = analyzed.default_peak, analyzed.default_mfu
    if analyzed.bound != "compute" or peak is None or fraction is None or fraction > 1:
        return None
    label = f"the {PEAK_SOURCES[peak.kind].label}"
    near = _near("compute-bound", fraction, label, beyond="a narrower dtype or a faster device would help")
    rates = f"{format_flop_per_s(analyzed.flop_per_s)} of {format_flop_per_s(peak.flop_per_s)}"
    evidence = f"{rates} ({label}), {format_percent(fraction)}; {_place(analyzed)}"
    return Diagnosis("compute_bound", f"{analyzed.label} {near}.", evidence)


def memory_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that memory limits it, and how near it is to the bandwidth."""
    fraction, bandwidth = analyzed.default_bandwidth_utilization, analyzed.default_bandwidth
    if analyzed.bound != "memory" or bandwidth is None or fraction is None or fraction > 1:
        return None
    near = _near("memory-bound", fraction, "the memory bandwidth", beyond=FEWER_BYTES)
    rates = f"{format_bytes_per_s(analyzed.bytes_per_s)} of {format_bytes_per_s(bandwidth.bytes_per_s)}"
    return Diagnosis("memory_bound", f"{analyzed.label} {near}.", f"{rates}; {_place(analyzed)}")


def cache_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that a cache delivers its data, and how near it is to what that cache can, where somebody measured it."""
    if analyzed.bound != "cache":
        return None
    rate, most, resident = analyzed.bytes_per_s, analyzed.serving_bandwidth, analyzed.cache_resident_reason
    if rate is None or most is None:
        sentence = f"{analyzed.label} is served by caches: {resident}; with cold caches it would be."
        return Diagnosis("cache_bound", sentence, f"{format_bytes_per_s(rate)} from a cache; {_place(analyzed)}")
    near = _near("cache-bound", rate / most.bytes_per_s, "the cache's bandwidth", beyond=FEWER_BYTES)
    evidence = f"{format_bytes_per_s(rate)} of {format_bytes_per_s(most.bytes_per_s)}; {resident}; {_place(analyzed)}"
    return Diagnosis("cache_bound", f"{analyzed.label} {near}.", evidence)


def no_peak(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that nothing is known to hold the result against."""
    if analyzed.median_s is None or analyzed.default_peak or not analyzed.flop_count:
        return None
    dtype, unit = arithmetic_of(analyzed.result)
    sentence = f"No peak is known for {analyzed.label} here, so there is no MFU: enter one to get it."
    return Diagnosis("no_peak", sentence, f"its arithmetic is in {dtype} on {unit} units")


def _near(limit: str, fraction: float, of: str, *, beyond: str) -> str:
    """Return how near a fraction is to its limit, and what would help: less work near it, another kernel far below."""
    reached, gain = f"{format_percent(fraction)} of {of}", f"it would be {format_ratio(1 / fraction)} as fast"
    if fraction >= CLOSE_TO_A_PEAK:
        return f"is {limit} and close to the limit, {reached}: {beyond}"
    if fraction >= FAR_FROM_A_PEAK:
        return f"is {limit} and reaches {reached}: at the limit {gain}"
    return f"should be {limit}, but reaches only {reached}: most of its time goes elsewhere, and at the limit {gain}"


def _place(analyzed: AnalyzedResult) -> str:
    """Return where it stands on the roofline of what delivers its data, as far as the roofs are known."""
    peak, bandwidth = analyzed.default_peak, analyzed.serving_bandwidth
    place = f"intensity {format_intensity(analyzed.intensity)}"
    if peak is None or bandwidth is None:
        return place
    return f"{place}, ridge point {format_intensity(ridge_point(peak.flop_per_s, bandwidth.bytes_per_s))}"
