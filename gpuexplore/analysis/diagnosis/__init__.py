"""Diagnosis of a result: plain sentences with evidence, from its figures, flags, peak and environment."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from gpuexplore.analysis.diagnosis.limits import (
    below_limits,
    cache_bound,
    compute_bound,
    launch_bound,
    memory_bound,
    no_peak,
    one_thread,
)
from gpuexplore.analysis.diagnosis.processors import (
    emulated,
    slow_blas,
    tf32,
    too_few_threads,
    transfer_dominates,
    wave_tail,
)
from gpuexplore.analysis.model import AnalyzedResult, Diagnosis, DiagnosisKind, Severity
from gpuexplore.analysis.utilization import (
    PEAK_SOURCES,
    exceeds_bandwidth_of_any_cache,
    exceeds_fastest_cache,
    exceeds_peak_at_any_clock,
    why_above_bandwidth,
    why_above_peak,
)
from gpuexplore.core import Status, alike, format_bytes, format_bytes_per_s, format_flop_per_s, format_seconds

# The diagnosis of a case without a time: the meaning of its status, and the next step.


_NEXT: Mapping[Status, tuple[Severity, str]] = {
    Status.SKIPPED: (
        "explains",
        "was skipped for the reason below; if it takes too long, choose a smaller size or a larger budget",
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
        "needs more memory than is free: choose a smaller size or a narrower dtype, or close what else uses memory",
    ),
    Status.TIMEOUT: (
        "doubt",
        "was stopped because it did not finish in time: choose a smaller size, or look for an infinite loop",
    ),
    Status.CRASHED: (
        "wrong",
        "crashed its process: a fault in the kernel, its library or the driver, or a refused memory allocation",
    ),
    Status.CANCELLED: ("explains", "was not measured because the run was cancelled: run it again"),
    Status.ERROR: (
        "wrong",
        "failed with an unexpected error: read it below, and report it unless it is an installation problem",
    ),
}


def _not_measured(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Explain why a case has no time."""
    result = analyzed.result
    accuracy = analyzed.result.accuracy
    if result.status is Status.OK:
        return None
    severity, means = _NEXT[result.status]
    evidence = result.reason or ""
    if accuracy and accuracy.relative_error is not None:
        evidence += f"; relative error {accuracy.relative_error:.1e}, tolerance {accuracy.tolerance:.1e}"
    return Diagnosis("not_measured", f"{analyzed.label} {means}.", evidence, severity)


# Rates above their reference: either the measurement or the reference is wrong.


def _over_peak(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Explain why the compute rate is above its default peak, or above the one it is compared with."""
    result = analyzed.result
    default = analyzed.default_peak
    over = next((peak for peak in (default, analyzed.peak.peak) if why_above_peak(result, peak)), None)
    if over is None:
        return None
    evidence = f"{format_flop_per_s(analyzed.flop_per_s)} against {format_flop_per_s(over.flop_per_s)}"
    if over is default and exceeds_peak_at_any_clock(result, over):
        label = PEAK_SOURCES[over.kind].label
        sentence = f"{analyzed.label} is far above the {label}, {_measurement_is_wrong(analyzed)}."
        return Diagnosis("over_peak", sentence, evidence, "wrong")
    return Diagnosis("over_peak", f"{analyzed.label} reached {why_above_peak(result, over)}", evidence, "doubt")


def _over_bandwidth(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Explain data that moved faster than memory allows: a cache helped, or the time is wrong."""
    result = analyzed.result
    default = analyzed.default_bandwidth
    over = next(
        (bandwidth for bandwidth in (default, analyzed.bandwidth.peak) if why_above_bandwidth(result, bandwidth)), None
    )
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
    cause = "only the launch was timed; wait for the device before stopping the clock"
    if analyzed.device is not None and analyzed.device.kind == "cpu":
        cause = "not all of the work was done, or not all of it was timed"
    return f"so the measurement is wrong: most likely {cause}"


# Disturbances of a measurement beyond those of its run, by its flags, and their effect on its time.
#
# The limits of such a result are still stated, as far as they are certain over its widened interval.


DISTURBANCES: Mapping[DiagnosisKind, str] = {  # what a flag means for a time
    "throttled": "was measured with a throttled clock; let the device cool, or raise its power limit",
    "contended": "overlapped with other work on the device",
    "drifted": "was measured while a core ran slower than usual",
    "noisy": "varies from call to call",
}


def _disturbed(kind: DiagnosisKind, analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a throttled device, contention, slow cores, or scattered samples."""
    flag = next((flag for flag in analyzed.flags if flag.name == kind), None)
    time = analyzed.time
    if flag is None or time is None:
        return None
    sentence = f"{analyzed.label} {DISTURBANCES[kind]}: a call takes {time.range}."
    return Diagnosis(kind, sentence, f"{flag.evidence}; from {time.basis}", "doubt")


# Diagnoses of users' implementations: wrong on other inputs, or with more threads than given.


def _fragile(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report the inputs on which a result is wrong, although it is right on the timed ones."""
    flag = analyzed.flag("fragile")
    if flag is None:
        return None
    sentence = f"{analyzed.label} is fragile: correct on the timed inputs, but {flag.evidence}."
    return Diagnosis("fragile", sentence, "inputs other than the timed ones, each tried once", "doubt")


def _extra_threads(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report extra threads of an implementation: its time is not comparable with others."""
    flag = analyzed.flag("extra_threads")
    if flag is None:
        return None
    sentence = f"{analyzed.label} uses threads of its own: compare it with others that use as many."
    return Diagnosis("extra_threads", sentence, flag.evidence, "doubt")


DiagnosisRule = Callable[[AnalyzedResult], Diagnosis | None]
RULES: Mapping[DiagnosisKind, DiagnosisRule] = {  # the most important first: limits before disturbances
    "not_measured": _not_measured,
    "over_peak": _over_peak,
    "over_bandwidth": _over_bandwidth,
    "fragile": _fragile,
    "extra_threads": _extra_threads,
    "emulated": emulated,
    "slow_blas": slow_blas,
    "launch_bound": launch_bound,
    "compute_bound": compute_bound,
    "memory_bound": memory_bound,
    "cache_bound": cache_bound,
    "below_limits": below_limits,
    "one_thread": one_thread,
    "no_peak": no_peak,
    "wave_tail": wave_tail,
    "too_few_threads": too_few_threads,
    "tf32": tf32,
    "transfer_dominates": transfer_dominates,
    **{kind: partial(_disturbed, kind) for kind in DISTURBANCES},
}


def diagnose(analyzed: AnalyzedResult) -> tuple[Diagnosis, ...]:
    """Return the diagnoses of a result, the most important first; a wrong time is not explained further."""
    found = [diagnosis for rule in RULES.values() if (diagnosis := rule(analyzed))]
    wrong = any(diagnosis.severity == "wrong" for diagnosis in found)
    kept = [diagnosis for diagnosis in found if not (wrong and diagnosis.severity == "explains")]
    return tuple(replace(each, sentence=alike(each.sentence), evidence=alike(each.evidence)) for each in kept)
