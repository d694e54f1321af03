"""Each element counts: planted errors that the norm forgives are seen, and roundings are not taken for errors."""

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Accuracy, Shape
from gpuexplore.measure.check.correctness import describe, tolerance
from gpuexplore.measure.check.elements import bound_of, judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS

MILLION = Shape.of(n=10**6)
SAMPLED = Shape.of(m=1100, k=1000, n=1101)  # above what is compared whole; a last tile of one column
EACH_DTYPE = pytest.mark.parametrize("dtype", ["fp64", "fp32", "bf16", "fp16"])


def made(name, shape, dtype, seed=3):
    """Return a reference, and an output that was rounded once to the dtype."""
    operation, row = OPERATIONS[name], DTYPES[dtype]
    inputs = make_inputs(operation, shape, row, "normal", seed=seed)
    right = operation.reference(*map(row.widen, inputs))
    return Reference(operation, row, inputs, seed), row.widen(row.round(right))


def root_mean_square(array):
    return float(np.sqrt(np.mean(np.square(array))))


@EACH_DTYPE
def test_one_zero_in_a_million_is_wrong_and_named(dtype):
    reference, out = made("vector_add", MILLION, dtype)
    expected = out[777_777]
    out[777_777] = 0

    accuracy = judge(out, reference, MILLION)

    assert accuracy.worst.where == "element [777777]"
    assert (accuracy.worst.value, accuracy.worst.expected) == (0, pytest.approx(expected, rel=0.01))
    assert not accuracy.within


def test_what_the_norm_forgives_is_seen_and_the_reason_names_the_element():
    reference, out = made("vector_add", MILLION, "bf16")
    assert judge(out, reference, MILLION).within
    out[np.random.default_rng(1).choice(MILLION["n"], 61, replace=False)] = 0

    accuracy = judge(out, reference, MILLION)

    assert accuracy.relative_error < tolerance(OPERATIONS["vector_add"], MILLION, DTYPES["bf16"]) * 1.1
    assert not accuracy.within
    assert describe(Accuracy(1e-9, 1e-6, accuracy.worst)).startswith(f"{accuracy.worst.where} is 0 where ")
    assert "rounding explains at most" in describe(Accuracy(1e-9, 1e-6, accuracy.worst))


@EACH_DTYPE
@pytest.mark.parametrize("off", [10.0, -0.5])
def test_one_element_that_is_off_by_a_part_of_the_rms_is_wrong_in_a_vector_and_a_product(dtype, off):
    for name, shape, place in (("vector_add", MILLION, 999_999), ("matmul", Shape.of(m=64, k=300, n=65), (63, 64))):
        reference, out = made(name, shape, dtype)
        assert judge(out, reference, shape).within
        out[place] += off * root_mean_square(out)
        assert not judge(out, reference, shape).within


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(lambda out: out.__setitem__((-1, -1), 0), id="last element"),
        pytest.param(lambda out: out.__setitem__((slice(None), -1), out[:, 0]), id="stale last column"),
        pytest.param(lambda out: out.__setitem__((-1, slice(None)), 0), id="last row"),
        pytest.param(lambda out: out.__setitem__((slice(1096, None), slice(1096, None)), 1.0), id="last partial tile"),
        pytest.param(lambda out: out.ravel().__setitem__(np.arange(256) * 4001, 0), id="256 of 1.2 million"),
        pytest.param(lambda out: np.add.at(out, (517, 333), 0.5 * root_mean_square(out)), id="0.5 rms"),
    ],
)
def test_what_is_wrong_in_a_product_that_is_not_compared_whole_is_seen(plant, dtype):
    reference, out = made("matmul", SAMPLED, dtype)
    assert sum(expected.size for _, expected in reference.parts) < out.size / 16
    assert judge(out, reference, SAMPLED).within
    plant(out)

    assert not judge(out, reference, SAMPLED).within


def test_a_number_whose_square_overflows_is_wrong_too():
    reference, out = made("matmul", SAMPLED, "fp64")
    out[next(row for row in range(500, 600) if row not in reference.parts[0][0][0]), 7] = 1e200

    assert not judge(out, reference, SAMPLED).within


def test_reason_of_a_sum_names_the_row_and_the_range_of_columns():
    reference, out = made("matmul", SAMPLED, "fp32")
    row = next(row for row in range(500, 600) if row not in reference.parts[0][0][0])
    out[row, 333] += 1

    worst = judge(out, reference, SAMPLED).worst

    assert worst.where == f"the sum of elements [{row}, 320 to 351] with random signs"
    assert abs(worst.value - worst.expected) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("linear", Shape.of(b=1100, d=1000, k=1100)),
        ("batched_matmul", Shape.of(outer=2, inner=3, m=700, k=400, n=700, right=1)),
        ("conv2d", Shape.of(b=2, c=64, h=64, w=64, o=256, r=3)),
    ],
)
def test_each_element_of_other_large_products_counts_too(name, shape):
    reference, out = made(name, shape, "fp16")
    assert judge(out, reference, shape).within
    place = tuple(length - 2 for length in out.shape)
    out[place] += 0.2 * root_mean_square(out)

    accuracy = judge(out, reference, shape)

    assert "with random signs" in accuracy.worst.where or "element" in accuracy.worst.where
    assert not accuracy.within


def test_last_row_of_each_head_of_a_long_attention_is_compared():
    shape = Shape.of(b=1, h=3, s=2050, d=64)
    reference, out = made("attention", shape, "bf16")
    assert judge(out, reference, shape).within
    out[0, 2, -1, 5] = 0.1 + 2 * out[0, 2, -1, 5]

    assert judge(out, reference, shape).worst.where == "element [0, 2, 2049, 5]"


def test_sum_that_cancels_may_be_off_by_what_its_terms_explain():
    operation, row, shape = OPERATIONS["reduce_sum"], DTYPES["fp32"], Shape.of(m=1, n=3)
    reference = Reference(operation, row, (np.array([[1e4, 1.0, -1e4]], np.float32),))

    assert judge(np.array([1.0009765625]), reference, shape).within  # fp32 holds 10001.001 for 1e4 + 1
    assert not judge(np.array([1.1]), reference, shape).within


def test_bound_of_an_element_is_that_of_one_rounding_and_of_a_sum():
    bf16, fp32 = DTYPES["bf16"], DTYPES["fp32"]
    bound = bound_of(OPERATIONS["matmul"], Shape.of(m=2, k=100, n=2), bf16)

    assert bound.terms == pytest.approx(4 * 10 * fp32.unit_roundoff)
    assert bound.own == pytest.approx(2 * bf16.unit_roundoff + bound.terms)
    attention = bound_of(OPERATIONS["attention"], Shape.of(b=1, h=1, s=36, d=64), bf16)
    assert attention.terms == pytest.approx(8 * bf16.unit_roundoff + 4 * 10 * fp32.unit_roundoff)


def test_numbers_below_the_normal_ones_are_right_to_within_the_smallest():
    reference = Reference(OPERATIONS["copy"], DTYPES["fp16"], (np.array([6e-8, 1.0], np.float16),))

    assert judge(np.array([2.0**-23, 1.0]), reference, Shape.of(n=2)).within
    assert not judge(np.array([2.0**-20, 1.0]), reference, Shape.of(n=2)).within


def test_output_with_nan_has_no_worst_element():
    reference, out = made("vector_add", Shape.of(n=100), "fp32")
    out[3] = np.nan

    assert judge(out, reference, Shape.of(n=100)) == Accuracy(
        None, tolerance(OPERATIONS["vector_add"], Shape.of(n=100), DTYPES["fp32"])
    )
