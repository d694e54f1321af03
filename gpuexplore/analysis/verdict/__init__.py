"""Conclusions from quantities with intervals, all of them by `compare`.

``compare(ratio_of(this, other), 1)`` says which of two is slower, ``compare(estimate, 0.25, 0.75)`` on which side of a
range a quantity lies. What casts doubt on a result widens the interval of its time (`time_of`); it never silences.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isinf, log
from typing import Literal

from gpuexplore.analysis.verdict.times import (
    PROCESSES,
    SAMPLES,
    Doubt,
    Estimate,
    doubts_of,
    doubts_of_both,
    quotient,
    rate_of,
    ratio_of,
    ratios_by_round,
    time_of,
)

__all__ = [
    "PROCESSES",
    "SAMPLES",
    "Doubt",
    "Estimate",
    "Relation",
    "Verdict",
    "Words",
    "compare",
    "doubts_of",
    "doubts_of_both",
    "quotient",
    "rate_of",
    "ratio_of",
    "ratios_by_round",
    "time_of",
]

# The one function that concludes: on which side of a bound or a range a quantity lies, or that it is inconclusive.


Relation = Literal["below", "within", "above"]
Certainty = Literal["almost certainly", "very likely"]
REMEDIES: Mapping[str, str] = {  # what a visitor can do, by what makes the interval wide
    SAMPLES: "more samples would decide it: use a larger budget",
    PROCESSES: "more fresh processes would decide it: use more",
}


@dataclass(frozen=True, slots=True)
class Words:
    """The wording of a verdict's answers; None is the default wording, by the bounds.

    Attributes:
        below, within, above: what follows ``almost certainly``, e.g. ``slower``.
        question: what is inconclusive, e.g. ``which is faster``.
    """

    below: str | None = None
    within: str | None = None
    above: str | None = None
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion from a quantity and what it is compared with.

    Attributes:
        relation: true over the whole interval; None: inconclusive.
        statement: the answer with its certainty, or what is known instead, in words without a full stop.
        certainty: of the relation; None where there is none.
        would_decide: what a visitor can do to have it decided; None where nothing helps, or it is.
    """

    relation: Relation | None
    statement: str
    certainty: Certainty | None = None
    would_decide: str | None = None


def compare(estimate: Estimate | None, low: float, high: float | None = None, words: Words = Words()) -> Verdict:
    """Return whether a quantity is below `low`, above `high`, or between both; that is where its whole interval lies.

    Args:
        estimate: None is unknown.
        low: the bound, or the lower end of a range.
        high: the upper end; None: there is one bound alone, and nothing lies within. A range may be open: with an end
            that is infinite, which `words` have to name.
        words: how the answers are worded.
    """
    if estimate is None:
        return Verdict(None, f"unclear {words.question or 'where it lies'}: it was not measured")
    bounds = (low, low if high is None else high)
    relation = _relation(estimate.interval, bounds)
    if relation is None:
        question = words.question or _question(estimate, bounds)
        known = f"between {' and '.join(map(estimate.words, estimate.interval))}" if estimate.interval else estimate
        widest = estimate.widest_doubt
        helps = None if widest is None or estimate.value in bounds else REMEDIES.get(widest.name)
        return Verdict(None, f"{known}: unclear {question}", None, helps)
    far = 1.5  # half intervals from the nearest bound: three standard errors, 99.9 %
    margin = min(_half_intervals(estimate, bound) for bound in bounds)
    certainty: Certainty = "almost certainly" if margin >= far else "very likely"
    answer = getattr(words, relation) or _answer(relation, estimate, bounds)
    return Verdict(relation, f"{estimate}: {certainty} {answer}", certainty)


def _relation(interval: tuple[float, float] | None, bounds: tuple[float, float]) -> Relation | None:
    if interval is None:
        return None
    if interval[1] < bounds[0]:
        return "below"
    if interval[0] > bounds[1]:
        return "above"
    return "within" if bounds[0] < bounds[1] and bounds[0] <= interval[0] and interval[1] <= bounds[1] else None


def _half_intervals(estimate: Estimate, bound: float) -> float:
    if isinf(bound):
        return inf
    end = (estimate.low if bound < estimate.value else estimate.high) or 0.0
    if min(bound, end, estimate.value) > 0:  # uncertainties of times and ratios are factors
        away = abs(log(estimate.value / bound))
        half = abs(log(estimate.value / end))
    else:
        away = abs(estimate.value - bound)
        half = abs(estimate.value - end)
    return away / half if half else inf


def _answer(relation: Relation, estimate: Estimate, bounds: tuple[float, float]) -> str:
    low, high = map(estimate.words, bounds)
    return f"between {low} and {high}" if relation == "within" else f"{relation} {low if relation == 'below' else high}"


def _question(estimate: Estimate, bounds: tuple[float, float]) -> str:
    low, high = map(estimate.words, bounds)
    return f"whether it is above {low}" if low == high else f"whether it is between {low} and {high}"
