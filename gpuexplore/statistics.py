"""Order statistics of a few dozen noisy samples: the only place that turns samples into figures.

The interval of the median uses order statistics, so it assumes nothing about the distribution:
see B. Efron, or https://en.wikipedia.org/wiki/Median#Confidence_interval; also Le Boudec,
"Performance Evaluation of Computer and Communication Systems", theorem 2.1.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb, isfinite, sqrt

from gpuexplore.errors import InvalidInput

SMALLEST_SAMPLE_WITH_INTERVAL = 6  # two-sided 2 * 0.5**6 = 3.1 %: with five no 95 % interval exists


def check_samples(samples_s: Sequence[float]) -> None:
    """Refuse what cannot be times of calls.

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
    rank = _lower_rank(len(ordered))
    return ordered[rank], ordered[len(ordered) - 1 - rank]


@lru_cache(maxsize=4096)
def _lower_rank(count: int) -> int:
    """Return the largest 0-based rank r with P(Binomial(count, 1/2) <= r) <= 2.5 %."""
    if count > 1000:  # the normal approximation is within one rank here
        return int(count / 2 - 1.96 * sqrt(count) / 2) - 1
    tail, rank = 0, 0
    while True:
        tail += comb(count, rank)
        if tail > 0.025 * 2**count:
            return rank - 1
        rank += 1
