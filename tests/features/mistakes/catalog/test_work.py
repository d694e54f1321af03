"""Mistakes in what is timed: each gives the wrong number, and its sign where it has one."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.analysis.diagnosis.processors import too_few_threads
from gpuexplore.features.mistakes.catalog import MISTAKES, Detection, Factor, work
from gpuexplore.features.mistakes.catalog.subject import flag_of
from gpuexplore.features.mistakes.catalog.work import _unless_others_had_the_cores
from tests.analysis.made import alone, ok
from tests.features.mistakes.catalog.made import Lasting, stage, subject, with_peak
from tests.measure.fakes import CPU, FakeClock

TWO_CORES = replace(CPU, cores=2)


@pytest.fixture
def clock():
    return FakeClock()


def test_copies_are_part_of_the_wrong_time_and_no_sign_tells(clock):
    made = subject(Lasting(clock, 1e-3), operation="vector_add")

    seen = work._observe_transfer_counted(made, stage(clock), Lasting(clock, 2e-3), Lasting(clock, 1e-3))

    assert (seen.wrong.value, seen.right.value) == pytest.approx((4e-3, 1e-3))
    assert seen.factor.ratio == pytest.approx(4)
    assert seen.detection.found is None
    assert "transfer_dominates" in seen.detection.evidence


def test_copies_on_a_cpu_are_called_emulated(clock):
    seen = MISTAKES["transfer-counted"].observe(stage(FakeClock(tick_ns=10_000_000)))

    assert seen.how == "emulated"
    assert "stand in for it" in seen.note


def test_allocation_is_part_of_the_wrong_time_and_no_sign_tells(clock):
    seen = work._observe_result_allocated(
        subject(Lasting(clock, 1e-3), operation="vector_add"), stage(clock), Lasting(clock, 3e-3)
    )

    assert (seen.wrong.value, seen.right.value) == pytest.approx((3e-3, 1e-3))
    assert seen.detection.found is None
    assert "only the code shows it" in seen.detection.evidence


def test_overhead_scales_with_the_flops_and_a_tiny_size_is_launch_bound(clock):
    def seen(tiny_s, large_s):
        tiny, large = subject(Lasting(clock, tiny_s), size=10), subject(Lasting(clock, large_s), size=100)
        return large, work._observe_tiny_size(tiny, large, stage(clock), overhead_s=1e-6)

    _, alike = seen(1e-6, 1e-3)
    large, bound = seen(2e-6, 1e-4)

    assert (alike.wrong.value, alike.right.value) == pytest.approx((1e-3, 1e-3))
    assert seen(1e-6, 1e-4)[1].factor.ratio == pytest.approx(10)
    assert bound.detection.found is True
    assert bound.detection.evidence == "a call on one element already takes 1.00 µs"
    assert flag_of(large, (1e-4,) * 10, "launch_bound", overhead_s=1e-6).found is False


def test_a_warm_rate_told_as_the_memorys_carries_the_flag_warm(clock):
    warm = subject(Lasting(clock, 1e-4), operation="vector_add", size=1000, cache="warm")
    cold = subject(Lasting(clock, 1e-3), operation="vector_add", size=1000, cache="cold")

    seen = work._observe_warm_cache(warm, cold, stage(clock))

    assert (seen.wrong.value, seen.right.value) == pytest.approx((12_000 / 1e-4, 12_000 / 1e-3))
    assert seen.detection.found is True
    assert flag_of(cold, (1e-3,) * 10, "warm").found is False


def pinned(clock, seconds, threads):
    """Return a subject on `threads` threads, and the counts that its library was pinned to."""
    made, asked = subject(Lasting(clock, seconds), on=TWO_CORES, threads=threads), []
    backend = SimpleNamespace(set_threads=asked.append, synchronize=lambda _: None)
    return replace(made, candidate=replace(made.candidate, backend=backend)), asked


def test_one_of_two_cores_takes_twice_as_long_and_is_given_away(clock):
    (one_core, asked_one), (all_cores, asked_all) = pinned(clock, 2e-3, 1), pinned(clock, 1e-3, 2)

    seen = work._observe_one_thread_baseline(one_core, all_cores, stage(clock, TWO_CORES))

    assert seen.factor.ratio == pytest.approx(2)
    assert seen.detection.found is True
    assert (set(asked_one), set(asked_all)) == ({1}, {2})
    assert len(asked_one) == len(asked_all) == seen.rounds


@pytest.mark.parametrize(("threads", "detected"), [(1, True), (2, False)])
def test_the_diagnosis_of_a_result_says_the_same_of_its_threads(clock, threads, detected):
    made, _ = pinned(clock, 1e-3, threads)
    result = ok(implementation="numpy")
    seen = alone(replace(result, environment=replace(made.environment, device=TWO_CORES)))

    detection = work._idle_cores(made)

    assert detection.found is detected
    assert (too_few_threads(seen) is not None) == detected
    assert too_few_threads(seen) is None or too_few_threads(seen).evidence == detection.evidence


def test_a_loop_that_was_removed_passes_the_peak_and_one_that_was_not_does_not(clock):
    device = with_peak(1e7)
    made = subject(Lasting(clock, 1.0), operation="reduce_sum", size=1000, on=device)

    seen = work._observe_unused_result(made, stage(clock, device), Lasting(clock, 1e-6), Lasting(clock, 1.0))

    assert (seen.wrong.value, seen.right.value) == pytest.approx((1e12, 1e6))
    assert seen.detection.found is True
    assert flag_of(made, (1.0,) * 10, "over_peak").found is False


@pytest.mark.long
def test_numba_really_removes_the_loop_whose_sum_is_not_used():
    import numpy as np

    x, out = np.ones(1000, np.float32), np.zeros(1, np.float32)
    unused, used = work._compiled(x, out)

    assert unused() is None
    assert out[0] == 0
    used()
    assert out[0] == 1000


@pytest.mark.parametrize(("interval", "found"), [((1.6, 1.9), True), ((0.6, 1.4), True), ((0.02, 0.26), None)])
def test_one_thread_that_was_faster_is_no_mistake_shown(interval, found):
    seen = Detection(True, "threads: 1, physical cores: 2")

    assert _unless_others_had_the_cores(Factor(0.5, interval), seen).found is found
