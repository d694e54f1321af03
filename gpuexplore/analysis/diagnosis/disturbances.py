"""What disturbed a measurement, by its flags: each with what to do about it."""

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis, Disturbance
from gpuexplore.units import format_percent


def throttled(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the device slowed itself down."""
    means = (
        "was measured while something held its clock down, so its limit is not told: let the device cool, or raise or "
        "reset its power limits"
    )
    return _by_flag(analyzed, "throttled", means)


def contended(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that others used the device."""
    return _by_flag(
        analyzed,
        "contended",
        "overlapped with other work on the device, so its limit is not told: measure again when nothing else runs",
    )


def drifted(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the cores ran slower for a while."""
    return _by_flag(
        analyzed,
        "drifted",
        "was measured while a core ran slower than it usually does, so its limit is not told: measure again, and end "
        "what shares the cores, other virtual machines too",
    )


def noisy(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the samples lie far apart."""
    found = _by_flag(
        analyzed,
        "noisy",
        "varies from call to call, so its limit is not told: end other programs, and repeat it with a larger budget",
    )
    measurement = analyzed.result.measurement
    if found is None or measurement is None or measurement.ci95_s is None:
        return found
    low, high = measurement.ci95_s
    half = (high - low) / 2 / measurement.median_s
    evidence = f"{found.evidence}; the median is known to ±{format_percent(half)}, from {len(measurement.samples_s)}"
    return Diagnosis(found.kind, found.sentence, f"{evidence} samples", found.severity)


def _by_flag(analyzed: AnalyzedResult, name: Disturbance, means: str) -> Diagnosis | None:
    flag = analyzed.flag(name)
    if flag is None:
        return None
    return Diagnosis(name, f"{analyzed.label} {means}.", flag.evidence, "doubt")
