"""Which groups need more rounds: those that lack some, wide intervals, and pairs whose order is open."""

from math import inf

import pytest

from gpuexplore.measure.sample.timing import (
    ENOUGH_ROUNDS,
    SLOW_CALLS,
    Sampling,
    _half_width,
    _is_open,
    is_complete,
    need,
)
from tests.measure.fakes import FakeClock, FakeWork, candidate

STEADY = (1.0, 1.001, 0.999) * 4
WIDE = (1.0, 1.3, 0.8) * 4


def sampling(samples_s, *, rounds=ENOUGH_ROUNDS, slow=False):
    one = Sampling(candidate(FakeWork(FakeClock(), [1.0])), 1.0, first_call_s=1.0)
    one.samples_s, one.rounds = list(samples_s), rounds
    one.checked_call = (lambda: (1.0, 0)) if slow else None
    return one


def times(factor, samples_s=STEADY):
    return [factor * sample for sample in samples_s]


def test_what_is_steady_and_far_from_its_neighbours_needs_nothing():
    assert need([sampling(STEADY), sampling(times(2.0))]) == (0, 0.0)
    assert need([]) == (0, 0.0)


def test_rounds_that_are_lacking_come_first_however_steady():
    assert need([sampling(STEADY, rounds=1)])[0] == ENOUGH_ROUNDS - 1
    assert need([sampling(STEADY, rounds=1)]) > need([sampling(WIDE)])


def test_a_wide_interval_needs_rounds():
    assert need([sampling(WIDE)]) == (0, _half_width(sampling(WIDE)))
    assert _half_width(sampling([1.0])) == inf


@pytest.mark.parametrize(
    ("factor", "samples_s", "opened"),
    [(2.0, WIDE, False), (1.0, STEADY, False), (1.1, WIDE, False), (1.1, STEADY, False)],
)
def test_a_pair_is_closed_when_it_is_decided_or_more_rounds_cannot_decide_it(factor, samples_s, opened):
    """Samples of one round share what disturbs them, so ratios are narrow where times are not."""
    assert _is_open(sampling(samples_s), sampling(times(factor, samples_s))) == opened


def test_a_pair_is_open_while_its_ratios_scatter_around_one():
    one, other = sampling(WIDE), sampling(times(1.05, reversed(WIDE)))

    assert _is_open(one, other)
    assert need([one, other])[1] > _half_width(one)


def test_beside_others_intervals_need_not_be_narrower_than_processes_then_differ():
    scattered = tuple(1.0 + 0.05 * (number % 3 - 1) for number in range(12))
    quiet, beside = sampling(scattered), sampling(scattered)
    beside.lasted_s, beside.waited_s = 1.0, 0.3

    assert 0.03 < _half_width(quiet) < 0.09
    assert need([quiet])[1] > 0
    assert need([beside]) == (0, 0.0)


def test_a_slow_call_needs_no_more_than_its_few_calls_whatever_they_tell():
    done, begun = sampling((1.0, 1.5, 2.0), rounds=SLOW_CALLS, slow=True), sampling((1.0,), rounds=1, slow=True)

    assert (is_complete(done), is_complete(begun)) == (True, False)
    assert need([done]) == (0, 0.0)
    assert need([begun])[0] == SLOW_CALLS - 1
