"""Mistakes in what a time is divided by: each gives the wrong number, and its sign where it has one."""

from dataclasses import replace

import pytest

from gpuexplore.features.mistakes.catalog import cost
from gpuexplore.hardware import accelerator_named, as_device
from tests.features.mistakes.catalog.made import stage


def test_multiplications_alone_are_half_of_the_flops():
    seen = cost.demonstrate_flops_n3(stage())

    assert (seen.wrong.value, seen.right.value) == (1e8, 2e8)
    assert "as plausible as the rate itself" in seen.detection.evidence


def test_the_sparse_peak_halves_the_mfu():
    seen = cost.demonstrate_sparse_peak(stage())

    assert seen.right.value == pytest.approx(788e12 / 989.4e12)
    assert seen.wrong.value == pytest.approx(seen.right.value / 2)
    assert "dense" in seen.source
    assert seen.detection.found is None


def test_a_rounded_peak_moves_the_mfu_of_the_notebook():
    seen = cost.demonstrate_rounded_peak(stage())

    assert seen.wrong.value == pytest.approx(0.6346, abs=1e-4)
    assert seen.right.value == pytest.approx(0.6267, abs=1e-4)
    assert seen.detection.found is None


def test_a_foreign_peak_gives_an_mfu_where_none_is_known_and_the_dtype_is_emulated():
    seen = cost.demonstrate_foreign_peak(stage())

    assert seen.wrong.value == pytest.approx(0.1419, abs=1e-4)
    assert seen.right.value is None
    assert seen.detection.found is True
    assert "Tesla T4 has no bf16 units" in seen.detection.evidence


def test_a_card_with_units_of_its_own_for_the_dtype_is_not_flagged():
    card = as_device(accelerator_named("Tesla T4"))

    assert cost.emulated(replace(card, native=(*card.native, "bf16"))).found is False
