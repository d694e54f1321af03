"""The diagnosis of a case without a time: what its status means, and what to do next."""

from collections.abc import Mapping
from types import MappingProxyType

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis, Severity
from gpuexplore.model import Status

_NEXT: Mapping[Status, tuple[Severity, str]] = MappingProxyType(
    {
        Status.SKIPPED: (
            "explains",
            "was skipped, for the reason below: where that is its time, choose a smaller size or a larger budget",
        ),
        Status.UNSUPPORTED: (
            "explains",
            "cannot run here: choose another dtype, implementation or device",
        ),
        Status.INCORRECT: (
            "wrong",
            "computes a wrong answer here, so it was not timed: do not use it for this shape and dtype",
        ),
        Status.OUT_OF_MEMORY: (
            "explains",
            "needs more memory than there is: choose a smaller size or a narrower dtype, or end what else holds memory",
        ),
        Status.TIMEOUT: (
            "doubt",
            "was stopped, because it did not end in time: choose a smaller size, or look for a loop that never ends",
        ),
        Status.CRASHED: (
            "wrong",
            "ended its process: a fault in the kernel, its library or the driver, or memory that the system refused",
        ),
        Status.CANCELLED: ("explains", "was not measured, because the run was cancelled: run it again"),
        Status.ERROR: (
            "wrong",
            "failed with an error nobody expected: read it below, and report it where it is no matter of installation",
        ),
    }
)


def not_measured(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say what it means that a case has no time."""
    result, accuracy = analyzed.result, analyzed.result.accuracy
    if result.status is Status.OK:
        return None
    severity, means = _NEXT[result.status]
    evidence = result.reason or ""
    if accuracy and accuracy.relative_error is not None:
        evidence += f"; relative error {accuracy.relative_error:.1e}, allowed is {accuracy.tolerance:.1e}"
    return Diagnosis("not_measured", f"{analyzed.label} {means}.", evidence, severity)
