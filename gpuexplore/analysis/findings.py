"""The rules behind a run's details: each looks at the evidence and returns one plain sentence, or None."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from gpuexplore.analysis.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.comparison import Speedup, about_as_fast, ratio
from gpuexplore.analysis.denominators import chosen, chosen_bandwidth
from gpuexplore.analysis.evidence import Evidence, measurement, name_of
from gpuexplore.analysis.figures import CONDITIONS
from gpuexplore.analysis.mfu import (
    PEAK_KINDS,
    applicable_peak,
    bandwidth_share,
    cached_because,
    compute_share,
    known_bandwidth,
)
from gpuexplore.analysis.rates import flop_count
from gpuexplore.analysis.roofline import bound
from gpuexplore.dtypes import DTYPES
from gpuexplore.model import Result, Status
from gpuexplore.units import format_percent, format_ratio, format_seconds

CLOSE_TO_A_PEAK = 0.75
WORTH_A_SENTENCE = 1.2
FLAGS_TO_TELL = ("throttled", "contended", "over_peak", "noisy")  # the gravest first

Rule = Callable[[Evidence], str | None]


def limit(evidence: Evidence) -> str | None:
    """Say what bounds the fastest result, and how close to the bound it came."""
    fastest = evidence.fastest
    name, peak = name_of(fastest, evidence.results), applicable_peak(fastest, evidence.own_peaks)
    kind = bound(fastest, evidence.own_peaks)
    if kind == "overhead":
        return f"{name} is launch-bound: the call itself costs about as much as the work, so larger sizes gain most."
    if kind == "cache":
        return f"{name} is bound by caches: {cached_because(fastest)}."
    if kind == "memory":
        return _memory(name, bandwidth_share(fastest, known_bandwidth(fastest, evidence.against.own_bandwidth)))
    if peak is None and flop_count(fastest.case):
        return f"No peak is known for {name} here, so there is no MFU: enter one to get it."
    share = compute_share(fastest, peak)
    if kind is None or peak is None or share is None or share > 1:  # `above` says it
        return None
    of_what = f": {format_percent(share)} of {PEAK_KINDS[peak.kind]}" if evidence.against.kind else ""
    return f"{name} is compute-bound, and {_room(share)}{of_what}."  # else the headline has the share


def _memory(name: str, share: float | None) -> str | None:
    if share is None or share > 1:  # `above` says it
        return None
    return f"{name} is memory-bound, and {_room(share)}: {format_percent(share)} of the memory bandwidth."


def above(evidence: Evidence) -> str | None:
    """Say why the fastest result is above 100 % of what it is held against, or of what usually bounds it."""
    fastest, against = evidence.fastest, evidence.against
    told = (
        why_above_peak(fastest, chosen(fastest, against).peak),
        why_above_bandwidth(fastest, chosen_bandwidth(fastest, against).peak),
        why_above_peak(fastest, applicable_peak(fastest, against.own_peaks)),
        why_above_bandwidth(fastest, known_bandwidth(fastest, against.own_bandwidth)),
    )
    why = next(filter(None, told), None)
    return f"{name_of(fastest, evidence.results)} reached {why}" if why else None


def unknown(evidence: Evidence) -> str | None:
    """Say why the kind of peak that was asked for is unknown for the fastest result."""
    fastest, kind = evidence.fastest, evidence.against.kind
    reason = chosen(fastest, evidence.against).reason if flop_count(fastest.case) else None
    if kind is None or reason is None:
        return None
    return f"There is no MFU against {PEAK_KINDS[kind]} for {name_of(fastest, evidence.results)}: {reason}."


def _room(share: float) -> str:
    return "close to that limit" if share >= CLOSE_TO_A_PEAK else "has room below that limit"


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


def _same_but_dtype(one: Result, other: Result) -> bool:
    return one is not other and replace(one.case, dtype=other.case.dtype) == other.case


def slow_dtype(evidence: Evidence) -> str | None:
    """Say which emulated dtype costs most against a native one of the same implementation."""
    pairs = [
        (ratio(measurement(other), measurement(one), ""), one, other)
        for one in evidence.here
        for other in evidence.here
        if _same_but_dtype(one, other)
        and any(flag.name == "emulated" for flag in one.flags)
        and not any(flag.name == "emulated" for flag in other.flags)
    ]
    worst = max(pairs, key=lambda pair: pair[0].ratio, default=None)
    if worst is None or worst[0].ratio < WORTH_A_SENTENCE or (worst[0].ci95 and not worst[0].distinct):
        return None
    return _slower(*worst)


def _slower(times: Speedup, slow: Result, fast: Result) -> str:
    why = next(flag.evidence for flag in slow.flags if flag.name == "emulated").rstrip(".")
    name, longer = slow.case.implementation, format_ratio(times.ratio)
    return f"{name} takes {longer} as long in {slow.case.dtype} as in {fast.case.dtype}: {why}."


def missing(evidence: Evidence) -> str | None:
    """Say how many cases have no measurement, by status, with the commonest reason."""
    return missing_sentence(evidence.results)


def missing_sentence(results: tuple[Result, ...]) -> str | None:
    """Return ``3 of 36 cases have no time: 2 skipped, 1 incorrect (reason)``, or None when all have one."""
    left = [one for one in results if one.status is not Status.OK]
    if not left:
        return None
    counts = Counter(one.status.value.replace("_", " ") for one in left)
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    reason, times = Counter((one.reason or "").rstrip(".") for one in left).most_common(1)[0]
    prefix = "" if times == len(left) else "most often, " if times > 1 else "for one, "
    have = "has" if len(left) == 1 else "have"
    return f"{len(left)} of {_count(len(results), 'case')} {have} no time ({listed}): {prefix}{reason}."


def disturbed(evidence: Evidence) -> str | None:
    """Say how many measurements carry a flag that asks for care."""
    measured = [one for one in evidence.results if one.status is Status.OK]
    counts: Counter[str] = Counter(flag.name for one in measured for flag in one.flags)
    told = [f"{counts[name]} {name.replace('_', ' ')}" for name in FLAGS_TO_TELL if counts[name]]
    if not told:
        return None
    return f"Read with care: of {_count(len(measured), 'measurement')}, {', '.join(told)}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


RULES: tuple[Rule, ...] = (limit, above, unknown, contrast, gain, narrow_dtype, slow_dtype, disturbed, missing)
