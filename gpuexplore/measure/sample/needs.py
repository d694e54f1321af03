"""The need for further rounds: medians that are not known well enough, and pairs whose order is open.

Cases of one group are compared with each other, by ratios round by round. A ratio is decided when the two ends of its
interval are on one side of 1, with what processes differ by included; or when more rounds cannot decide it.
"""

from collections.abc import Sequence
from itertools import combinations
from math import inf, log

from gpuexplore.core.statistics import interval_of_few, median, paired_ratios
from gpuexplore.measure.conditions.contention import WAITED_ABOVE
from gpuexplore.measure.sample.timing import Sampling

ENOUGH_ROUNDS = 3  # that every case gets, before any gets more
SLOW_CALLS = 3  # that are timed, after the first one
NARROW = 0.03  # half width of the interval over the median: far less than processes differ by
OF_RATIOS = 0.04  # natural logarithm: so far a ratio differs from process to process
HOPELESS = 0.5  # of that: an interval which is narrower by itself gains nothing by more rounds
VARIES_MORE = 3.0  # times as far do medians and ratios of cases differ that waited for cores (benchmarks/README.md)


def need(samplings: Sequence[Sampling]) -> tuple[int, float]:
    """Return how much a group needs rounds: first those that it lacks, then its widest interval.

    Equal to (0, 0.0) when it needs none.
    """
    lacking = max((_lacking(sampling) for sampling in samplings), default=0)
    wide = [half for each in samplings if (half := half_width(each)) > NARROW * _varies(each) and not is_complete(each)]
    pairs = [_pair_half_width(*pair) for pair in combinations(samplings, 2) if is_open(*pair)]
    return lacking, max([*wide, *pairs], default=0.0)


def half_width(sampling: Sampling) -> float:
    """Return half of the 95 % interval of the median over the median; infinite where there is none."""
    interval = interval_of_few(sampling.samples_s)
    return inf if interval is None else (interval[1] - interval[0]) / 2 / median(sampling.samples_s)


def is_open(this: Sampling, other: Sampling) -> bool:
    """Return whether more rounds may tell which of two cases of a group is faster."""
    if is_complete(this) or is_complete(other):
        return False
    interval = _interval_of_ratios(this, other)
    if interval is None:
        return True
    low, high, of_ratios = log(interval[0]), log(interval[1]), OF_RATIOS * max(_varies(this), _varies(other))
    if low > of_ratios or high < -of_ratios:
        return False
    return (high - low) / 2 > HOPELESS * of_ratios


def _varies(sampling: Sampling) -> float:
    """Return how many times as much its median varies from process to process as on a quiet machine."""
    return VARIES_MORE if (sampling.waited_share or 0.0) > WAITED_ABOVE else 1.0


def _pair_half_width(this: Sampling, other: Sampling) -> float:
    interval = _interval_of_ratios(this, other)
    return inf if interval is None else log(interval[1] / interval[0]) / 2


def _interval_of_ratios(this: Sampling, other: Sampling) -> tuple[float, float] | None:
    per_round = other.samples_per_round, this.samples_per_round
    return interval_of_few(paired_ratios(other.samples_s, this.samples_s, per_round))


def _lacking(sampling: Sampling) -> int:
    wanted = SLOW_CALLS if sampling.checked_call else ENOUGH_ROUNDS
    return max(0, wanted - sampling.rounds)


def is_complete(sampling: Sampling) -> bool:
    """Return whether it gets no more rounds, whatever they would tell."""
    return sampling.checked_call is not None and sampling.rounds >= SLOW_CALLS
