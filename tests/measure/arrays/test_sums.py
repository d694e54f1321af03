"""Sums with random signs: those of the output are those of the product with the summed input."""

import numpy as np
import pytest

from gpuexplore.measure.arrays.large import TOGETHER, _folded, sums_of
from gpuexplore.operations import OPERATIONS

MATMUL, CONV2D = OPERATIONS["matmul"], OPERATIONS["conv2d"]


def test_neighbours_are_added_in_groups_of_which_the_last_may_be_short():
    values = np.arange(1.0, 71.0)

    assert _folded(values, np.ones(70), 0).tolist() == [sum(range(1, 33)), sum(range(33, 65)), sum(range(65, 71))]


@pytest.mark.parametrize(
    ("operation", "shapes"),
    [
        (MATMUL, ((5, 40), (40, 70))),
        (OPERATIONS["batched_matmul"], ((2, 3, 5, 40), (2, 3, 40, 33))),
        (OPERATIONS["batched_matmul"], ((2, 3, 5, 40), (40, 33))),
        (CONV2D, ((2, 3, 9, 8), (65, 3, 3, 3))),
    ],
)
def test_sums_of_the_output_are_products_with_the_summed_input(operation, shapes):
    generator = np.random.default_rng(1)
    inputs = tuple(generator.standard_normal(shape) for shape in shapes)
    out, sums = operation.reference(*inputs), sums_of(operation, inputs, seed=2)

    np.testing.assert_allclose(sums.of(out), sums.expected, atol=1e-12)
    assert sums.expected.size < 2 * out.size / TOGETHER + sums.expected.size // 2
    assert sums.scale.shape == sums.expected.shape


def test_signs_follow_the_seed_and_are_both():
    inputs = (np.ones((2, 2)), np.ones((2, 100)))
    first, again, other = (sums_of(MATMUL, inputs, seed).signs for seed in (1, 1, 2))

    assert set(first) == {-1.0, 1.0}
    assert (first == again).all()
    assert (first != other).any()


def test_output_that_is_not_linear_has_no_sums():
    assert sums_of(OPERATIONS["attention"], (np.ones((1, 1, 2, 2)),) * 3, 1) is None
