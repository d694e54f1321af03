"""Interleaved samples of a wrong and a right way of taking a figure, each as a person would follow it.

What drifts hits both alike, and the factor between them comes from pairs of one round, as speedups do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from gpuexplore.core.errors import Cancelled
from gpuexplore.core.statistics import median, median_interval, paired_ratio
from gpuexplore.features.mistakes.catalog.contract import Factor, Stage, WayReading
from gpuexplore.measure.sample.timing import MIN_SAMPLES, PRECISION

BUDGET_S = 1.5  # of rounds: a demonstration is watched
MAX_ROUNDS = 100
SEED = 20

Procedure = Callable[[], float]  # follows one way of measuring, and returns the figure that it gives


@dataclass(frozen=True, slots=True)
class Pairs:
    """Figures of the wrong way and of the right one; figures of one index come from one round."""

    wrong: tuple[float, ...]
    right: tuple[float, ...]

    @property
    def factor(self) -> Factor:
        """The median of the wrong ones over that of the right ones, with its interval round by round."""
        ratio, ends, _ = paired_ratio(self.wrong, self.right)
        return Factor(ratio, ends)

    def as_rates(self, work: float) -> "Pairs":
        """Return `work` over the figures, which are seconds."""
        return Pairs(tuple(work / figure for figure in self.wrong), tuple(work / figure for figure in self.right))


def interleave(wrong: Procedure, right: Procedure, stage: Stage) -> Pairs:
    """Return figures of both, one of each per round and in random order, until both medians are known within 1 %.

    Not before ten rounds, and not much longer than the budget.

    Raises:
        Cancelled: a stop was requested.
    """
    random, start = Random(SEED), stage.clock()
    wrongs: list[float] = []
    rights: list[float] = []
    while not (len(rights) >= MIN_SAMPLES and _is_enough(wrongs, rights, (stage.clock() - start) * 1e-9)):
        if stage.progress.cancelled():
            raise Cancelled("cancelled while a mistake was demonstrated")
        for procedure, figures in random.sample([(wrong, wrongs), (right, rights)], 2):
            figures.append(procedure())
    return Pairs(tuple(wrongs), tuple(rights))


def reading(figures: tuple[float, ...]) -> WayReading:
    """Return the median of figures that were sampled, with its interval."""
    return WayReading(median(figures), median_interval(figures))


def _is_enough(wrongs: list[float], rights: list[float], spent_s: float) -> bool:
    return spent_s >= BUDGET_S or len(rights) >= MAX_ROUNDS or all(_is_precise(figures) for figures in (wrongs, rights))


def _is_precise(figures: list[float]) -> bool:
    interval = median_interval(figures)
    return interval is not None and interval[1] - interval[0] <= 2 * PRECISION * median(figures)
