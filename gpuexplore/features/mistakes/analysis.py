"""What two ways of measuring tell of each other: on which side of the right value the wrong one lies."""

from gpuexplore.analysis.verdict import Estimate, Verdict, Words, compare
from gpuexplore.features.mistakes.catalog.contract import Observation

WRONG = Words(below="too small", above="too large", question="whether it differs on this machine")


def difference(observation: Observation) -> Verdict | None:
    """Return whether the wrong value is too small or too large; None where their factor has no interval."""
    factor = observation.factor
    if factor is None or factor.ci95 is None:
        return None
    low, high = factor.ci95
    ends = min(low, factor.ratio), max(high, factor.ratio)
    return compare(Estimate(factor.ratio, *ends, "times", f"{observation.rounds} rounds in turns"), 1.0, words=WRONG)
