"""A measured ceiling that a result exceeds was measured on a disturbed machine: it is measured again."""

from gpuexplore.devices import ensure_ceiling
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.model import Device, Measurement
from gpuexplore.operations import operation_named

ATTEMPTS = 3


def with_fair_ceiling(candidate: Candidate, measurement: Measurement) -> Device:
    """Return the candidate's device, its ceiling measured again while `measurement` is above it."""
    case, device = candidate.case, candidate.device
    operation = operation_named(case.operation)
    implementation = operation.implementation_named(case.implementation)
    flop_per_s = operation.flop_count(case.shape) / measurement.median_s
    for _ in range(ATTEMPTS):
        peak = implementation.peak(device, case.dtype)
        if peak is None or peak.kind != "measured_ceiling" or flop_per_s <= peak.flop_per_s:
            break
        device = ensure_ceiling(device, case.options.threads, again=True)
    return device
