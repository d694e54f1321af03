"""Speedups with their intervals: how many times as fast a result is as its baseline.

Implementations of one group are sampled in turns, so sample i of both comes from round i and their
ratio is free of drift that hits both. Across dtypes or devices nothing is paired: the ratio is one of
medians, and its interval the widest that the two intervals of the medians allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuexplore.dtypes import DTYPES
from gpuexplore.model import Case, Measurement, Result
from gpuexplore.operations import operation_named
from gpuexplore.statistics import median, median_interval


@dataclass(frozen=True, slots=True)
class Speedup:
    """Baseline time / this time; above 1 is faster.

    Attributes:
        baseline: what it is compared with, for a reader.
        ci95: 95 % interval of the ratio; None under six samples.
        paired: whether the ratio was taken round by round.
    """

    baseline: str
    ratio: float
    ci95: tuple[float, float] | None
    paired: bool

    @property
    def distinct(self) -> bool:
        """Whether the interval excludes 1, so that one may be called faster."""
        return self.ci95 is not None and not self.ci95[0] <= 1 <= self.ci95[1]


def default_baseline(results: Sequence[Result]) -> str | None:
    """Return the first implementation, in the operation's order, that `results` ask for."""
    if not results:
        return None
    asked = {result.case.implementation for result in results}
    names = (implementation.name for implementation in operation_named(results[0].case.operation).implementations)
    return next((name for name in names if name in asked), None)


def speedups(results: Sequence[Result], baseline: str) -> dict[Case, Speedup]:
    """Return the speedup of every measured case that has a measured baseline.

    Args:
        baseline: an implementation (same dtype, shape and device; where it cannot run on that device,
            its result on another one) or a dtype (same implementation, shape and device).
    """
    measured = {result.case: result for result in results if result.measurement is not None}
    against = {case: _baseline_case(case, baseline, measured) for case in measured}
    return {
        case: speedup(measured[case], measured[other], name=_name(case, other, baseline))
        for case, other in against.items()
        if other is not None
    }


def speedup(result: Result, baseline: Result, *, name: str | None = None) -> Speedup:
    """Return how many times as fast `result` is as `baseline`; both must be measured in the same run.

    Raises:
        ValueError: one of them has no measurement.
    """
    this, other = result.measurement, baseline.measurement
    if this is None or other is None:
        raise ValueError("a speedup needs two measured results")
    name = name or baseline.case.implementation
    return paired_speedup(this, other, name) if result.case.group == baseline.case.group else ratio(this, other, name)


def paired_speedup(this: Measurement, other: Measurement, name: str) -> Speedup:
    """Return the median of the ratios round by round, over the rounds that both have."""
    ratios = [slow / fast for slow, fast in zip(other.samples_s, this.samples_s, strict=False)]
    return Speedup(name, median(ratios), median_interval(ratios), paired=True)


def ratio(this: Measurement, other: Measurement, name: str) -> Speedup:
    """Return the ratio of medians of two measurements that share no rounds, with a careful interval."""
    interval = None
    if this.ci95_s and other.ci95_s:
        interval = (other.ci95_s[0] / this.ci95_s[1], other.ci95_s[1] / this.ci95_s[0])
    return Speedup(name, other.median_s / this.median_s, interval, paired=False)


def about_as_fast(result: Result, other: Result) -> bool:
    """Return whether two measured results cannot be told apart at 95 %.

    With too few samples for an interval: whether their samples overlap.
    """
    found = speedup(result, other)
    return _overlap(result.measurement, other.measurement) if found.ci95 is None else not found.distinct


def _overlap(this: Measurement | None, other: Measurement | None) -> bool:
    if this is None or other is None:
        return False
    return this.min_s <= max(other.samples_s) and other.min_s <= max(this.samples_s)


def _baseline_case(case: Case, baseline: str, measured: Mapping[Case, Result]) -> Case | None:
    if baseline in DTYPES:
        wanted = replace(case, dtype=baseline)
        return wanted if wanted in measured else None
    wanted = replace(case, implementation=baseline)
    if wanted in measured:
        return wanted
    return next((result for result in measured if replace(result, device=case.device) == wanted), None)


def _name(case: Case, other: Case, baseline: str) -> str:
    return baseline if case.device == other.device else f"{baseline} on {other.device}"
