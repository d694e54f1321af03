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
    said = (
        f"{analyzed.label} is launch-bound: the call itself takes a good part of its time, so larger sizes gain most."
    )
    return Diagnosis("launch_bound", said, f"{flag.evidence}, and this one {format_seconds(analyzed.median_s)}")


def compute_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that arithmetic limits it, and how near it is to the peak."""
    peak, share = analyzed.default_peak, analyzed.default_mfu
    if analyzed.bound != "compute" or peak is None or share is None or share > 1:
        return None
    in_headline = analyzed.peak.peak == peak
    used = "" if in_headline else f"{format_percent(share)} of the {PEAK_SOURCES[peak.kind].label}; "
    near = _near("compute-bound", share, used, beyond="a narrower dtype or a faster device would help")
    evidence = (
        f"{format_flop_per_s(analyzed.flop_per_s)} of {format_flop_per_s(peak.flop_per_s)} "
        f"(the {PEAK_SOURCES[peak.kind].label}), {format_percent(share)}; {_place(analyzed)}"
    )
    return Diagnosis("compute_bound", f"{analyzed.label} {near}.", evidence)


def memory_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that memory limits it, and how near it is to the bandwidth."""
    share, bandwidth = analyzed.default_bandwidth_utilization, analyzed.default_bandwidth
    if analyzed.bound != "memory" or bandwidth is None or share is None or share > 1:
        return None
    used = f"{format_percent(share)} of the memory bandwidth"
    near = _near("memory-bound", share, f"{used}; ", beyond=FEWER_BYTES)
    evidence = (
        f"{format_bytes_per_s(analyzed.bytes_per_s)} of {format_bytes_per_s(bandwidth.bytes_per_s)}; {_place(analyzed)}"
    )
    return Diagnosis("memory_bound", f"{analyzed.label} {near}.", evidence)


def cache_bound(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that a cache delivers its data, and how near it is to what that cache can, where somebody measured it."""
    if analyzed.bound != "cache":
        return None
    rate, most, held = analyzed.bytes_per_s, analyzed.serving_bandwidth, analyzed.cache_resident_reason
    if rate is None or most is None:
        said = f"{analyzed.label} is fed by caches: {held}; with cold caches it would be"
        return Diagnosis("cache_bound", f"{said}.", f"{format_bytes_per_s(rate)} from a cache; {_place(analyzed)}")
    share = rate / most.bytes_per_s
    near = _near("bound by a cache", share, f"{format_percent(share)} of its bandwidth; ", beyond=FEWER_BYTES)
    evidence = f"{format_bytes_per_s(rate)} of {format_bytes_per_s(most.bytes_per_s)}; {held}; {_place(analyzed)}"
    return Diagnosis("cache_bound", f"{analyzed.label} {near}.", evidence)


def no_peak(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that nothing is known to hold the result against."""
    if analyzed.median_s is None or analyzed.default_peak or not analyzed.flop_count:
        return None
    dtype, unit = arithmetic_of(analyzed.result)
    said = f"No peak is known for {analyzed.label} here, so there is no MFU: enter one to get it."
    return Diagnosis("no_peak", said, f"its arithmetic is in {dtype} on {unit} units")


def _near(limit: str, share: float, used: str = "", *, beyond: str) -> str:
    """Return how near a share is to its limit, and what would help: less work near it, another kernel far below."""
    if share >= CLOSE_TO_A_PEAK:
        return f"is {limit}, and close to that limit: {used}{beyond}"
    gain = f"at the limit it would be {format_ratio(1 / share)} as fast"
    if share >= FAR_FROM_A_PEAK:
        return f"is {limit} and reaches {format_percent(share)} of that limit: {used}{gain}"
    return f"should be {limit} but reaches only {format_percent(share)} of that limit: {gain}, its time goes elsewhere"


def _place(analyzed: AnalyzedResult) -> str:
    """Return where it stands on the roofline of what delivers its data, as far as the roofs are known."""
    peak, bandwidth = analyzed.default_peak, analyzed.serving_bandwidth
    place = f"intensity {format_intensity(analyzed.intensity)}"
    if peak is None or bandwidth is None:
        return place
    return f"{place}, ridge point {format_intensity(ridge_point(peak.flop_per_s, bandwidth.bytes_per_s))}"
