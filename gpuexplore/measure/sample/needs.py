"""The need for further rounds: medians that are not known well enough, and pairs whose order is open.

Cases of one group are compared with each other, by ratios round by round. A ratio is decided when the two ends of its
interval are on one side of 1, the spread between processes included; or when more rounds cannot decide it.
"""

from collections.abc import Sequence
from itertools import combinations
from math import inf, log

from gpuexplore.core.statistics import interval_of_few, median, paired_ratios
from gpuexplore.measure.conditions.contention import WAITED_ABOVE
from gpuexplore.measure.sample.timing import Sampling

ENOUGH_ROUNDS = 3  # that every case gets, before any gets more
SLOW_CALLS = 3  # that are timed, after the first one
NARROW = 0.03  # half width of the interval over the median: far less than the spread between processes
BETWEEN_PROCESS_LOG_SD = 0.04  # spread of a ratio from process to process, as a natural logarithm
MIN_USEFUL_HALF_WIDTH = 0.5  # of that: more rounds of a pair whose interval is narrower decide nothing
WAITED_VARIATION = 3.0  # factor on the spread of cases that waited for cores (benchmarks/README.md)
NO_NEED = (0, 0.0)


def need(samplings: Sequence[Sampling]) -> tuple[int, float]:
    """Return the scheduling priority of a group: first the rounds that it lacks, then its widest interval.

    Equal to NO_NEED when it needs none.
    """
    lacking = max((_lacking(sampling) for sampling in samplings), default=0)
    wide = [
        half for each in samplings if (half := half_width(each)) > NARROW * _variation(each) and not is_complete(each)
    ]
    pairs = [_pair_half_width(*pair) for pair in combinations(samplings, 2) if is_open(*pair)]
    return lacking, max([*wide, *pairs], default=0.0)


def half_width(sampling: Sampling) -> float:
    """Return half of the 95 % interval of the median over the median; infinite where there is none."""
    interval = interval_of_few(sampling.samples_s)
    return inf if interval is None else (interval[1] - interval[0]) / 2 / median(sampling.samples_s)


def is_open(this: Sampling, other: Sampling) -> bool:
    """Return whether more rounds may decide which of two cases of a group is faster."""
    if is_complete(this) or is_complete(other):
        return False
    interval = _interval_of_ratios(this, other)
    if interval is None:
        return True
    low, high = map(log, interval)
    log_sd = BETWEEN_PROCESS_LOG_SD * max(_variation(this), _variation(other))
    if low > log_sd or high < -log_sd:
        return False
    return (high - low) / 2 > MIN_USEFUL_HALF_WIDTH * log_sd


def _variation(sampling: Sampling) -> float:
    """Return the factor by which its median varies more from process to process than on a quiet machine."""
    return WAITED_VARIATION if (sampling.waited_share or 0.0) > WAITED_ABOVE else 1.0


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
    """Return whether it gets no more rounds, whatever its intervals."""
    return sampling.checked_call is not None and sampling.rounds >= SLOW_CALLS
