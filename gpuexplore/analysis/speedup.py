"""Speedups with their intervals: how many times as fast a result is as its baseline.

Implementations of one group are sampled in turns, so sample i of both comes from round i and their
ratio is free of drift that hits both. Across dtypes or devices nothing is paired: the ratio is one of
medians, and its interval the widest that the two intervals of the medians allow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuexplore.analysis.model import Speedup
from gpuexplore.dtypes import DTYPES
from gpuexplore.model import Case, Measurement, Result
from gpuexplore.operations import operation_named
from gpuexplore.statistics import median, median_interval

TIE_WITHIN = 1.1  # medians further apart are never called a tie, however scattered their samples


def default_baseline(operation: str, implementations: Iterable[str]) -> str | None:
    """Return the first of `implementations` in the order of `operation`; None where there are none."""
    asked = set(implementations)
    names = (implementation.name for implementation in operation_named(operation).implementations)
    return next((name for name in names if name in asked), None)


def speedups(results: Sequence[Result], baseline: str, elsewhere: Sequence[Result] = ()) -> dict[Case, Speedup]:
    """Return the speedup of every measured case that has a measured baseline.

    Args:
        baseline: an implementation (same dtype, shape and device; where it cannot run on that device,
            its result on another one) or a dtype (same implementation, shape and device).
        elsewhere: results measured apart from these, whose baseline counts where `results` have none; never paired.
    """
    measured = {result.case: result for result in results if result.measurement}
    anywhere = _without_device(results)
    apart = {} if baseline in DTYPES else _without_device(elsewhere)
    found: dict[Case, Speedup] = {}
    for case, result in measured.items():
        wanted = replace(case, dtype=baseline) if baseline in DTYPES else replace(case, implementation=baseline)
        nearest = measured.get(wanted) or (None if baseline in DTYPES else anywhere.get(replace(wanted, device="")))
        if nearest is not None:
            found[case] = speedup(result, nearest, name=_name(case, nearest.case, baseline))
        elif (other := apart.get(replace(wanted, device=""))) and result.measurement and other.measurement:
            found[case] = ratio(result.measurement, other.measurement, f"{baseline} on {other.case.device}")
    return found


def _without_device(results: Sequence[Result]) -> dict[Case, Result]:
    """Return the first measured result of each case, whatever the device."""
    measured = [result for result in results if result.measurement]
    return {replace(result.case, device=""): result for result in reversed(measured)}


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


def is_separable(result: Result, other: Result) -> bool:
    """Return whether the times of two measured results differ statistically, at 95 %.

    With too few samples for an interval: whether their samples do not overlap.
    """
    found = speedup(result, other)
    return not _overlap(result.measurement, other.measurement) if found.ci95 is None else found.distinct


def is_tie(result: Result, other: Result) -> bool:
    """Return whether two measured results cannot be separated, and their medians are within a factor of TIE_WITHIN."""
    this, that = result.measurement, other.measurement
    if this is None or that is None:
        return False
    near = max(this.median_s, that.median_s) <= TIE_WITHIN * min(this.median_s, that.median_s)
    return near and not is_separable(result, other)


def _overlap(this: Measurement | None, other: Measurement | None) -> bool:
    if this is None or other is None:
        return False
    return this.min_s <= max(other.samples_s) and other.min_s <= max(this.samples_s)


def _name(case: Case, other: Case, baseline: str) -> str:
    return baseline if case.device == other.device else f"{baseline} on {other.device}"
