"""Rates above what they are held against: is the measurement wrong, or is more possible than was thought?"""

from gpuexplore.analysis.diagnosis.contract import Diagnosis, Subject
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.peak_choice import chosen, chosen_bandwidth
from gpuexplore.analysis.utilization.plausibility import exceeds_bandwidth_of_any_cache, exceeds_peak_at_any_clock
from gpuexplore.analysis.utilization.rates import byte_count, bytes_per_s, flop_per_s
from gpuexplore.analysis.utilization.utilization import BANDWIDTH_KINDS, PEAK_KINDS
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s, format_seconds

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
    if over is usual and exceeds_peak_at_any_clock(result, over):
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
    if over is usual and exceeds_bandwidth_of_any_cache(result, over):
        said = f"{subject.name} is far above {BANDWIDTH_KINDS[over.kind]}, {_measurement_is_wrong(subject)}."
        return Diagnosis("over_bandwidth", said, f"{evidence}; no cache can hold it", "wrong")
    said = f"{subject.name} reached {why_above_bandwidth(result, over)}"
    return Diagnosis("over_bandwidth", said, evidence, "doubt")


def _measurement_is_wrong(subject: Subject) -> str:
    on_host = subject.device is not None and subject.device.kind == "cpu"
    return f"so the measurement is wrong: most likely {NOT_ALL_DONE if on_host else ONLY_LAUNCHED}"
