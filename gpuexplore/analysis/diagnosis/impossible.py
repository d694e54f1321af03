"""Rates above what they are compared with: is the measurement wrong, or is more possible than was thought?"""

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.plausibility import (
    exceeds_bandwidth_of_any_cache,
    exceeds_fastest_cache,
    exceeds_peak_at_any_clock,
)
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_seconds

ONLY_LAUNCHED = "only the launch was timed; wait for the device before stopping the clock"
NOT_ALL_DONE = "not all of the work was done, or not all of it was timed"


def over_peak(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say why the compute rate is above its default peak, or above the one it is compared with."""
    result, default = analyzed.result, analyzed.default_peak
    over = next((peak for peak in (default, analyzed.peak.peak) if why_above_peak(result, peak)), None)
    if over is None:
        return None
    evidence = f"{format_flop_per_s(analyzed.flop_per_s)} against {format_flop_per_s(over.flop_per_s)}"
    if over is default and exceeds_peak_at_any_clock(result, over):
        sentence = (
            f"{analyzed.label} is far above the {PEAK_SOURCES[over.kind].label}, {_measurement_is_wrong(analyzed)}."
        )
        return Diagnosis("over_peak", sentence, evidence, "wrong")
    return Diagnosis("over_peak", f"{analyzed.label} reached {why_above_peak(result, over)}", evidence, "doubt")


def over_bandwidth(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that data moved faster than the memory can: a cache helped, or the time is wrong."""
    result, default = analyzed.result, analyzed.default_bandwidth
    choices = (default, analyzed.bandwidth.peak)
    over = next((bandwidth for bandwidth in choices if why_above_bandwidth(result, bandwidth)), None)
    if over is None:
        return None
    evidence = (
        f"{format_bytes(analyzed.byte_count)} in {format_seconds(analyzed.median_s)} are "
        f"{format_bytes_per_s(analyzed.bytes_per_s)}, against {format_bytes_per_s(over.bytes_per_s)}"
    )
    if over is default and (exceeds_bandwidth_of_any_cache(result, over) or exceeds_fastest_cache(result)):
        label = PEAK_SOURCES[over.kind].bandwidth_label
        sentence = f"{analyzed.label} is far above the {label}, {_measurement_is_wrong(analyzed)}."
        return Diagnosis("over_bandwidth", sentence, f"{evidence}; no cache explains it", "wrong")
    sentence = f"{analyzed.label} reached {why_above_bandwidth(result, over)}"
    return Diagnosis("over_bandwidth", sentence, evidence, "doubt")


def _measurement_is_wrong(analyzed: AnalyzedResult) -> str:
    on_host = analyzed.device is not None and analyzed.device.kind == "cpu"
    return f"so the measurement is wrong: most likely {NOT_ALL_DONE if on_host else ONLY_LAUNCHED}"
