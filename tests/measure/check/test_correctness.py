"""Rounding is forgiven, and nothing else."""

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Accuracy, Shape, WorstElement
from gpuexplore.measure.check.correctness import BLOCK_ELEMENTS, check, describe, tolerance
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS

MATMUL, VECTOR_ADD = OPERATIONS["matmul"], OPERATIONS["vector_add"]
WHOLE = ...


def judged(out, right, allowed=1e-6):
    return check(np.asarray(out, float), ((WHOLE, np.asarray(right, float)),), allowed)


def test_relative_error_is_that_of_the_norms():
    assert judged([3.0, 4.1], [3.0, 4.0]).relative_error == pytest.approx(0.1 / 5)


@pytest.mark.parametrize("shape", [(BLOCK_ELEMENTS + 1,), (3, BLOCK_ELEMENTS), (700, 1000), (2, 1)])
def test_large_output_is_compared_to_its_last_element(shape):
    right = np.random.default_rng(1).standard_normal(shape)
    out = right * (1 + 1e-3)
    out[-1] += 5.0
    whole = np.linalg.norm(out - right) / np.linalg.norm(right)

    assert judged(out, right).relative_error == pytest.approx(whole, rel=1e-12)
    out[-1] = float("nan")
    assert check(out, ((slice(0, 1), right[:1]),), 1.0).relative_error is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_output_that_is_not_finite_has_no_error_and_is_refused(bad):
    accuracy = judged([1.0, bad], [1.0, 2.0])

    assert accuracy.relative_error is None
    assert not accuracy.within
    assert describe(accuracy) == "the output contains NaN or infinity: elements were never written, or overflowed"


def test_nan_outside_the_checked_parts_is_refused_too():
    out = np.array([[1.0, 2.0], [float("nan"), 4.0]])

    assert check(out, (((0,), np.array([1.0, 2.0])),), 1.0).relative_error is None


def test_worst_part_counts():
    out = np.array([1.0, 2.0])

    accuracy = check(out, ((slice(0, 1), np.array([1.0])), (slice(1, 2), np.array([4.0]))), 1e-6)

    assert accuracy.relative_error == pytest.approx(0.5)


@pytest.mark.parametrize("scale", [0.5, 2.0, -1.0, 0.0, 1.001])
def test_wrong_scale_is_refused(scale):
    right = np.linspace(1, 2, 50)

    assert not judged(scale * right, right).within


def test_zero_reference_is_right_when_the_output_is_zero():
    assert judged([0.0, 0.0], [0.0, 0.0]).relative_error == 0.0
    assert not judged([0.0, 1e-3], [0.0, 0.0]).within


def test_error_of_few_elements_or_of_much_larger_terms_is_relative_to_these():
    right = np.full((1, 2), 1e-6)
    out, parts = right + 1e-7, ((WHOLE, right),)

    assert check(out, parts, 1e-6).relative_error == pytest.approx(0.1)
    assert check(out, parts, 1e-6, scales=[np.array([[1.0]])]).relative_error == pytest.approx(1e-7)
    many = np.full((1, 1000), 1e-6)
    found = [check(many + 1e-7, ((WHOLE, many),), 1.0, scales=[np.array([[size]])]) for size in (3e-6, 1e-5)]
    assert [accuracy.relative_error for accuracy in found] == pytest.approx([0.1, 0.01])


def test_reason_names_the_worst_element_where_the_norm_is_within():
    accuracy = Accuracy(1e-9, 1e-6, WorstElement("element [3, 5]", 0.0, 1.25, 1e-6))

    assert not accuracy.within
    assert describe(accuracy) == (
        "element [3, 5] is 0 where 1.25 is expected: off by 1.2, rounding explains at most 1e-06"
    )


def test_error_that_overflows_is_no_number_but_no_warning_either():
    assert judged([1e308, -1e308], [1e-308, 1e-308]).relative_error is None


def test_reason_names_the_error_and_what_is_allowed():
    assert describe(Accuracy(0.25, 1e-6)) == "relative error 0.25, rounding explains at most 1e-06"


def test_tolerance_grows_as_precision_falls():
    shape = Shape.of(m=64, k=64, n=64)
    allowed = [tolerance(MATMUL, shape, DTYPES[name]) for name in ("fp64", "fp32", "fp16", "bf16")]

    assert allowed == sorted(allowed)
    assert tolerance(MATMUL, shape, DTYPES["tf32"]) == tolerance(MATMUL, shape, DTYPES["fp16"])


def test_tolerance_grows_with_the_square_root_of_the_sum():
    roundoff = DTYPES["fp64"].unit_roundoff

    for length in (1, 100, 10_000):
        allowed = tolerance(MATMUL, Shape.of(m=9, k=length, n=9), DTYPES["fp64"])
        assert allowed == pytest.approx((2 + 4 * length**0.5) * roundoff)


def test_tolerance_does_not_depend_on_the_size_without_a_sum():
    small, large = (tolerance(VECTOR_ADD, Shape.of(n=n), DTYPES["fp32"]) for n in (1, 10**9))

    assert small == large


@pytest.mark.parametrize("dtype", ["fp64", "fp32"])
def test_missing_last_term_of_a_long_sum_is_caught(dtype):
    """One of 4000 terms moves the result by 1/63 only: a loose tolerance would let it pass."""
    row, shape = DTYPES[dtype], Shape.of(m=64, k=4000, n=64)
    inputs = make_inputs(MATMUL, shape, row, "normal")
    reference = Reference(MATMUL, row, inputs)
    a, b = (row.widen(array) for array in inputs)

    accuracy = check(a[:, :-1] @ b[:-1], reference.parts, tolerance(MATMUL, shape, row))

    assert accuracy.relative_error == pytest.approx(4000**-0.5, rel=0.3)
    assert not accuracy.within


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_sixteen_bit_output_rounded_once_is_right_and_a_missing_term_of_1000_is_not(dtype):
    row, shape = DTYPES[dtype], Shape.of(m=16, k=1000, n=16)
    inputs = make_inputs(MATMUL, shape, row, "normal")
    reference, allowed = Reference(MATMUL, row, inputs), tolerance(MATMUL, shape, row)
    a, b = (row.widen(array) for array in inputs)

    assert check(row.widen(row.round(a @ b)), reference.parts, allowed).within
    assert not check(row.widen(row.round(a[:, :-1] @ b[:-1])), reference.parts, allowed).within


def test_fp32_sum_in_another_order_is_right():
    """The notebooks' comparison called this wrong: a sum of 1000 fp32 terms in another order."""
    row, shape = DTYPES["fp32"], Shape.of(m=32, k=1000, n=32)
    inputs = make_inputs(MATMUL, shape, row, "normal")
    a, b = inputs
    backwards = np.zeros((32, 32), np.float32)
    for k in reversed(range(1000)):
        backwards += np.outer(a[:, k], b[k])

    assert check(row.widen(backwards), Reference(MATMUL, row, inputs).parts, tolerance(MATMUL, shape, row)).within
