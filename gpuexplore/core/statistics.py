"""Order statistics of a few dozen noisy samples; figures are computed from samples here alone.

The interval of the median uses order statistics (Le Boudec, "Performance Evaluation of Computer and Communication
Systems", theorem 2.1), interpolated between the two ranks whose coverages enclose 95 %: T. P. Hettmansperger and
S. J. Sheather, "Confidence intervals based on interpolated order statistics", Statistics & Probability Letters 4, 1986.
The ranks alone assume nothing about the distribution but cover up to 98 % of ten samples.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import comb, exp, hypot, isfinite, log, sqrt
from statistics import fmean, stdev

from gpuexplore.core.errors import InvalidInput

SMALLEST_SAMPLE_WITH_INTERVAL = 6  # two-sided 2 * 0.5**6 = 3.1 %: with five no 95 % interval exists


def check_samples(samples_s: Sequence[float]) -> None:
    """Raise for values that cannot be times of calls.

    Raises:
        InvalidInput: no sample at all, or one that is no positive number of seconds.
    """
    if not samples_s or any(not isfinite(sample_s) or sample_s <= 0 for sample_s in samples_s):
        raise InvalidInput.of("samples", samples_s[:3], "at least one, each a positive number of seconds")


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the quantile at `share` (0 to 1), linear between neighbours; samples must not be empty."""
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(samples: Sequence[float]) -> float:
    """Return the median of a non-empty sequence."""
    return quantile(samples, 0.5)


def median_interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the median, or None with fewer than six samples."""
    if len(samples) < SMALLEST_SAMPLE_WITH_INTERVAL:
        return None
    ordered = sorted(samples)
    rank, share = _lower_rank(len(ordered))
    low = ordered[rank]
    high = ordered[-1 - rank]
    return low + (ordered[rank + 1] - low) * share, high + (ordered[-2 - rank] - high) * share


def interval_of_few(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of what independent positive `values` scatter around; None for a single one.

    By order statistics from six on. Below, where no such interval exists, Student's t on their logarithms, widened to
    cover their median: that assumes that ratios scatter alike in both directions.
    """
    if len(values) < 2:
        return None
    if found := median_interval(values):
        return found
    logs = list(map(log, values))
    half = student_t(len(logs) - 1) * stdev(logs) / sqrt(len(logs))
    center = exp(fmean(logs))
    middle = median(values)
    return min(center * exp(-half), middle), max(center * exp(half), middle)


def paired_median(ratios: Sequence[float], of_medians: float, interval: tuple[float, float] | None) -> float | None:
    """Return the median of paired `ratios` where it disagrees with the ratio of the medians; None where it does not."""
    rounding = 1.01  # what lies outside the interval by less
    if interval is None or interval[0] / rounding <= of_medians <= interval[1] * rounding:
        return None
    return median(ratios)


def paired_ratios(
    these: Sequence[float], others: Sequence[float], per_round: tuple[int, int] = (1, 1)
) -> tuple[float, ...]:
    """Return the ratios of `these` to `others` of the same rounds, in their order.

    Args:
        these: positive values.
        others: positive values.
        per_round: how many of each were taken in a round. Where the numbers differ, each value of the smaller one is
            paired with the median of as many of the other as fall to it within the same round.
    """
    parts = 0 if per_round[0] == per_round[1] else min(per_round)
    pairs = zip(_parts(these, per_round[0], parts), _parts(others, per_round[1], parts), strict=False)
    return tuple(this / other for this, other in pairs)


def _parts(values: Sequence[float], per_round: int, parts: int) -> Sequence[float]:
    """Return `parts` medians of each whole round; all values where there are to be none."""
    if not parts or parts == per_round:
        return values
    rounds = [values[start : start + per_round] for start in range(0, len(values) - per_round + 1, per_round)]
    ends = [per_round * part // parts for part in range(parts + 1)]
    return [median(values_of_round[start:end]) for values_of_round in rounds for start, end in pairwise(ends)]


def paired_ratio(
    these: Sequence[float], others: Sequence[float], per_round: tuple[int, int] = (1, 1)
) -> tuple[float, tuple[float, float] | None, float | None]:
    """Return the median of `these` over that of `others` of the same rounds: the ratio of what a table shows.

    With it, its 95 % interval, that of the ratios round by round, around it; and their median where it disagrees.
    """
    value = median(these) / median(others)
    ratios = paired_ratios(these, others, per_round)
    found = median_interval(ratios)
    return value, found and (min(found[0], value), max(found[1], value)), paired_median(ratios, value, found)


def student_t(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    table = (
        *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
        *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    )
    return table[degrees - 1] if degrees <= len(table) else 1.96 + 2.5 / degrees  # within 0.2 % of it


def widened(interval: tuple[float, float], center: float, deviation: float) -> tuple[float, float]:
    """Return `interval` around `center` with a further independent uncertainty.

    Args:
        interval: two positive ends, around `center`.
        center: the estimate.
        deviation: half width of the other 95 % interval, in natural logarithms.
    """
    below = hypot(log(center / interval[0]), deviation)
    above = hypot(log(interval[1] / center), deviation)
    return center * exp(-below), center * exp(above)


@lru_cache(maxsize=4096)
def _lower_rank(count: int) -> tuple[int, float]:
    """Return the 0-based rank at which the interval of the median begins, and the share of the way to the next.

    The rank is the largest r with P(Binomial(count, 1/2) <= r) <= 2.5 %.
    """
    if count > 1000:  # the normal approximation is within one rank here
        return int(count / 2 - 1.96 * sqrt(count) / 2) - 1, 0.0
    tail = 0
    rank = 0
    while tail + comb(count, rank) <= 0.025 * 2**count:
        tail += comb(count, rank)
        rank += 1
    weight = (0.025 * 2**count - tail) / comb(count, rank)  # of the narrower of two intervals, by coverage
    return rank - 1, (count - rank) * weight / (rank + (count - 2 * rank) * weight)
