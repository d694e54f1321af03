"""Mistakes in data, kernels and divisors: each gives the wrong number, and its sign where it has one."""

from dataclasses import replace

import numpy as np
import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.core.model import Accuracy
from gpuexplore.features.mistakes.catalog import MISTAKES, cost, data, kernel
from gpuexplore.hardware import accelerator_named, as_device
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD
from tests.features.mistakes.catalog.made import Lasting, stage, subject
from tests.measure.fakes import FakeClock

NONE = (None, None)
PTX = """
    ld.global.f32 %f1, [%rd1];
    cvt.f64.f32 %fd1, %f1;
    add.f64 %fd2, %fd1, %fd3;
    cvt.rn.f32.f64 %f2, %fd2;
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd2], %f3;
"""


def observed(name):
    """Return what is observed on a CPU whose clock ticks with every reading, so that a warm-up ends after 3 calls."""
    return MISTAKES[name].observe(stage(FakeClock(tick_ns=10_000_000)))


@pytest.mark.parametrize(
    ("name", "wrong", "right", "found", "said"),
    [
        ("flops-n3", (1e8, 1e8), (2e8, 2e8), None, "as plausible as the rate itself"),
        ("sparse-peak", (0.3982, 0.3983), (0.7964, 0.7965), None, "Peaks here are dense"),
        ("rounded-peak", (0.6345, 0.6347), (0.6266, 0.6268), None, "names its source"),
        ("foreign-peak", (0.1418, 0.1420), NONE, True, "Tesla T4 has no bf16 units"),  # the dtype is emulated
        ("zeros", (894e12, 894e12), (793e12, 793e12), None, "Only the options of a result show"),  # published
        ("all-ones", (0, 0), (1e-3, 1e-2), True, "rounding one number to bf16"),
        ("tf32-on", (2.0**-14, 2.0**-11), (0, 1e-6), True, "rounding explains at most"),
        ("fp16-overflow", NONE, (65_536, 65_536), True, "overflowed"),
        ("default-allclose", (0.001, 0.1), (0, 0), True, "allclose is False"),
        ("sum-one-by-one", (256, 256), (5000, 5000), True, "relative error"),
        ("grid-floor", (672, 672), (0, 0), True, "elements were never written"),
        ("accumulating-output", (9 - 1e-4, 9 + 1e-4), (0, 1e-6), True, "NaN"),  # of the poisoned output
        pytest.param("double-constant", (3, 100), (0, 0), True, "instructions with .f64", marks=pytest.mark.long),
    ],
)
def test_the_wrong_way_gives_another_value_and_its_sign_is_found(name, wrong, right, found, said):
    seen = observed(name)

    for reading, (low, high) in ((seen.wrong, wrong), (seen.right, right)):
        assert (reading.value is None and reading.text) if low is None else low <= reading.value <= high
    assert seen.detection.found is found
    assert said in seen.detection.evidence


@pytest.mark.parametrize(
    ("name", "how"),
    [("zeros", "published"), ("tf32-on", "emulated"), ("flops-n3", "computed"), ("all-ones", "measured")],
)
def test_an_observation_says_how_it_was_made(name, how):
    assert observed(name).how == how


def test_what_is_published_of_zeros_and_of_the_dense_peak_stands_in_the_notes_of_its_row():
    notes = accelerator_named(data.PUBLISHED_ROW).notes

    assert "measured 788-798 bf16 on random data, 894 on zeros" in notes
    assert notes in observed("zeros").source
    assert observed("zeros").factor.ratio == pytest.approx(1.127, abs=1e-3)
    assert "dense" in observed("sparse-peak").source


def test_zeros_that_are_faster_leave_no_sign():
    clock = FakeClock()
    seen = data._observe_zeros(subject(Lasting(clock, 0.9)), subject(Lasting(clock, 1.0)), stage(clock))

    assert seen.factor.ratio == pytest.approx(1 / 0.9)
    assert seen.detection.found is None


def test_factors_are_of_errors_that_are_numbers():
    assert observed("tf32-on").factor.ratio > 300
    assert observed("all-ones").factor is None


def test_right_numbers_and_a_card_with_units_of_its_own_for_the_dtype_are_not_flagged():
    card = as_device(accelerator_named("Tesla T4"))

    assert cost._emulated(replace(card, native=(*card.native, "bf16"))).found is False

    assert data._exact_error(Accuracy(1e-3, 1e-2), 2.0**-8).found is False
    assert data._disagreement(0.0, Accuracy(1e-7, 1e-6)).found is False
    assert data._disagreement(1.0, Accuracy(1e-2, 1e-6)).found is False
    assert data._disagreement(1.0, Accuracy(None, 1e-6)).found is None


def test_fp16_ends_between_32768_and_65536_and_a_sum_of_ones_where_the_format_has_no_next_whole_number():
    assert [data._dot(np.float16, count) for count in (65_536, 32_768)] == [float("inf"), 32_768.0]
    assert (data._total("bf16", 256), data._total("fp16", 5000)) == (256, 2048)


def test_a_grid_that_is_rounded_up_is_correct_and_one_that_is_not_misses_what_the_geometry_counts():
    short = ELEMENT_PER_THREAD.launch((100_000,), (1024,), (97,))
    _, accuracy = kernel._launched(ELEMENT_PER_THREAD.launch((100_000,), (1024,)), 100_000)

    assert accuracy.within
    assert short.uncovered == kernel._launched(short, 100_000)[0] == 672


def test_instructions_are_counted_by_the_format_they_compute_in():
    assert kernel._counted(PTX) == (3, 1)
    assert kernel._computes_in_f64(*kernel._counted(PTX)).found is True
    assert kernel._computes_in_f64(0, 4).found is False


def test_a_compiler_that_fails_is_reported_with_its_last_words(monkeypatch):
    monkeypatch.setattr(kernel, "PROCESS", "gpuexplore.features.mistakes.catalog.no_such_module")

    with pytest.raises(Unsupported, match="no_such_module"):
        kernel._compiled()
