"""Sizes of terms: what is left where they cancel says nothing of them."""

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import of_gradients, of_products, of_rows, of_sums, own_size
from gpuexplore.operations.training import flat


def test_sizes_of_rows_are_their_root_mean_squares():
    assert of_rows(np.array([[3.0, -3.0], [0.0, 8.0]])).ravel() == pytest.approx([3, np.sqrt(32)])
    assert own_size(np.array([1.0])) == 0


def test_terms_of_a_sum_count_where_it_is_zero():
    assert of_sums(np.array([0.0]), np.array([[3.0, -3.0]])) == pytest.approx([np.sqrt(18)])


def test_terms_of_products_have_the_size_of_their_factors():
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((20, 500)), generator.standard_normal((500, 30))
    exact = np.sqrt(np.square(a) @ np.square(b))

    assert of_products(a @ b, a, b) == pytest.approx(exact, rel=0.3)
    assert of_products(a @ b[:, 0], a, b[:, 0]) == pytest.approx(exact[:, 0], rel=0.3)


def test_terms_of_a_convolution_are_those_of_a_patch_and_of_the_usual_patch():
    x, weights = np.random.default_rng(1).standard_normal((2, 64, 20, 20)), np.ones((3, 64, 3, 3))
    scale = OPERATIONS["conv2d"].scale(OPERATIONS["conv2d"].reference(x, weights), x, weights)
    inside = np.sqrt(2 * 9 * 64)

    assert scale.shape == (2, 3, 20, 20)
    assert scale[:, :, 1:-1, 1:-1] == pytest.approx(np.full((2, 3, 18, 18), inside), rel=0.15)
    assert scale[0, 0, 0, 0] == pytest.approx(inside * np.sqrt((4 / 9 + 1) / 2), rel=0.15)


def test_terms_of_an_update_and_of_a_triad_add_up_without_cancelling():
    triad, optimizer = OPERATIONS["triad"], OPERATIONS["optimizer_step"]
    a, b = np.array([3.0]), np.array([-1.0])
    gradients, old = np.array([8.0]), np.array([[1.0], [-2.0]])

    assert triad.reference(a, b) == [0]
    assert triad.scale(a + b, a, b) == [3]
    momentum = 0.875 * 2 + 8
    assert optimizer.scale(old, gradients, old).ravel() == pytest.approx([1 + 0.125 * momentum, momentum])


def test_terms_of_a_norm_are_weight_and_bias_times_how_large_the_row_is_beside_its_spread():
    operation = OPERATIONS["layer_norm"]
    x, weight, bias = np.array([[1.0, -1.0], [101.0, 99.0]]), np.array([2.0, 1.0]), np.array([0.0, -3.0])

    scale = operation.scale(operation.reference(x, weight, bias), x, weight, bias)

    assert scale == pytest.approx(np.array([[2, 4], [200, 103]]), rel=1e-3)


def test_an_unused_unit_has_the_size_of_its_gradient():
    found = of_gradients(flat(1.0, [np.array([[0.0, 0.0], [3.0, 4.0]])]), (slice(0, 1), slice(1, 5)), [(1,), (2, 2)])

    assert found == pytest.approx([1, 2.5, np.sqrt(8), np.sqrt(12.5), np.sqrt(12.5)])


def test_gradients_of_samples_that_cancel_have_the_size_of_their_terms():
    operation = OPERATIONS["mlp_step"]
    batch, targets = np.array([[1.0], [1.0]]), np.eye(2)
    inputs = (batch, targets, np.zeros((1, 2)), np.zeros(2))
    expected = operation.reference(*inputs)

    assert expected[1:].tolist() == [0] * 4  # the samples' errors are (-1/4, 1/4) and (1/4, -1/4)
    assert operation.scale(expected, *inputs)[0] == 1
    assert operation.scale(expected, *inputs)[1:] == pytest.approx([np.sqrt(0.5)] * 4)


@pytest.mark.parametrize("seed", [95, 144])  # where 100 samples' shares of the last bias cancel to a hundredth
def test_gradients_of_two_classes_have_the_size_of_what_cancels_over_many_samples(seed):
    operation = OPERATIONS["mlp_step"]
    shape = Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2)
    inputs = [each.astype(np.float64) for each in make_inputs(operation, shape, DTYPES["fp32"], "normal", seed=seed)]
    expected = operation.reference(*inputs)

    scale = operation.scale(expected, *inputs)

    of_last_bias = operation.quantities(inputs)[-1]
    assert np.abs(expected[of_last_bias]).max() < 0.003
    assert (scale[of_last_bias] > 0.3).all()
    assert (scale[of_last_bias] < 1).all()
