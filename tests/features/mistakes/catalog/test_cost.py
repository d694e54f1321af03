"""Mistakes in what a time is divided by: each gives the wrong number, and its sign where it has one."""

from dataclasses import replace

import pytest

from gpuexplore.features.mistakes.catalog import MISTAKES, cost
from gpuexplore.hardware import accelerator_named, as_device
from tests.features.mistakes.catalog.made import stage


@pytest.mark.parametrize(
    ("name", "wrong", "right", "found", "said"),
    [
        ("flops-n3", 1e8, 2e8, None, "as plausible as the rate itself"),
        ("sparse-peak", 788e12 / (2 * 989.4e12), 788e12 / 989.4e12, None, "Peaks here are dense"),
        ("rounded-peak", 0.6346, 0.6267, None, "names its source"),
        ("foreign-peak", 0.1419, None, True, "Tesla T4 has no bf16 units"),  # the dtype is emulated
    ],
)
def test_a_wrong_divisor_gives_another_value_and_most_leave_no_sign(name, wrong, right, found, said):
    seen = MISTAKES[name].observe(stage())

    assert seen.wrong.value == pytest.approx(wrong, abs=1e-4)
    assert seen.right.value == (right and pytest.approx(right, abs=1e-4))
    assert seen.detection.found is found
    assert said in seen.detection.evidence


def test_the_sparse_peak_is_compared_with_a_source_for_the_dense_one():
    assert "dense" in MISTAKES["sparse-peak"].observe(stage()).source


def test_a_card_with_units_of_its_own_for_the_dtype_is_not_flagged():
    card = as_device(accelerator_named("Tesla T4"))

    assert cost.emulated(replace(card, native=(*card.native, "bf16"))).found is False
