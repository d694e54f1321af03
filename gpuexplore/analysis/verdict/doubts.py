"""How far a flag widens the interval of a time: by what it is evidence of, as far as it says how much.

A time that nothing disturbed is known to what its samples and processes vary by; each flag adds an independent
uncertainty. One whose size nobody wrote down adds what was found to be enough: over 192 results in eight processes of a
shared machine, the intervals of flagged results widened by 30 % held the median of all in 92 %.
"""

from collections.abc import Callable, Mapping, Sequence
from math import hypot, log, log1p
from types import MappingProxyType

from gpuexplore.analysis.verdict.estimate import Doubt
from gpuexplore.model import Flag, FlagName

UNSIZED = log(1.3)
LARGEST = log(3.0)
ALONE = log(2.0)  # waits that fill most of the rounds hit each library in its own way, sampled in turns or not
LEFT_IN_A_RATIO = 0.25  # of what hit both, sampled in turns: ratios vary by 4 % where times do by 15

# from the size of a flag to the half width of what it adds, in natural logarithms
WIDENS: Mapping[FlagName, Callable[[float], float]] = MappingProxyType(
    {
        "contended": log1p,  # share of the CPU that others had: twice as long beside one that takes all of it
        "drifted": log1p,  # by how much longer rounds on slow cores take, times their share
        "throttled": log1p,  # by how much longer at this clock than at the full one
        "noisy": lambda share: log1p(share / 2),  # of the interquartile range: half of it on each side
    }
)


def doubts_of(flags: Sequence[Flag]) -> tuple[Doubt, ...]:
    """Return what flags add to the uncertainty of a time; those that say nothing about it are left out."""
    return tuple(Doubt(flag.name, _deviation(flag)) for flag in flags if flag.name in WIDENS)


def doubts_of_both(these: Sequence[Flag], others: Sequence[Flag]) -> tuple[Doubt, ...]:
    """Return what flags add to the uncertainty of a ratio of two results that were sampled in turns.

    What hit both alike hardly shows in it, what hit one alone does. Noise shows in the ratios round by round, which its
    interval is made of already.
    """
    this, other = ({doubt.name: doubt.deviation for doubt in doubts_of(flags)} for flags in (these, others))
    found = []
    for name in dict.fromkeys((*this, *other)):
        less, more = sorted((this.get(name, 0.0), other.get(name, 0.0)))
        if name == "contended" and more > ALONE:
            found.append(Doubt(name, hypot(more, less)))
        elif name == "contended":
            found.append(Doubt(name, more - less + LEFT_IN_A_RATIO * less))
        else:
            found.append(Doubt(name, more * (LEFT_IN_A_RATIO if less or name == "noisy" else 1.0)))
    return tuple(found)


def _deviation(flag: Flag) -> float:
    return UNSIZED if flag.size is None else min(WIDENS[flag.name](max(flag.size, 0.0)), LARGEST)
