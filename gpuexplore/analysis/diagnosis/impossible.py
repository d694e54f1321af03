"""Rates above what they are held against: is the measurement wrong, or is more possible than was thought?"""

from math import prod

from gpuexplore.analysis.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.denominators import chosen, chosen_bandwidth, held_clock_hz
from gpuexplore.analysis.diagnosis.contract import Diagnosis, Subject
from gpuexplore.analysis.mfu import BANDWIDTH_KINDS, PEAK_KINDS, cache_mode
from gpuexplore.analysis.rates import byte_count, bytes_per_s, flop_per_s
from gpuexplore.devices import printed_clock_hz
from gpuexplore.dtypes import dtype_named
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.model import Bandwidth, Peak, PeakKind
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_seconds

FAR_ABOVE_A_CEILING = 2.0  # a loop of ours, measured again when it is passed, can miss the most, though not by half
PRINTED: tuple[PeakKind, ...] = ("datasheet", "formula")  # what hardware cannot pass by far
ONLY_LAUNCHED = "only the launch was timed; wait for the device before stopping the clock"
NOT_ALL_DONE = "not all of the work was done, or not all of it was timed"


def over_peak(subject: Subject) -> Diagnosis | None:
    """Say why the compute rate is above what it is held against, or above its usual peak."""
    result, usual = subject.result, subject.peak
    asked = chosen(result, subject.against).peak
    over = next((one for one in (usual, asked) if why_above_peak(result, one)), None)
    if over is None:
        return None
    evidence = f"{format_flop_per_s(flop_per_s(result))} against {format_flop_per_s(over.flop_per_s)}"
    if over is usual and _cannot_be(subject, over):
        said = f"{subject.name} is far above {PEAK_KINDS[over.kind]}, {_measurement_is_wrong(subject)}."
        return Diagnosis("over_peak", said, evidence, "wrong")
    return Diagnosis("over_peak", f"{subject.name} reached {why_above_peak(result, over)}", evidence, "doubt")


def over_bandwidth(subject: Subject) -> Diagnosis | None:
    """Say that data moved faster than the memory can: a cache helped, or the time is wrong."""
    result, usual = subject.result, subject.bandwidth
    asked = chosen_bandwidth(result, subject.against).peak
    over = next((one for one in (usual, asked) if why_above_bandwidth(result, one)), None)
    if over is None:
        return None
    evidence = (
        f"{format_bytes(byte_count(result.case))} in {format_seconds(subject.median_s)} are "
        f"{format_bytes_per_s(bytes_per_s(result))}, against {format_bytes_per_s(over.bytes_per_s)}"
    )
    if over is usual and _cannot_come_from(over, subject):
        said = f"{subject.name} is far above {BANDWIDTH_KINDS[over.kind]}, {_measurement_is_wrong(subject)}."
        return Diagnosis("over_bandwidth", said, f"{evidence}; no cache can hold it", "wrong")
    said = f"{subject.name} reached {why_above_bandwidth(result, over)}"
    return Diagnosis("over_bandwidth", said, evidence, "doubt")


def _cannot_be(subject: Subject, peak: Peak) -> bool:
    """Return whether no clock explains a rate above `peak`, nor a ceiling that was measured in a bad moment."""
    share, device = subject.share or 0.0, subject.device
    if peak.kind == "measured_ceiling":
        return share > FAR_ABOVE_A_CEILING
    held_hz, printed_hz = held_clock_hz(subject.result), printed_clock_hz(device, peak) if device else None
    boosted = held_hz / printed_hz if held_hz and printed_hz else 1.0
    return peak.kind in PRINTED and share / boosted > FAR_ABOVE


def _cannot_come_from(bandwidth: Bandwidth, subject: Subject) -> bool:
    """Return whether even what no cache can have delivered came faster than the memory's printed bandwidth."""
    surely, median_s = _bytes_from_memory(subject), subject.median_s
    if bandwidth.kind not in PRINTED or surely is None or median_s is None:
        return False
    return surely / median_s > FAR_ABOVE * bandwidth.bytes_per_s


def _measurement_is_wrong(subject: Subject) -> str:
    on_host = subject.device is not None and subject.device.kind == "cpu"
    return f"so the measurement is wrong: most likely {NOT_ALL_DONE if on_host else ONLY_LAUNCHED}"


def _bytes_from_memory(subject: Subject) -> int | None:
    """Return the bytes that no cache can have delivered; None when the size of the cache is unknown.

    A cold cache has none of the inputs, though it can hold back what is written; a warm one has all it can hold.
    """
    result, device = subject.result, subject.device
    if device is None or device.cache_bytes is None:
        return None
    total, written = byte_count(result.case), prod(subject.operation.output(result.case.shape))
    held = written * dtype_named(result.case.dtype).itemsize_bytes if cache_mode(result) == "cold" else total
    return total - min(held, device.cache_bytes)
