"""What is simulated as honest is honest, and the rate follows from the tail."""

import numpy as np
import pytest

from benchmarks.false_alarms import ORDERS, cut_off, in_pairs, one_by_one, power, rate, trials_of
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.operations import OPERATIONS
from tests.unchanged import PACKAGE, heavy


@pytest.mark.parametrize("add", ORDERS.values(), ids=list(ORDERS))
def test_each_order_adds_all_terms(add):
    terms = np.random.default_rng(1).standard_normal((3, 1001)).astype(np.float32)

    assert add(terms).dtype == np.float32
    assert add(terms) == pytest.approx(terms.astype(float).sum(axis=1), rel=0, abs=1e-4)


def test_orders_round_as_they_say():
    terms = np.array([1.0, *[2.0**-24] * 31], np.float32)

    assert one_by_one(terms) == 1
    assert in_pairs(terms) > 1
    assert cut_off(terms) == np.float32(1 + 15 * 2.0**-23)  # 7.5 units in the last place are cut to 7, then 8 added


def test_rate_falls_with_the_distance_of_the_tail_and_counts_what_is_beyond():
    shares = np.abs(np.random.default_rng(1).standard_normal(10_000))

    near, far = rate(list(shares / 4)), rate(list(shares / 8))

    assert near == pytest.approx(6.3e-5, rel=1)  # of a Gaussian beyond four sigma
    assert far < 1e-12
    assert rate([0.5, 2.0]) == 0.5


@heavy(f"{PACKAGE}.*")
@pytest.mark.parametrize("dtype", ["fp32", "tf32", "bf16"])
def test_honest_outputs_of_a_small_product_are_well_within(dtype):
    found = list(trials_of(OPERATIONS["matmul"], DTYPES[dtype], Shape.of(m=9, k=30, n=7), data="normal", seed=1))

    assert {"one by one", "in pairs"} <= {trial.made_by for trial in found}
    assert all(0 < trial.share < 0.6 and trial.elements == 63 for trial in found)


def test_smallest_error_that_is_surely_seen_is_a_few_roundings():
    median, most = power("vector_add", Shape.of(n=10_000), DTYPES["bf16"])

    assert 2**-8 < median < 2**-7 < most < 2**-4
