"""Order statistics against NumPy, and the interval of the median against chance itself."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.core.statistics import (
    SMALLEST_SAMPLE_WITH_INTERVAL,
    _lower_rank,
    interval_of_few,
    median,
    median_interval,
    paired_ratios,
    quantile,
    student_t,
    widened,
)

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200)


@given(SAMPLES, st.floats(0, 1))
def test_quantiles_are_those_of_numpy(samples, share):
    assert quantile(samples, share) == pytest.approx(float(np.quantile(samples, share)), rel=1e-9)


@given(SAMPLES)
def test_median_is_that_of_numpy_and_order_does_not_matter(samples):
    assert median(samples) == pytest.approx(float(np.median(samples)))
    assert median(samples) == median(samples[::-1])


def test_quantiles_of_few_samples():
    assert quantile([3.0], 0.2) == 3.0
    assert quantile([1.0, 2.0], 0.25) == 1.25
    assert (quantile([2.0, 1.0], 0.0), quantile([2.0, 1.0], 1.0)) == (1.0, 2.0)


@pytest.mark.parametrize("count", range(SMALLEST_SAMPLE_WITH_INTERVAL))
def test_five_samples_have_no_interval(count):
    assert median_interval([1.0] * count) is None


def test_six_samples_lie_nearly_all_within_their_interval():
    low, high = median_interval([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])

    assert 1.0 < low < 1.5
    assert low + high == 7.0


@pytest.mark.parametrize(("count", "lowest", "highest"), [(10, 2, 9), (20, 6, 15), (50, 18, 33), (100, 40, 61)])
def test_ranks_are_those_of_the_tables(count, lowest, highest):
    """Le Boudec, Performance Evaluation of Computer and Communication Systems, table A.1."""
    low, high = median_interval([float(one) for one in range(1, count + 1)])

    assert lowest <= low < lowest + 1
    assert highest - 1 < high <= highest


@pytest.mark.parametrize("count", [*range(6, 60), 100, 333, 1000])
def test_interval_lies_between_the_two_ranks_whose_coverages_enclose_95_percent(count):
    def outside(rank):
        return 2 * sum(comb(count, below) for below in range(rank + 1)) / 2**count

    rank, share = _lower_rank(count)

    assert outside(rank) <= 0.05 < outside(rank + 1)
    assert 0 <= share < 1


@pytest.mark.parametrize("count", [6, 7, 10, 15, 40])
@pytest.mark.parametrize("law", ["normal", "exponential", "standard_cauchy"])
def test_interval_covers_the_median_in_95_of_100(count, law):
    generator = np.random.default_rng(count)
    truth = float(np.log(2)) if law == "exponential" else 0.0
    intervals = [median_interval(list(getattr(generator, law)(size=count))) for _ in range(4000)]

    covered = sum(low <= truth <= high for low, high in intervals) / len(intervals)

    assert covered == pytest.approx(0.95, abs=0.013)  # three standard errors and what interpolation costs


def test_approximation_for_many_samples_joins_the_exact_ranks():
    (exact, _), (approximate, share) = _lower_rank(1000), _lower_rank(1001)
    assert abs(approximate - exact) <= 1
    assert share == 0
    assert _lower_rank(10_000)[0] == pytest.approx(5000 - 98, abs=2)


@given(st.lists(st.floats(1e-9, 1e3), min_size=6, max_size=100))
def test_interval_holds_the_median_and_lies_within_the_samples(samples):
    low, high = median_interval(samples)

    assert min(samples) <= low <= median(samples) <= high <= max(samples)


@pytest.mark.parametrize(("degrees", "expected"), [(1, 12.706), (2, 4.303), (20, 2.086), (30, 2.042), (120, 1.980)])
def test_students_t_is_that_of_the_tables(degrees, expected):
    assert student_t(degrees) == pytest.approx(expected, rel=2e-3)


def test_one_value_has_no_interval_and_six_have_their_order_statistics():
    assert interval_of_few([1.0]) is None
    assert interval_of_few([6.0, 1.0, 5.0, 2.0, 4.0, 3.0]) == median_interval([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_intervals_of_few_values_cover_what_they_scatter_around(count):
    generator = np.random.default_rng(count)
    intervals = [interval_of_few(list(np.exp(generator.normal(0, 0.1, count)))) for _ in range(2000)]

    covered = sum(low <= 1 <= high for low, high in intervals) / len(intervals)

    assert 0.935 < covered < 0.985


def test_values_of_turns_are_paired_within_their_turn():
    fast = [1.0, 1.0, 1.0, 9.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0]  # four a turn, each turn twice as slow
    slow = [10.0, 20.0, 40.0]

    assert paired_ratios(slow, fast, (1, 4)) == (10, 10, 10)
    assert paired_ratios(fast, slow, (4, 1)) == (0.1, 0.1, 0.1)
    assert paired_ratios([10.0, 50.0, 20.0, 20.0], fast, (2, 4)) == (10, 10, 10, 10)
    assert paired_ratios(slow, fast[:9], (1, 4)) == (10, 10)  # a turn that was cut off has none


@pytest.mark.parametrize("per_round", [1, 5])
def test_as_many_values_of_each_turn_are_paired_one_by_one(per_round):
    assert paired_ratios([2.0, 4.0, 6.0], [1.0, 1.0], (per_round, per_round)) == (2, 4)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 5))
def test_each_turn_gives_as_many_ratios_as_the_one_with_fewer_values_has(these, others, turns):
    ratios = paired_ratios([3.0] * these * turns, [1.0] * others * turns, (these, others))

    assert ratios == (3,) * (min(these, others) * turns)


def test_a_second_uncertainty_widens_an_interval_as_independent_ones_add():
    low, high = widened((np.exp(-0.03), np.exp(0.03)), 1.0, 0.04)

    assert (low, high) == pytest.approx((np.exp(-0.05), np.exp(0.05)))
    assert widened((2.0, 2.0), 2.0, 0.0) == (2.0, 2.0)
