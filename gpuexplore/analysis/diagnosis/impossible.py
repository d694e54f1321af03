"""Rates above what the hardware can do: is the measurement wrong, or the peak it is held against?"""

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from gpuexplore.analysis.diagnosis.contract import Diagnosis, Subject
from gpuexplore.analysis.mfu import PEAK_KINDS, bandwidth_utilization, cache_mode, known_bandwidth
from gpuexplore.analysis.rates import byte_count, bytes_per_s, flop_per_s
from gpuexplore.dtypes import dtype_named
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.model import PeakKind
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_ratio, format_seconds

FAR_ABOVE_A_CEILING = 2.0  # a loop of ours, measured again when it is passed, can miss the most, though not by half
PRINTED: tuple[PeakKind, ...] = ("datasheet", "formula")  # what memory cannot pass; a measured one may be too low
ONLY_LAUNCHED = "only the launch was timed; wait for the device before stopping the clock"
NOT_ALL_DONE = "not all of the work was done, or not all of it was timed"
PEAK_TOO_LOW: Mapping[PeakKind, str] = MappingProxyType(
    {
        "datasheet": "the device ran past the clock its peak is printed for, as many boards do",
        "formula": "the device ran past the clock its peak is computed for, as many boards do",
        "measured_ceiling": "the ceiling is too low: it was measured in a bad moment",
        "own": "the peak you entered is too low",
        "held_clock": "the clock was higher than when it was looked at",
        "published": "the published result is not the best there can be",
    }
)


def over_peak(subject: Subject) -> Diagnosis | None:
    """Say which is likelier wrong, the time or the peak, when the compute rate is above it."""
    peak, share, rate = subject.peak, subject.share, flop_per_s(subject.result)
    if peak is None or share is None or share <= 1:
        return None
    wrong = peak.kind != "own" and share > _far_above(peak.kind)
    above = f"{subject.name} is above {PEAK_KINDS[peak.kind]}"
    return Diagnosis(
        "over_peak",
        f"{above}, {_measurement_is_wrong(subject)}." if wrong else f"{above}: likelier, {PEAK_TOO_LOW[peak.kind]}.",
        f"{format_flop_per_s(rate)} is {format_ratio(share)} the {format_flop_per_s(peak.flop_per_s)} of the peak",
        "wrong" if wrong else "doubt",
    )


def over_bandwidth(subject: Subject) -> Diagnosis | None:
    """Say that data moved faster than the memory can: a cache helped, or the time is wrong."""
    share, bandwidth = bandwidth_utilization(subject.result), known_bandwidth(subject.result)
    if share is None or bandwidth is None or share <= 1:
        return None
    most = bandwidth.bytes_per_s
    evidence = (
        f"{format_bytes(byte_count(subject.result.case))} in {format_seconds(subject.median_s)} are "
        f"{format_bytes_per_s(bytes_per_s(subject.result))}, {format_ratio(share)} the {format_bytes_per_s(most)} "
        "of the memory"
    )
    surely, median_s = _bytes_from_memory(subject), subject.median_s
    if bandwidth.kind in PRINTED and surely is not None and median_s and surely / median_s > FAR_ABOVE * most:
        said = f"{subject.name} moves data faster than its memory can, {_measurement_is_wrong(subject)}."
        return Diagnosis("over_bandwidth", said, f"{evidence}; no cache can hold it", "wrong")
    said = f"{subject.name} is above the memory bandwidth: a cache held a part of its data, or that figure is too low."
    return Diagnosis("over_bandwidth", said, evidence, "doubt")


def _measurement_is_wrong(subject: Subject) -> str:
    on_host = subject.device is not None and subject.device.kind == "cpu"
    return f"so the measurement is wrong: most likely {NOT_ALL_DONE if on_host else ONLY_LAUNCHED}"


def _far_above(kind: PeakKind) -> float:
    return FAR_ABOVE_A_CEILING if kind == "measured_ceiling" else FAR_ABOVE


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
