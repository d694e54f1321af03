"""Verdicts of a training: which mode is faster, and whether several processes are: verdicts on ratios of its steps."""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot

from gpuexplore.analysis.verdict import Doubt, Estimate, Verdict, Words, compare, doubts_of, doubts_of_both
from gpuexplore.core import Flag, format_ratio, widened
from gpuexplore.features.training.measure.contract import Timing, TrainingReport


def time_doubts(report: TrainingReport) -> tuple[Doubt, ...]:
    """Return what the times of a training are uncertain by, apart from their samples."""
    return doubts_of(_flags(report))


def ratio_doubts(report: TrainingReport) -> tuple[Doubt, ...]:
    """Return the same of ratios of interleaved steps: what hit both hardly shows in them."""
    return doubts_of_both(_flags(report), _flags(report))


def conclusions(report: TrainingReport) -> tuple[Verdict, ...]:
    """Return which modes are faster than the first, and whether the processes are faster than one; none while unknown.

    Every ratio is above 1 where what is named first is faster.
    """
    ratios = [(mode.name, report.modes[0].name, mode.ratio) for mode in report.modes[1:]]
    if found := report.processes:
        ratios.append((f"{found.count} processes", "one", found.speedup))
    return tuple(_verdict(this, other, ratio, ratio_doubts(report)) for this, other, ratio in ratios if ratio)


def _verdict(this: str, other: str, ratio: Timing, doubts: Sequence[Doubt]) -> Verdict:
    words = Words(
        f"{this} slower than {other}", None, f"{this} faster than {other}", f"which is faster, {this} or {other}"
    )
    low = high = None
    if ratio.ci95 is not None:
        ends = widened(ratio.ci95, ratio.median, hypot(*(doubt.deviation for doubt in doubts)))
        low = min(ends[0], ratio.median)
        high = max(ends[1], ratio.median)
    verdict = compare(Estimate(ratio.median, low, high, "times", f"{ratio.count} steps"), 1.0, words=words)
    if ratio.by_round is None:
        return verdict
    return replace(verdict, statement=f"{verdict.statement}; by the rounds {format_ratio(ratio.by_round)}")


def _flags(report: TrainingReport) -> tuple[Flag, ...]:
    share = report.lost_cpu_share
    return (Flag("contended", "other work took a part of the CPU", size=share),) if report.is_contended else ()
