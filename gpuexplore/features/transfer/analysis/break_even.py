"""From which size a GPU beats this CPU although the data have to be moved, and how many uses of them pay for moving.

Both with the interval that follows from the intervals of the times: the best case for the GPU takes its times and the
transfers at their low end and the CPU's at its high end, the worst case the other way round.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, log

from gpuexplore.analysis.verdict import Estimate, Verdict, Words, compare
from gpuexplore.analysis.verdict.times import quotient
from gpuexplore.features.transfer.analysis.comparison import SizePoint
from gpuexplore.features.transfer.analysis.span import TimeSpan

End = Callable[[TimeSpan], float]
MOST_USES = 1e9  # more is never
LIKELY: tuple[End, End] = (lambda span: span.time_s, lambda span: span.time_s)
BEST: tuple[End, End] = (lambda span: span.high_s, lambda span: span.low_s)  # of the CPU, of the GPU and the transfers
WORST: tuple[End, End] = (lambda span: span.low_s, lambda span: span.high_s)


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A size or a number of uses from which on the GPU wins.

    Attributes:
        value: the likely one; None: it never pays, up to the largest size or for any number of uses.
        low: in the best case for the GPU; None: not even then.
        high: in the worst case; None: then it never pays.
    """

    value: int | None
    low: int | None
    high: int | None


def break_even_size(points: Sequence[SizePoint]) -> BreakEven | None:
    """Return the size from which on one use on the GPU, transfers included, takes no longer than on this CPU.

    From there on the GPU has to win at every larger size; between two sizes the times are straight on log scales. None
    where the times of one of the two are unknown at every size.
    """
    if all(point.cpu is None or point.gpu is None for point in points):
        return None
    value, low, high = (_first_size(points, ends) for ends in (LIKELY, BEST, WORST))
    return BreakEven(value, low, high)


def uses_that_pay(point: SizePoint) -> BreakEven | None:
    """Return how many uses of data that are moved once, and whose result comes back once, pay for moving them.

    None where one of the times is unknown.
    """
    if point.cpu is None or point.kernel is None or point.move is None:
        return None
    value, low, high = (_uses(point, ends) for ends in (LIKELY, BEST, WORST))
    return BreakEven(value, low, high)


def which_is_faster(point: SizePoint, gpu: str) -> Verdict:
    """Return whether one use on `gpu`, transfers included, is faster than on this CPU."""
    words = Words(f"faster on this CPU than on {gpu}", None, f"faster on {gpu} than on this CPU", "which is faster")
    ratio = quotient(_estimate(point.cpu), _estimate(point.gpu))
    return compare(ratio, 1.0, words=words)


def _estimate(span: TimeSpan | None) -> Estimate | None:
    return Estimate(span.time_s, span.low_s, span.high_s, "s", span.origin) if span else None


def _first_size(points: Sequence[SizePoint], ends: tuple[End, End]) -> int | None:
    leads = [(point.size, _lead(point, ends)) for point in points]
    known = [(size, lead) for size, lead in leads if lead is not None]
    if not known or known[-1][1] < 0:
        return None
    for (size, lead), (next_size, next_lead) in reversed(list(pairwise(known))):
        if lead < 0:
            share = -lead / (next_lead - lead)
            return ceil(exp((1 - share) * log(size) + share * log(next_size)))
    return known[0][0]


def _lead(point: SizePoint, ends: tuple[End, End]) -> float | None:
    """Return the logarithm of how many times as long the CPU takes; None where a time is unknown."""
    if point.cpu is None or point.gpu is None:
        return None
    of_cpu, of_gpu = ends
    return log(of_cpu(point.cpu) / of_gpu(point.gpu))


def _uses(point: SizePoint, ends: tuple[End, End]) -> int | None:
    if point.cpu is None or point.kernel is None or point.move is None:
        return None
    of_cpu, of_gpu = ends
    gain_s = of_cpu(point.cpu) - of_gpu(point.kernel)
    if gain_s <= 0 or of_gpu(point.move) / gain_s > MOST_USES:
        return None
    return max(1, ceil(of_gpu(point.move) / gain_s))
