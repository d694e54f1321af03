"""Mistakes in the data and in how the answer is checked: each gives the wrong number, and its sign."""

import numpy as np
import pytest

from gpuexplore.core.model import Accuracy
from gpuexplore.features.mistakes.catalog import MISTAKES, data
from gpuexplore.features.mistakes.catalog.data import total
from gpuexplore.hardware import accelerator_named
from tests.features.mistakes.catalog.made import Lasting, stage, subject
from tests.measure.fakes import FakeClock

TICKING_NS = 10_000_000  # with every reading, so that a warm-up ends after three calls


def on_the_cpu():
    return stage(FakeClock(TICKING_NS))


def test_zeros_are_faster_and_no_sign_tells():
    clock = FakeClock()

    seen = data.observe_zeros(subject(Lasting(clock, 0.9)), subject(Lasting(clock, 1.0)), stage(clock))

    assert seen.factor.ratio == pytest.approx(1 / 0.9)
    assert seen.detection.found is None
    assert "Only the options of a result show" in seen.detection.evidence


def test_where_no_gpu_is_the_published_rates_on_zeros_stand_in():
    seen = MISTAKES["zeros"].observe(on_the_cpu())

    assert seen.how == "published"
    assert seen.factor.ratio == pytest.approx(1.127, abs=1e-3)
    notes = accelerator_named(data.PUBLISHED_ROW).notes
    assert "measured 788-798 bf16 on random data, 894 on zeros" in notes
    assert notes in seen.source


def test_a_bf16_product_of_ones_has_no_error_and_one_of_random_numbers_has():
    seen = MISTAKES["all-ones"].observe(on_the_cpu())

    assert seen.wrong.value == 0
    assert 1e-3 < seen.right.value < 1e-2
    assert seen.detection.found is True
    assert seen.factor is None


def test_an_error_that_is_not_zero_does_not_give_ones_away():
    assert data.exact_error(Accuracy(1e-3, 1e-2), 2.0**-8).found is False


def test_tf32_is_a_thousand_times_further_off_than_fp32_and_incorrect_as_fp32():
    seen = MISTAKES["tf32-on"].observe(on_the_cpu())

    assert seen.how == "emulated"
    assert 2.0**-14 < seen.wrong.value < 2.0**-11
    assert seen.right.value < 1e-6
    assert seen.factor.ratio > 300
    assert seen.detection.found is True
    assert "rounding explains at most" in seen.detection.evidence


@pytest.mark.parametrize(("count", "expected"), [(65_536, float("inf")), (32_768, 32_768.0)])
def test_fp16_ends_between_32768_and_65536(count, expected):
    assert data.dot(np.float16, count) == expected


def test_an_infinite_sum_is_shown_as_such_and_incorrect():
    seen = MISTAKES["fp16-overflow"].observe(on_the_cpu())

    assert (seen.wrong.value, seen.wrong.text) == (None, "inf")
    assert seen.right.value == 65_536
    assert seen.detection.found is True
    assert "overflowed" in seen.detection.evidence


def test_default_allclose_calls_a_correct_product_wrong():
    seen = MISTAKES["default-allclose"].observe(on_the_cpu())

    assert 0.001 < seen.wrong.value < 0.1
    assert seen.right.value == 0
    assert seen.detection.found is True
    assert "allclose is False" in seen.detection.evidence


def test_equal_products_do_not_give_allclose_away():
    assert data.disagreement(0.0, Accuracy(1e-7, 1e-6)).found is False
    assert data.disagreement(1.0, Accuracy(1e-2, 1e-6)).found is False
    assert data.disagreement(1.0, Accuracy(None, 1e-6)).found is None


@pytest.mark.parametrize(
    ("dtype", "count", "expected"),
    [("bf16", 256, 256), ("bf16", 5000, 256), ("fp16", 5000, 2048), ("fp32", 5000, 5000)],
)
def test_a_sum_of_ones_stands_still_where_the_format_has_no_next_whole_number(dtype, count, expected):
    assert total(dtype, count) == expected
