"""The rules behind a run's details: each looks at the analysis and returns one plain sentence, or None."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from gpuexplore.analysis.diagnosis.processors import WORTH_A_SENTENCE, slower_than_native
from gpuexplore.analysis.model import AnalyzedResult, DiagnosisKind, RunAnalysis, Speedup
from gpuexplore.analysis.speedup import is_separable, speedup
from gpuexplore.analysis.utilization import PEAK_SOURCES, is_plausible, shape_label
from gpuexplore.analysis.verdict import PROCESSES, SAMPLES, compare, ratio_of
from gpuexplore.core import (
    SMALLEST_SAMPLE_WITH_INTERVAL,
    Condition,
    Measurement,
    Phase,
    Result,
    Status,
    format_flop_per_s,
    format_interval,
    format_ratio,
    format_seconds,
)
from gpuexplore.core.dtypes import DTYPES

SummaryRule = Callable[[RunAnalysis], str | None]
CONDITIONS: Mapping[Condition, str] = {
    "cold": "from cold caches",
    "warm": "from warm caches",
    "graph": "replayed from a graph, without launches",
    "library": "with arrays where the library allocates them",
    "pages": "with arrays on boundaries of 2 MiB",
}
CARE: Mapping[DiagnosisKind, str] = {  # warnings about measurements
    "over_peak": "above the peak",
    "over_bandwidth": "above the memory bandwidth",
    "throttled": "with a throttled clock",
    "contended": "overlapped with other work",
    "drifted": "on cores that ran slower for a while",
    "noisy": "noisy",
}


DETERMINES: Mapping[str, str] = {  # a ratio, by what makes its interval wide
    SAMPLES: f"{SMALLEST_SAMPLE_WITH_INTERVAL} samples of each would determine it: give it a larger "
    "budget, or where one call takes seconds as many fresh processes",
    PROCESSES: "more fresh processes would determine it: raise their number",
}


def _main_finding(analysis: RunAnalysis) -> str | None:
    """State the main diagnosis of the fastest result, or why there is none."""
    found = analysis.fastest.diagnoses if analysis.fastest else ()
    return next((diagnosis.sentence for diagnosis in found), None)


def not_believed(analysis: RunAnalysis) -> str | None:
    """State which measurements are excluded because they are physically impossible."""
    left_out = [analyzed for analyzed in analysis.results if analyzed.measurement and not is_plausible(analyzed.result)]
    found = [
        next((diagnosis.sentence for diagnosis in analyzed.diagnoses if diagnosis.severity == "wrong"), analyzed.label)
        for analyzed in left_out
    ]
    return f"{' '.join(found)} Such a time is excluded from rankings and comparisons." if found else None


def _fragile(analysis: RunAnalysis) -> str | None:
    """State which results are excluded from the ranking because they are wrong on other inputs."""
    left_out = [analyzed for analyzed in analysis.results if analyzed.flag("fragile")]
    diagnoses = chain.from_iterable(analyzed.diagnoses for analyzed in left_out)
    found = dict.fromkeys(diagnosis.sentence for diagnosis in diagnoses if diagnosis.kind == "fragile")
    if not found or analysis.fastest in left_out:
        return None
    return f"{' '.join(found)} It is not ranked."


def single_samples(analysis: RunAnalysis) -> str | None:
    """State which results have a single sample and are therefore not ranked."""
    found = [analyzed for analyzed in analysis.results if analyzed.flag("one_sample")]
    if not found:
        return None
    most = 3  # in a sentence
    named = ", ".join(
        f"{analyzed.label} at {shape_label(analyzed.case.shape)}" if analyzed.case.shape.axes else analyzed.label
        for analyzed in found[:most]
    )
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return (
        f"A single sample has no interval and is excluded from rankings and comparisons: {named}{more}. In a run, a "
        "larger budget takes more samples."
    )


def _unknown_peak(analysis: RunAnalysis) -> str | None:
    """Say why the kind of peak that was asked for is unknown for the fastest result."""
    fastest = analysis.fastest
    kind = analysis.comparison.peak_kind
    if fastest is None or kind is None or not fastest.flop_count or fastest.peak.reason is None:
        return None
    return f"There is no MFU relative to the {PEAK_SOURCES[kind].label} for {fastest.label}: {fastest.peak.reason}."


def _contrast(analysis: RunAnalysis) -> str | None:
    """Say how long the fastest result takes under the other conditions it was measured in."""
    if analysis.fastest is None:
        return None
    times = [
        f"{format_seconds(contrast.median_s)} {CONDITIONS[contrast.condition]}"
        for contrast in _measurement(analysis.fastest).contrasts
        if contrast.median_s is not None
    ]
    return f"{analysis.fastest.label} takes {', and '.join(times)}." if times else None


def _phases(analysis: RunAnalysis) -> str | None:
    """Say how long each phase of the fastest result takes, on its own."""
    return phases_sentence(analysis.fastest) if analysis.fastest else None


def phases_sentence(analyzed: AnalyzedResult) -> str | None:
    """Return how long each phase of a result takes on its own, or why that is not known; None where it has none."""
    phases = analyzed.measurement.phases if analyzed.measurement else ()
    if not phases:
        return None
    if any(phase.median_s is None for phase in phases):
        reasons = dict.fromkeys(phase.reason for phase in phases if phase.reason)
        return f"The phases of {analyzed.label} are not timed: {'; '.join(reasons)}."
    return (
        f"Timed separately, the phases of {analyzed.label} take: "
        f"{', '.join(_phase(phase, analyzed) for phase in phases)}."
    )


def _phase(phase: Phase, analyzed: AnalyzedResult) -> str:
    time_s = phase.median_s or 0.0
    flop_count = analyzed.operation.phases.get(phase.name)
    rate = f" ({format_flop_per_s(flop_count(analyzed.case.shape) / time_s)})" if flop_count and time_s else ""
    return f"{phase.name} {format_seconds(time_s)}{rate}"


def _gain(analysis: RunAnalysis) -> str | None:
    """Say how much faster than its baseline the fastest result is that has one, or how far the baseline leads."""
    best = next((analyzed for analyzed in analysis.at_largest_shape if analyzed.speedup), None)
    if best is None or best.speedup is None:
        return None
    found = best.speedup
    dtype = best.case.dtype
    name = best.case.implementation
    if analysis.comparison.baseline in (name, dtype):
        # how far the fastest implementation is ahead of the next one in the same dtype
        same = (
            other for other in analysis.at_largest_shape if other.case.group == best.case.group and other is not best
        )
        rival = next(same, None)
        if rival is None or not is_separable(rival.result, best.result):
            return None  # a tie, or reported by `not_separated`
        times = format_ratio(_measurement(rival).median_s / _measurement(best).median_s)
        return f"The next in {best.case.dtype}, {rival.case.implementation}, takes {times} as long."
    if analysis.comparison.baseline in DTYPES:
        return f"{name} is {_times(found)} as fast in {dtype} as in {found.baseline}."
    where = f" on {best.device_label}" if not found.paired else ""
    if found.verdict.relation is None:
        return f"In {dtype}, {name}{where} cannot be separated from {found.baseline}: {_times(found)} as fast."
    return f"In {dtype}, {name}{where} is {_times(found)} as fast as {found.baseline}."


def undecided(analysis: RunAnalysis) -> tuple[AnalyzedResult, ...]:
    """Return the results that look slower than the fastest, but vary too much to be called slower."""
    fastest = analysis.fastest
    ties = analysis.ties
    apart = [analyzed for analyzed in analysis.at_largest_shape if analyzed not in ties]
    return tuple(other for other in apart if fastest and not is_separable(other.result, fastest.result))


def _not_separated(analysis: RunAnalysis) -> str | None:
    """Say which results that look slower than the fastest are inconclusive, and what would decide."""
    fastest = analysis.fastest
    doubtful = undecided(analysis)
    if fastest is None or not doubtful:
        return None
    found = [(other, ratio_of(other.result, fastest.result)) for other in doubtful]
    names = ", ".join(f"{other.label} ({ratio.range} as long)" for other, ratio in found if ratio)
    decides = {compare(ratio, 1.0).would_decide for _, ratio in found}
    advice = next(iter(decides)) if len(decides) == 1 else None
    return f"Not significantly slower than {fastest.label}: {names}{f'; {advice}' if advice else ''}."


def _times(found: Speedup) -> str:
    """Return a speedup with its interval; where that leaves the order of magnitude open, what would determine it."""
    ratio = format_ratio(found.ratio)
    if found.ci95 is None:
        return f"about {ratio}"
    interval = format_interval(found.ci95, format_ratio)
    low, high = found.ci95
    if high > 10 * low:
        widest = found.estimate.widest_doubt
        remedy = f"; {DETERMINES[widest.name]}" if widest and widest.name in DETERMINES else ""
        return f"about {ratio} (not determined: {found.estimate.basis} leave {interval} possible{remedy})"
    scope = "" if found.covers_processes else ", within this run"
    by_round = f"; round by round {format_ratio(found.by_round)}" if found.by_round else ""
    return f"{ratio} (95 % interval {interval}{scope}{by_round})"


def _narrow_dtype(analysis: RunAnalysis) -> str | None:
    """Say what the fastest implementation gained from its dtype over the widest one it was measured in."""
    fastest = analysis.fastest
    if fastest is None or analysis.comparison.baseline in DTYPES:  # reported by `gain`
        return None
    same = [
        analyzed
        for analyzed in analysis.at_largest_shape
        if analyzed is not fastest and replace(analyzed.case, dtype=fastest.case.dtype) == fastest.case
    ]
    widest = min(same, key=lambda analyzed: list(DTYPES).index(analyzed.case.dtype), default=None)
    if widest is None:
        return None
    found = speedup(fastest.result, widest.result, name=widest.case.dtype)
    if found.ratio < WORTH_A_SENTENCE or found.verdict.relation != "above":
        return None
    return (
        f"{fastest.case.implementation} is {_times(found)} as fast in {fastest.case.dtype} as in {widest.case.dtype}."
    )


def _slow_dtype(analysis: RunAnalysis) -> str | None:
    """Say which emulated dtype costs most compared with a native one of the same implementation."""
    slowed = [
        (found[0].value, analyzed) for analyzed in analysis.at_largest_shape if (found := slower_than_native(analyzed))
    ]
    if not slowed:
        return None
    _, worst = max(slowed, key=lambda pair: pair[0])
    return next((diagnosis.sentence for diagnosis in worst.diagnoses if diagnosis.kind == "emulated"), None)


def _missing(analysis: RunAnalysis) -> str | None:
    """Say how many cases have no time, by status, with the commonest reason."""
    return missing_sentence([analyzed.result for analyzed in analysis.results])


def _disturbed(analysis: RunAnalysis) -> str | None:
    """State how many measurements have warnings beyond those of the whole run."""
    measured = [analyzed for analyzed in analysis.results if analyzed.measurement]
    counts = Counter(kind for analyzed in measured for kind in _care(analyzed))
    if not counts:
        return None
    listed = ", ".join(f"{count} {CARE[kind]}" for kind, count in counts.most_common())
    return f"Of {len(measured)} measurement{'s'[: len(measured) > 1]}, {listed}."


def _care(analyzed: AnalyzedResult) -> set[DiagnosisKind]:
    """Return the warnings of a result that hold for any comparison."""
    found: set[DiagnosisKind] = {diagnosis.kind for diagnosis in analyzed.diagnoses if diagnosis.kind in CARE}
    if (analyzed.default_mfu or 0.0) <= 1:
        found.discard("over_peak")
    if (analyzed.default_bandwidth_utilization or 0.0) <= 1:
        found.discard("over_bandwidth")
    return found


def _measurement(analyzed: AnalyzedResult) -> Measurement:
    """Return the measurement of a measured result.

    Raises:
        ValueError: it has none.
    """
    if analyzed.measurement is None:
        raise ValueError(f"{analyzed.case} has no measurement")
    return analyzed.measurement


RULES: tuple[SummaryRule, ...] = (
    _main_finding,
    not_believed,
    _fragile,
    single_samples,
    _unknown_peak,
    _contrast,
    _phases,
    _gain,
    _not_separated,
    _narrow_dtype,
    _slow_dtype,
    _disturbed,
    _missing,
)


# How many results have no time, and why: one sentence for charts, summaries and pages.


def missing_counts(results: Sequence[Result]) -> Counter[str]:
    """Return how many results have no time, by status in words."""
    return Counter(result.status.value.replace("_", " ") for result in results if result.status is not Status.OK)


def _counted(counts: Counter[str], total: int) -> str:
    """Return ``8 of 216 cancelled``, or ``5 of 36 without a time (3 skipped, 2 incorrect)``."""
    if len(counts) == 1:
        ((what, count),) = counts.items()
        return f"{count} of {total} {what}"
    listed = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    return f"{counts.total()} of {total} without a time ({listed})"


def missing_sentence(results: Sequence[Result]) -> str | None:
    """Return how many results have no time, with the commonest reason; None when all have one."""
    counts = missing_counts(results)
    if not counts:
        return None
    reasons = Counter((result.reason or "").rstrip(".") for result in results if result.status is not Status.OK)
    reason, times = reasons.most_common(1)[0]
    prefix = "" if times == counts.total() else "mostly: " if times > 1 else "one of them: "
    return f"{_counted(counts, len(results))}: {prefix}{reason}."
