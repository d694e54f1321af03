"""The summary of a run: plain sentences on what its results mean, and the one line that a list has of it."""

from collections.abc import Mapping, Sequence

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis, Summary
from gpuexplore.analysis.run.summary_rules import RULES, missing_sentence, not_believed, single_samples, undecided
from gpuexplore.analysis.speedup import TIE_WITHIN
from gpuexplore.analysis.utilization import PEAK_SOURCES, has_nominal_flops, is_ranked, shape_label
from gpuexplore.analysis.verdict import compare, ratio_of
from gpuexplore.core import (
    FlagName,
    Quality,
    Result,
    RunSummary,
    alike,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_seconds,
)
from gpuexplore.operations.families import BENCHMARK


def summarize(analysis: RunAnalysis, *, running: bool = False) -> Summary:
    """Return the summary of the results; while `running`, of the results so far."""
    if any(analyzed.measurement and analyzed.case.operation == BENCHMARK.name for analyzed in analysis.results):
        return _of_benchmarks(analysis)
    if analysis.fastest is None or analysis.largest_shape is None:
        return _without_measurement(analysis, running)
    headline = f"At {shape_label(analysis.largest_shape)}, {_leaders(analysis)} {_achieved(analysis.fastest)}."
    if running:
        headline = f"So far: {headline[0].lower()}{headline[1:]}"
    return Summary(headline, tuple(dict.fromkeys(alike(sentence) for rule in RULES if (sentence := rule(analysis)))))


def _without_measurement(analysis: RunAnalysis, running: bool) -> Summary:
    headline = "Nothing is measured yet." if running or not analysis.results else "No case could be measured."
    if not running and any(analyzed.flag("one_sample") for analyzed in analysis.results):
        headline = "No case was measured more than once."
    said = (
        not_believed(analysis),
        single_samples(analysis),
        missing_sentence([analyzed.result for analyzed in analysis.results]),
    )
    return Summary(headline, tuple(sentence for sentence in said if sentence))


def _of_benchmarks(analysis: RunAnalysis) -> Summary:
    """Return the times of benchmarks of another harness, none of which is called faster: they may do other things."""
    measured = sorted((each for each in analysis.results if each.median_s), key=lambda each: each.median_s or 0.0)
    missing = missing_sentence([analyzed.result for analyzed in analysis.results])
    if len(measured) == 1:
        headline = f"{measured[0].label} takes {format_seconds(measured[0].median_s)}"
    else:
        times = format_interval((measured[0].median_s or 0.0, measured[-1].median_s or 0.0), format_seconds)
        headline = f"{len(measured)} benchmarks, {times}"
    return Summary(
        f"{headline}; timed by another harness, so FLOPs, bytes and correctness are unknown.",
        tuple(filter(None, (single_samples(analysis), missing))),
    )


def _leaders(analysis: RunAnalysis) -> str:
    """Return the fastest implementation, or those that cannot be separated from it, and within which factor."""
    names = [analyzed.label for analyzed in analysis.ties]
    if len(names) == 1:
        return f"{names[0]} {_verb_of_fastest(analysis) if len(analysis.at_largest_shape) > 1 else 'takes'}"
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    who = f"all {len(names)} results" if len(names) == len(analysis.at_largest_shape) > 2 else listed
    return f"{who} cannot be separated statistically (within {format_percent(TIE_WITHIN - 1)}):"


def _verb_of_fastest(analysis: RunAnalysis) -> str:
    """Return the phrase for the fastest of several, with the certainty that all others are slower."""
    if undecided(analysis) or analysis.fastest is None:
        return "has the smallest median:"
    ratios = [ratio_of(other.result, analysis.fastest.result) for other in analysis.at_largest_shape[1:]]
    is_sure = all(compare(ratio, 1.0).certainty == "almost certainly" for ratio in ratios)
    return "is the fastest:" if is_sure else "is very likely the fastest:"


def _achieved(analyzed: AnalyzedResult) -> str:
    """Return time, rate and MFU with its peak, as far as they are known; without FLOPs the rate of memory."""
    parts = [format_seconds(analyzed.median_s)]
    if has_nominal_flops(analyzed.case):  # nominal FLOPs give no rate
        return ", ".join((*parts, format_bytes_per_s(analyzed.bytes_per_s)))
    rate = analyzed.flop_per_s
    peak = analyzed.peak.peak
    parts.append(format_flop_per_s(rate) if rate else format_bytes_per_s(analyzed.bytes_per_s))
    if analyzed.mfu is not None and peak is not None:
        parts.append(f"{format_percent(analyzed.mfu)} of the {PEAK_SOURCES[peak.kind].label}")
    return ", ".join(parts)


# The summary of a run in lists: its best rate, the share of the peak, and the quality of its times.


def summary_of(analysis: RunAnalysis) -> RunSummary:
    """Return the summary of a run with these results for lists."""
    measured = [analyzed for analyzed in analysis.results if analyzed.measurement]
    quality, why = quality_of([analyzed.result for analyzed in measured])
    by_memory = is_memory_bound(analysis)
    best = max(
        (analyzed for analyzed in measured if is_ranked(analyzed.result)),
        key=lambda analyzed: _rate(analyzed, by_memory) or 0.0,
        default=None,
    )
    if best is None or _rate(best, by_memory) is None:
        return RunSummary(quality=quality, why=why)
    reference = best.default_bandwidth if by_memory else best.default_peak
    source = PEAK_SOURCES[reference.kind] if reference else None
    return RunSummary(
        best=f"{best.label}, {shape_label(best.case.shape)}",
        rate=_rate(best, by_memory),
        unit="B/s" if by_memory else "FLOP/s",
        share=best.default_bandwidth_utilization if by_memory else best.default_mfu,
        peak=(source.bandwidth_label if by_memory else source.label) if source else None,
        quality=quality,
        why=why,
    )


def quality_of(results: Sequence[Result]) -> tuple[Quality | None, str | None]:
    """Return how far the times of measured results can be trusted, and the evidence; None without any."""
    if not results:
        return None, None
    few = 0.1  # of the results may carry a flag in a clean run
    flags_of: Mapping[Quality, tuple[FlagName, ...]] = {
        "contended": ("contended", "contention_unknown"),
        "noisy": ("noisy", "drifted", "throttled"),
    }
    means: Mapping[Quality, str] = {
        "noisy": "times varied during the measurement",
        "contended": "other work ran at the same time, or whether it did is unknown",
    }
    for quality, names in flags_of.items():
        found = [flag for result in results for flag in result.flags if flag.name in names]
        count = sum(any(flag.name in names for flag in result.flags) for result in results)
        if count > few * len(results):
            worst = max(found, key=lambda flag: flag.size or 0.0)
            return quality, f"{means[quality]}: {count} of {len(results)} measurements, e.g. {worst.evidence}"
    flagged = sum(any(flag.name in sum(flags_of.values(), ()) for flag in result.flags) for result in results)
    return "clean", f"hardly any measurement was disturbed: {flagged} of {len(results)}"


def is_memory_bound(analysis: RunAnalysis) -> bool:
    """Return whether what was reached is better stated in bytes per second than in FLOP/s."""
    fastest = analysis.fastest
    if fastest is None or fastest.bound == "compute":
        return False
    counts_nothing = not fastest.flop_count or has_nominal_flops(fastest.case)
    unknown = fastest.limits.one_thread and not fastest.operation.is_matrix_product
    return fastest.bound in ("memory", "cache") or counts_nothing or unknown


def _rate(analyzed: AnalyzedResult, by_memory: bool) -> float | None:
    return analyzed.bytes_per_s if by_memory else analyzed.flop_per_s
