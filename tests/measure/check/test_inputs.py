"""What is computed on: rounded before anybody sees it, the same in every run."""

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS

MATMUL = OPERATIONS["matmul"]
SHAPE = Shape.of(m=20, k=30, n=40)
EACH_DTYPE = pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=list(DTYPES))


@EACH_DTYPE
def test_inputs_have_the_shapes_and_the_storage_of_the_case(dtype):
    a, b = make_inputs(MATMUL, SHAPE, dtype, "normal")

    assert (a.shape, b.shape) == ((20, 30), (30, 40))
    assert a.dtype == b.dtype == dtype.storage


@EACH_DTYPE
def test_inputs_are_numbers_of_the_format_so_that_rounding_again_changes_nothing(dtype):
    for array in make_inputs(MATMUL, SHAPE, dtype, "normal"):
        np.testing.assert_array_equal(dtype.round(dtype.widen(array)), array)


@EACH_DTYPE
@pytest.mark.parametrize(("data", "value"), [("zeros", 0.0), ("ones", 1.0)])
def test_zeros_and_ones_are_what_they_say(dtype, data, value):
    for array in make_inputs(MATMUL, SHAPE, dtype, data):
        assert (dtype.widen(array) == value).all()


def test_normal_numbers_look_normal_and_the_inputs_differ():
    a, b = make_inputs(MATMUL, Shape.of(m=200, k=200, n=200), DTYPES["fp64"], "normal")

    assert abs(a.mean()) < 0.03
    assert a.std() == pytest.approx(1.0, abs=0.03)
    assert (a != b).all()


def test_same_shape_holds_the_same_numbers_every_time():
    first, second = (make_inputs(MATMUL, SHAPE, DTYPES["fp32"], "normal") for _ in range(2))

    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_reference_is_computed_from_the_rounded_numbers_in_float64():
    dtype = DTYPES["bf16"]
    inputs = make_inputs(MATMUL, SHAPE, dtype, "normal")
    ((index, right),) = Reference(MATMUL, dtype, inputs).parts

    np.testing.assert_allclose(right, dtype.widen(inputs[0]) @ dtype.widen(inputs[1]), rtol=1e-12)
    assert right.dtype == np.float64
    assert right[index].shape == (20, 40)


def test_reference_of_a_large_product_is_computed_in_part():
    shape = Shape.of(m=1100, k=1000, n=1100)
    inputs = make_inputs(MATMUL, shape, DTYPES["fp32"], "normal")
    parts = Reference(MATMUL, DTYPES["fp32"], inputs).parts
    whole = inputs[0].astype(float) @ inputs[1].astype(float)

    assert sum(right.size for _, right in parts) < whole.size / 16
    for index, right in parts:
        np.testing.assert_allclose(whole[index], right, rtol=1e-9, atol=1e-9)
