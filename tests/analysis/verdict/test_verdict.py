from dataclasses import replace

import pytest

from gpuexplore.analysis.verdict import Doubt, Estimate, Words, compare
from gpuexplore.core.errors import InvalidInput

FASTER = Words(below="slower", above="faster", question="which is faster")


def times(value, low=None, high=None, *doubts):
    return Estimate(value, low, high, "times", "a test", doubts)


@pytest.mark.parametrize(
    ("estimate", "bounds", "relation", "certainty"),
    [
        (times(51.3, 48.4, 53.9), (10,), "above", "almost certainly"),
        (times(1.2, 1.05, 1.4), (1,), "above", "very likely"),
        (times(0.5, 0.4, 0.6), (1,), "below", "almost certainly"),
        (times(1.2, 0.9, 1.4), (1,), None, None),
        (times(1.01, 0.95, 1.05), (1 / 1.1, 1.1), "within", "almost certainly"),
        (times(1.01, 0.95, 1.15), (1 / 1.1, 1.1), None, None),
        (times(2.0), (1,), None, None),
        (times(2.0, 2.0, 2.0), (2,), None, None),
        (times(2.0, 2.0, 2.0), (1,), "above", "almost certainly"),
        (times(0.0, -1.0, 1.0), (3,), "below", "almost certainly"),
        (None, (1,), None, None),
    ],
)
def test_a_relation_is_told_when_it_holds_over_the_whole_interval(estimate, bounds, relation, certainty):
    found = compare(estimate, *bounds)

    assert (found.relation, found.certainty) == (relation, certainty)


@pytest.mark.parametrize(
    ("estimate", "words", "statement"),
    [
        (times(2.1, 1.9, 2.4), FASTER, "2.10× (1.90× to 2.40×): almost certainly faster"),
        (times(2.1, 1.9, 2.4), Words(), "2.10× (1.90× to 2.40×): almost certainly above 1.00×"),
        (times(1.2, 0.9, 1.4), FASTER, "between 0.900× and 1.40×: unclear which is faster"),
        (times(1.2, 0.9, 1.4), Words(), "between 0.900× and 1.40×: unclear whether it is above 1.00×"),
        (times(1.2), FASTER, "about 1.20×: unclear which is faster"),
        (None, FASTER, "unclear which is faster: it was not measured"),
    ],
)
def test_a_statement_says_the_answer_or_what_is_known_instead(estimate, words, statement):
    assert compare(estimate, 1, words=words).statement == statement


@pytest.mark.parametrize(
    ("doubts", "decides"),
    [
        ((Doubt("samples", 0.2), Doubt("drifted", 0.1)), "larger budget"),
        ((Doubt("processes", 0.2), Doubt("samples", 0.1)), "fresh processes"),
        ((Doubt("contended", 0.2), Doubt("samples", 0.1)), None),
        ((), None),
    ],
)
def test_only_what_a_visitor_can_do_would_decide(doubts, decides):
    found = compare(times(1.2, 0.9, 1.4, *doubts), 1)

    assert found.would_decide is None if decides is None else decides in found.would_decide
    assert compare(times(1.2, 1.1, 1.4, *doubts), 1).would_decide is None


@pytest.mark.parametrize("ends", [(0.5, None), (1.5, 2.0), (0.1, 0.5)])
def test_an_interval_holds_its_value(ends):
    with pytest.raises(InvalidInput, match="interval"):
        replace(times(1.0, 0.5, 2.0), low=ends[0], high=ends[1])
