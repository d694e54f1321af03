"""Mistakes inside a kernel: each gives the wrong number, and its sign."""

import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.features.mistakes.catalog import MISTAKES, kernel
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD
from tests.features.mistakes.catalog.made import stage
from tests.measure.fakes import FakeClock

PTX = """
    ld.global.f32 %f1, [%rd1];
    cvt.f64.f32 %fd1, %f1;
    add.f64 %fd2, %fd1, %fd3;
    cvt.rn.f32.f64 %f2, %fd2;
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd2], %f3;
"""


def test_a_grid_that_is_rounded_down_leaves_672_elements_unwritten():
    seen = MISTAKES["grid-floor"].observe(stage())

    assert (seen.wrong.value, seen.right.value) == (672, 0)
    assert seen.detection.found is True
    assert "elements were never written" in seen.detection.evidence


def test_the_unwritten_elements_are_those_the_geometry_counts():
    launch = ELEMENT_PER_THREAD.launch((100_000,), (1024,), (97,))

    assert launch.uncovered == kernel.launched(launch, 100_000)[0] == 672


def test_a_grid_that_is_rounded_up_is_correct():
    _, accuracy = kernel.launched(ELEMENT_PER_THREAD.launch((100_000,), (1024,)), 100_000)

    assert accuracy.within


def test_ten_calls_that_accumulate_are_off_by_nine_times_the_answer():
    seen = MISTAKES["accumulating-output"].observe(stage(FakeClock(tick_ns=10_000_000)))

    assert seen.wrong.value == pytest.approx(9, rel=1e-5)
    assert seen.right.value < 1e-6
    assert seen.detection.found is True
    assert "NaN" in seen.detection.evidence  # of the poisoned output, to which it adds


def test_instructions_are_counted_by_the_format_they_compute_in():
    assert kernel.counted(PTX) == (3, 1)
    assert kernel.computes_in_f64(*kernel.counted(PTX)).found is True
    assert kernel.computes_in_f64(0, 4).found is False


@pytest.mark.long
def test_a_double_constant_makes_the_kernel_sum_in_float64_and_without_it_nothing_does():
    seen = MISTAKES["double-constant"].observe(stage())

    assert seen.wrong.value >= 3
    assert seen.right.value == 0
    assert seen.detection.found is True
    assert seen.how == "computed"


def test_a_compiler_that_fails_is_told_with_its_last_words(monkeypatch):
    monkeypatch.setattr(kernel, "PROCESS", "gpuexplore.features.mistakes.catalog.no_such_module")

    with pytest.raises(Unsupported, match="no_such_module"):
        kernel.compiled()
