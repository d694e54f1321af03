"""Why a result is as it is: from its figures, flags, peak and environment to plain sentences with their evidence."""

from collections.abc import Callable
from dataclasses import replace

from gpuexplore.analysis.diagnosis.cpu import slow_blas, too_few_threads
from gpuexplore.analysis.diagnosis.disturbances import contended, drifted, noisy, throttled
from gpuexplore.analysis.diagnosis.formats import emulated, tf32
from gpuexplore.analysis.diagnosis.gpu import transfer_dominates, wave_tail
from gpuexplore.analysis.diagnosis.impossible import over_bandwidth, over_peak
from gpuexplore.analysis.diagnosis.limits import (
    below_limits,
    cache_bound,
    compute_bound,
    launch_bound,
    memory_bound,
    no_peak,
    one_thread,
)
from gpuexplore.analysis.diagnosis.outcome import not_measured
from gpuexplore.analysis.diagnosis.users import extra_threads, fragile
from gpuexplore.analysis.model import AnalyzedResult, Diagnosis, DiagnosisKind
from gpuexplore.units import alike

DiagnosisRule = Callable[[AnalyzedResult], Diagnosis | None]
RULES: tuple[DiagnosisRule, ...] = (  # the most important first: what holds all the same before what disturbed it
    not_measured,
    over_peak,
    over_bandwidth,
    fragile,
    extra_threads,
    emulated,
    slow_blas,
    launch_bound,
    compute_bound,
    memory_bound,
    cache_bound,
    below_limits,
    one_thread,
    no_peak,
    wave_tail,
    too_few_threads,
    tf32,
    transfer_dominates,
    throttled,
    contended,
    drifted,
    noisy,
)
DISTURBANCE_KINDS: frozenset[DiagnosisKind] = frozenset({"throttled", "contended", "drifted", "noisy"})


def diagnose(analyzed: AnalyzedResult) -> tuple[Diagnosis, ...]:
    """Return what explains or casts doubt on a result, the most important first; a wrong time is not explained."""
    found = [diagnosis for rule in RULES if (diagnosis := rule(analyzed))]
    wrong = any(diagnosis.severity == "wrong" for diagnosis in found)
    kept = [diagnosis for diagnosis in found if not (wrong and diagnosis.severity == "explains")]
    return tuple(replace(each, sentence=alike(each.sentence), evidence=alike(each.evidence)) for each in kept)
