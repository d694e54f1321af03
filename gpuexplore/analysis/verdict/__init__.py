"""Conclusions from quantities with intervals, in one place: everybody who concludes asks `compare`.

``compare(ratio_of(this, other), 1)`` says which of two is slower, ``compare(estimate, 0.25, 0.75)`` on which side of a
range a quantity lies. What casts doubt on a result widens the interval of its time (`time_of`); it never silences.
"""

from gpuexplore.analysis.verdict.estimate import Doubt, Estimate
from gpuexplore.analysis.verdict.times import rate_of, ratio_of, time_of
from gpuexplore.analysis.verdict.verdict import Relation, Verdict, Words, compare

__all__ = ["Doubt", "Estimate", "Relation", "Verdict", "Words", "compare", "rate_of", "ratio_of", "time_of"]
