"""Why a result is as it is: from its figures, flags, peak and environment to plain sentences with their evidence."""

from collections.abc import Sequence

from gpuexplore.analysis.diagnosis.contract import Diagnosis, Kind, Rule, Severity, Subject
from gpuexplore.analysis.diagnosis.cpu import slow_blas, too_few_threads
from gpuexplore.analysis.diagnosis.disturbances import contended, noisy, throttled
from gpuexplore.analysis.diagnosis.formats import emulated, tf32
from gpuexplore.analysis.diagnosis.gpu import transfer_dominates, wave_tail
from gpuexplore.analysis.diagnosis.impossible import over_bandwidth, over_peak
from gpuexplore.analysis.diagnosis.limits import cache_bound, compute_bound, launch_bound, memory_bound, no_peak
from gpuexplore.analysis.diagnosis.outcome import not_measured
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.model import Result

RULES: tuple[Rule, ...] = (  # the most telling first: what disturbed it comes before what would explain it undisturbed
    not_measured,
    over_peak,
    over_bandwidth,
    throttled,
    contended,
    emulated,
    slow_blas,
    launch_bound,
    compute_bound,
    memory_bound,
    cache_bound,
    no_peak,
    wave_tail,
    too_few_threads,
    tf32,
    transfer_dominates,
    noisy,
)
DISTURBANCES: tuple[Rule, ...] = (throttled, contended, noisy)
CARE: tuple[Rule, ...] = (over_peak, over_bandwidth, *DISTURBANCES)  # what to know before trusting a result

__all__ = ["CARE", "DISTURBANCES", "RULES", "Diagnosis", "Kind", "Rule", "Severity", "Subject", "diagnose"]


def diagnose(
    result: Result, others: Sequence[Result] = (), against: Against = USUAL, *, rules: Sequence[Rule] = RULES
) -> tuple[Diagnosis, ...]:
    """Return what explains or casts doubt on `result`, the most telling first; a wrong time is not explained further.

    Args:
        others: results of the same run, for comparison; `result` may be among them.
        against: what it is held against, beside the usual peaks.
        rules: those to ask.
    """
    subject = Subject(result, tuple(others), against)
    found = [one for rule in rules if (one := rule(subject))]
    wrong = any(one.severity == "wrong" for one in found)
    return tuple(one for one in found if not (wrong and one.severity == "explains"))
