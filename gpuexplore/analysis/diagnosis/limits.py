"""What bounds a result on the roofline, how near it came to that limit, and what would help."""

from gpuexplore.analysis.diagnosis.contract import Diagnosis, Subject
from gpuexplore.analysis.roofline.bound import intensity, ridge_point
from gpuexplore.analysis.utilization.rates import bytes_per_s, flop_count, flop_per_s
from gpuexplore.analysis.utilization.utilization import PEAK_KINDS, arithmetic_of, cache_resident_reason
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


def launch_bound(subject: Subject) -> Diagnosis | None:
    """Say that the call itself takes most of the time."""
    flag = subject.flag("launch_bound")
    if flag is None:
        return None
    said = f"{subject.name} is launch-bound: the call itself takes a good part of its time, so larger sizes gain most."
    return Diagnosis("launch_bound", said, f"{flag.evidence}, and this one {format_seconds(subject.median_s)}")


def compute_bound(subject: Subject) -> Diagnosis | None:
    """Say that arithmetic limits it, and how near it is to the peak."""
    peak, share = subject.peak, subject.share
    if subject.bound != "compute" or peak is None or share is None or share > 1:
        return None
    in_headline = subject.against.kind is None
    used = "" if in_headline else f"{format_percent(share)} of {PEAK_KINDS[peak.kind]}; "
    near = _near("compute-bound", share, used, beyond="a narrower dtype or a faster device would help")
    evidence = (
        f"{format_flop_per_s(flop_per_s(subject.result))} of {format_flop_per_s(peak.flop_per_s)} "
        f"({PEAK_KINDS[peak.kind]}), {format_percent(share)}; {_place(subject)}"
    )
    return Diagnosis("compute_bound", f"{subject.name} {near}.", evidence)


def memory_bound(subject: Subject) -> Diagnosis | None:
    """Say that memory limits it, and how near it is to the bandwidth."""
    share, bandwidth = subject.bandwidth_share, subject.bandwidth
    if subject.bound != "memory" or bandwidth is None or share is None or share > 1:
        return None
    used = f"{format_percent(share)} of the memory bandwidth"
    near = _near("memory-bound", share, f"{used}; ", beyond=FEWER_BYTES)
    evidence = (
        f"{format_bytes_per_s(bytes_per_s(subject.result))} of {format_bytes_per_s(bandwidth.bytes_per_s)}; "
        f"{_place(subject)}"
    )
    return Diagnosis("memory_bound", f"{subject.name} {near}.", evidence)


def cache_bound(subject: Subject) -> Diagnosis | None:
    """Say that a cache delivers its data, and how near it is to what that cache can, where somebody measured it."""
    if subject.bound != "cache":
        return None
    rate, most, held = bytes_per_s(subject.result), subject.feed, cache_resident_reason(subject.result)
    if rate is None or most is None:
        said = f"{subject.name} is fed by caches: {held}; with cold caches it would be"
        return Diagnosis("cache_bound", f"{said}.", f"{format_bytes_per_s(rate)} from a cache; {_place(subject)}")
    share = rate / most.bytes_per_s
    near = _near("bound by a cache", share, f"{format_percent(share)} of its bandwidth; ", beyond=FEWER_BYTES)
    evidence = f"{format_bytes_per_s(rate)} of {format_bytes_per_s(most.bytes_per_s)}; {held}; {_place(subject)}"
    return Diagnosis("cache_bound", f"{subject.name} {near}.", evidence)


def no_peak(subject: Subject) -> Diagnosis | None:
    """Say that nothing is known to hold the result against."""
    if subject.median_s is None or subject.peak or not flop_count(subject.result.case):
        return None
    dtype, unit = arithmetic_of(subject.result)
    said = f"No peak is known for {subject.name} here, so there is no MFU: enter one to get it."
    return Diagnosis("no_peak", said, f"its arithmetic is in {dtype} on {unit} units")


def _near(limit: str, share: float, used: str = "", *, beyond: str) -> str:
    """Return how near a share is to its limit, and what would help: less work near it, another kernel far below."""
    if share >= CLOSE_TO_A_PEAK:
        return f"is {limit}, and close to that limit: {used}{beyond}"
    gain = f"at the limit it would be {format_ratio(1 / share)} as fast"
    if share >= FAR_FROM_A_PEAK:
        return f"is {limit}, and has room below that limit: {used}{gain}"
    return f"should be {limit}, but is far below that limit: {used}{gain}, so most of its time goes elsewhere"


def _place(subject: Subject) -> str:
    """Return where it stands on the roofline of what delivers its data, as far as the roofs are known."""
    case, peak, bandwidth = subject.result.case, subject.peak, subject.feed
    place = f"intensity {format_intensity(intensity(case))}"
    if peak is None or bandwidth is None:
        return place
    return f"{place}, ridge point {format_intensity(ridge_point(peak.flop_per_s, bandwidth.bytes_per_s))}"
