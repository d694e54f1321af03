"""What disturbed a measurement more than the rest of its run, by its flags: what that makes of its time.

The limits of such a result are told all the same, as far as they hold over its widened interval.
"""

from typing import Literal

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis

Disturbance = Literal["throttled", "contended", "drifted", "noisy"]


def throttled(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the device slowed itself down."""
    means = "was measured while something held its clock down; let the device cool, or raise its power limit"
    return _by_flag(analyzed, "throttled", means)


def contended(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that others used the device."""
    return _by_flag(analyzed, "contended", "overlapped with other work on the device")


def drifted(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the cores ran slower for a while."""
    return _by_flag(analyzed, "drifted", "was measured while a core ran slower than it usually does")


def noisy(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that the samples lie far apart."""
    return _by_flag(analyzed, "noisy", "varies from call to call")


def _by_flag(analyzed: AnalyzedResult, name: Disturbance, means: str) -> Diagnosis | None:
    flag, time = next((flag for flag in analyzed.flags if flag.name == name), None), analyzed.time
    if flag is None or time is None:
        return None
    sentence = f"{analyzed.label} {means}: a call takes {time.range}."
    return Diagnosis(name, sentence, f"{flag.evidence}; from {time.basis}", "doubt")
