"""Verdicts of a training: which mode is faster, and whether several processes are: verdicts on ratios of its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot

from gpuexplore.analysis.verdict import Doubt, Estimate, Verdict, Words, compare
from gpuexplore.analysis.verdict.times import doubts_of, doubts_of_both
from gpuexplore.core.model import Flag
from gpuexplore.core.statistics import widened
from gpuexplore.core.units import format_ratio
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
    return tuple(_conclusions(report))


def _conclusions(report: TrainingReport) -> Iterator[Verdict]:
    doubts = ratio_doubts(report)
    for mode in report.modes[1:]:
        if mode.ratio:
            yield _verdict(mode.name, report.modes[0].name, mode.ratio, doubts)
    found = report.processes
    if found and found.speedup:
        yield _verdict(f"{found.count} processes", "one", found.speedup, doubts)


def _verdict(this: str, other: str, ratio: Timing, doubts: Sequence[Doubt]) -> Verdict:
    words = Words(
        f"{this} slower than {other}", None, f"{this} faster than {other}", f"which is faster, {this} or {other},"
    )
    verdict = compare(_estimate(ratio, doubts), 1.0, words=words)
    if ratio.by_round is None:
        return verdict
    return replace(verdict, statement=f"{verdict.statement}; by the rounds {format_ratio(ratio.by_round)}")


def _estimate(ratio: Timing, doubts: Sequence[Doubt]) -> Estimate:
    if ratio.ci95 is None:
        return Estimate(ratio.median, None, None, "times", f"{ratio.count} steps")
    low, high = widened(ratio.ci95, ratio.median, hypot(*(doubt.deviation for doubt in doubts)))
    return Estimate(ratio.median, min(low, ratio.median), max(high, ratio.median), "times", f"{ratio.count} steps")


def _flags(report: TrainingReport) -> tuple[Flag, ...]:
    share = report.lost_cpu_share
    return (Flag("contended", "other work took a part of the CPU", size=share),) if report.is_contended else ()
