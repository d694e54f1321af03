"""The rules behind a run's details: each looks at the evidence and returns one plain sentence, or None."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from gpuexplore.analysis.diagnosis import CARE, DISTURBANCES, diagnose
from gpuexplore.analysis.diagnosis import RULES as DIAGNOSES
from gpuexplore.analysis.diagnosis.formats import WORTH_A_SENTENCE, emulated, slower_than_native
from gpuexplore.analysis.run.derived import CONDITIONS
from gpuexplore.analysis.run.evidence import Evidence, measurement, name_of
from gpuexplore.analysis.run.speedup import Speedup, about_as_fast, ratio
from gpuexplore.analysis.utilization.peak_choice import chosen
from gpuexplore.analysis.utilization.rates import flop_count
from gpuexplore.analysis.utilization.utilization import PEAK_KINDS
from gpuexplore.dtypes import DTYPES
from gpuexplore.model import Result, Status
from gpuexplore.units import format_ratio, format_seconds

Rule = Callable[[Evidence], str | None]


def main_finding(evidence: Evidence) -> str | None:
    """Say what explains the fastest result best, or what is wrong with it; `disturbed` counts the rest."""
    rules = [rule for rule in DIAGNOSES if rule not in DISTURBANCES]
    found = diagnose(evidence.fastest, evidence.results, evidence.against, rules=rules)
    return found[0].sentence if found else None


def unknown(evidence: Evidence) -> str | None:
    """Say why the kind of peak that was asked for is unknown for the fastest result."""
    fastest, kind = evidence.fastest, evidence.against.kind
    reason = chosen(fastest, evidence.against).reason if flop_count(fastest.case) else None
    if kind is None or reason is None:
        return None
    return f"There is no MFU against {PEAK_KINDS[kind]} for {name_of(fastest, evidence.results)}: {reason}."


def contrast(evidence: Evidence) -> str | None:
    """Say how long the fastest result takes under the other conditions it was measured in."""
    fastest = evidence.fastest
    said = [
        f"{format_seconds(one.median_s)} {CONDITIONS[one.condition]}"
        for one in measurement(fastest).contrasts
        if one.median_s is not None
    ]
    return f"{name_of(fastest, evidence.results)} takes {', and '.join(said)}." if said else None


def gain(evidence: Evidence) -> str | None:
    """Say how much faster than its baseline the fastest result is that has one, or how far the baseline leads."""
    best = next((one for one in evidence.here if one.case in evidence.speedups), None)
    if best is None:
        return None
    if evidence.baseline in (best.case.implementation, best.case.dtype):
        return _ahead(best, evidence)
    found, dtype, name = evidence.speedups[best.case], best.case.dtype, best.case.implementation
    if evidence.baseline in DTYPES:
        return f"{name} is {_times(found)} as fast in {dtype} as in {found.baseline}."
    if found.ci95 and not found.distinct:
        return f"In {dtype}, {name} is about as fast as {found.baseline}."
    where = f" on {best.case.device}" if not found.paired else ""
    return f"In {dtype}, {name}{where} is {_times(found)} as fast as {found.baseline}."


def _ahead(best: Result, evidence: Evidence) -> str | None:
    """Say how far the fastest implementation is ahead of the next one in the same dtype."""
    rival = next((one for one in evidence.here if one.case.group == best.case.group and one is not best), None)
    if rival is None or about_as_fast(rival, best):
        return None
    times = format_ratio(measurement(rival).median_s / measurement(best).median_s)
    return f"The next in {best.case.dtype}, {rival.case.implementation}, takes {times} as long."


def _times(found: Speedup) -> str:
    if found.ci95 is None:
        return f"about {format_ratio(found.ratio)}"
    low, high = found.ci95
    return f"{format_ratio(found.ratio)} (95 % interval {format_ratio(low)} to {format_ratio(high)})"


def narrow_dtype(evidence: Evidence) -> str | None:
    """Say what the fastest implementation gained from its dtype over the widest one it was measured in."""
    if evidence.baseline in DTYPES:
        return None  # `gain` says it
    fastest = evidence.fastest
    same = [one for one in evidence.here if _same_but_dtype(one, fastest)]
    widest = min(same, key=lambda one: list(DTYPES).index(one.case.dtype), default=None)
    if widest is None:
        return None
    found = ratio(measurement(fastest), measurement(widest), widest.case.dtype)
    if found.ratio < WORTH_A_SENTENCE or not found.distinct:
        return None
    name, narrow = fastest.case.implementation, fastest.case.dtype
    return f"{name} is {_times(found)} as fast in {narrow} as in {widest.case.dtype}."


def _same_but_dtype(result: Result, other: Result) -> bool:
    return result is not other and replace(result.case, dtype=other.case.dtype) == other.case


def slow_dtype(evidence: Evidence) -> str | None:
    """Say which emulated dtype costs most against a native one of the same implementation."""
    slowed = [(found[0].ratio, one) for one in evidence.here if (found := slower_than_native(one, evidence.here))]
    if not slowed:
        return None
    _, worst = max(slowed, key=lambda pair: pair[0])
    return next((one.sentence for one in diagnose(worst, evidence.here, rules=(emulated,))), None)


def missing(evidence: Evidence) -> str | None:
    """Say how many cases have no measurement, by status, with the commonest reason."""
    return missing_sentence(evidence.results)


def missing_sentence(results: tuple[Result, ...]) -> str | None:
    """Return ``3 of 36 cases have no time: 2 skipped, 1 incorrect (reason)``, or None when all have one."""
    left = [result for result in results if result.status is not Status.OK]
    if not left:
        return None
    counts = Counter(one.status.value.replace("_", " ") for one in left)
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    reason, times = Counter((one.reason or "").rstrip(".") for one in left).most_common(1)[0]
    prefix = "" if times == len(left) else "most often, " if times > 1 else "for one, "
    have = "has" if len(left) == 1 else "have"
    return f"{len(left)} of {_count(len(results), 'case')} {have} no time ({listed}): {prefix}{reason}."


def disturbed(evidence: Evidence) -> str | None:
    """Say how many measurements have something to be known before trusting them."""
    measured = [result for result in evidence.results if result.status is Status.OK]
    usual = replace(evidence.against, kind=None)
    found = (diagnose(result, (), usual, rules=CARE) for result in measured)
    counts: Counter[str] = Counter(one.kind.replace("_", " ") for several in found for one in several)
    if not counts:
        return None
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    return f"Read with care: of {_count(len(measured), 'measurement')}, {listed}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


RULES: tuple[Rule, ...] = (main_finding, unknown, contrast, gain, narrow_dtype, slow_dtype, disturbed, missing)
