"""Wrong and right take turns, until both are known or the time is over."""

import pytest

from gpuexplore.core.errors import Cancelled
from gpuexplore.features.mistakes.catalog.subject import BUDGET_S, MAX_ROUNDS, _Pairs, interleave
from tests.features.mistakes.catalog.made import stage
from tests.measure.fakes import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


def figures(clock, called, name, values, seconds=1e-3):
    """Return a procedure that notes its name, lasts `seconds` and gives the next of `values` round and round."""

    def take():
        called.append(name)
        clock.spend(seconds)
        return values[called.count(name) % len(values)]

    return take


def test_each_round_has_one_of_each_in_either_order(clock):
    called = []

    pairs = interleave(figures(clock, called, "wrong", [2.0]), figures(clock, called, "right", [1.0]), stage(clock))

    rounds = [tuple(called[place : place + 2]) for place in range(0, len(called), 2)]
    assert set(rounds) == {("wrong", "right"), ("right", "wrong")}
    assert len(rounds) == len(pairs.wrong) == len(pairs.right) == 10


def test_scattered_figures_are_taken_until_the_budget_is_spent_and_not_endlessly_where_the_clock_stands(clock):
    def both(seconds):
        scattered = figures(clock, [], "wrong", [1.0, 2.0, 3.0, 4.0], seconds)
        return interleave(scattered, figures(clock, [], "right", [1.0], seconds), stage(clock))

    assert len(both(0.0).right) <= MAX_ROUNDS
    before_s = clock.now_ns * 1e-9
    both(0.05)
    assert clock.now_ns * 1e-9 - before_s == pytest.approx(BUDGET_S, abs=0.11)


def test_turns_end_when_somebody_cancels(clock):
    with pytest.raises(Cancelled):
        interleave(lambda: 1.0, lambda: 1.0, stage(clock, cancelled=lambda: True))


def test_the_factor_is_that_of_the_pairs_and_rates_turn_it_round():
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    pairs = _Pairs(tuple(3 * figure for figure in drift), tuple(drift))

    assert (pairs.factor.ratio, pairs.factor.ci95) == (3.0, (3.0, 3.0))

    rates = _Pairs((1.0,) * 6, (2.0,) * 6).as_rates(10.0)

    assert rates == _Pairs((10.0,) * 6, (5.0,) * 6)
    assert rates.factor.ratio == 2.0
