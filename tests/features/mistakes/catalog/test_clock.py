"""Mistakes in when the clock is read: each gives the wrong number, and its sign where it has one."""

from dataclasses import replace

import pytest

from gpuexplore.core.model import Telemetry
from gpuexplore.features.mistakes.catalog.clock import (
    _observe_first_call,
    _observe_idle_clocks,
    _observe_mean_of_five,
    _observe_minimum,
    _observe_no_synchronise,
    _observe_not_interleaved,
)
from gpuexplore.features.mistakes.catalog.subject import flag_of
from tests.features.mistakes.catalog.made import Lasting, stage, subject, with_peak
from tests.measure.fakes import GPU, FakeClock

FLOPS = 2 * 100**3


@pytest.fixture
def clock():
    return FakeClock()


def test_a_clock_that_stops_at_submission_tells_a_rate_above_the_peak(clock):
    device = with_peak(2 * FLOPS)
    made = subject(Lasting(clock, 1.0), on=device)

    def submit(run):
        clock.spend(1e-3)
        return run

    seen = _observe_no_synchronise(made, stage(clock, device), submit)

    assert seen.wrong.value == pytest.approx(FLOPS / 1e-3)
    assert seen.right.value == pytest.approx(FLOPS / 1.001)
    assert seen.factor.ratio == pytest.approx(1001)
    assert seen.detection.found is True
    assert seen.detection.evidence.endswith("most likely the measurement is wrong")
    assert flag_of(made, (1.001,) * 10, "over_peak").found is False


def test_without_a_peak_nobody_can_say_whether_a_rate_is_above_it(clock):
    device = replace(with_peak(1.0), peaks=())
    made = subject(Lasting(clock, 1.0), on=device)

    assert flag_of(made, (1e-9,) * 10, "over_peak").found is None


def test_a_submission_meets_an_empty_queue(clock):
    made, queue, lengths = subject(Lasting(clock, 1.0)), [], []

    def submit(run):
        lengths.append(len(queue))
        queue.append(run)
        clock.spend(1e-6)
        return lambda: [queue.pop()() for _ in tuple(queue)]

    seen = _observe_no_synchronise(made, stage(clock), submit)

    assert lengths == [0] * 2 * seen.rounds
    assert queue == []


def test_the_first_call_of_a_new_function_tells_its_compilation(clock):
    made = subject(Lasting(clock, 1e-3), operation="vector_add")

    seen = _observe_first_call(made, stage(clock), lambda: Lasting(clock, lambda number: 1e-3 if number else 1.0))

    assert (seen.wrong.value, seen.right.value) == pytest.approx((1.0, 1e-3))
    assert seen.factor.ci95[0] > 900
    assert seen.detection.found is None
    assert "first_call_s" in seen.detection.evidence


def test_one_slow_call_of_five_moves_the_mean_and_not_the_median(clock):
    made = subject(Lasting(clock, lambda number: 1e-2 if number % 5 == 2 else 1e-3))

    seen = _observe_mean_of_five(made, stage(clock))

    assert seen.wrong.value == pytest.approx((4 * 1e-3 + 1e-2) / 5)
    assert seen.right.value == pytest.approx(1e-3)
    assert seen.detection.found is True
    assert "5 samples, and a 95 % interval of the median takes 6" in seen.detection.evidence


def test_steady_calls_have_the_same_mean_and_median_so_nothing_is_claimed(clock):
    seen = _observe_mean_of_five(subject(Lasting(clock, 1e-3)), stage(clock))

    assert seen.factor.is_within_noise
    assert seen.detection.found is None
    assert "within the noise" in seen.detection.evidence


def test_the_minimum_of_scattered_calls_is_half_of_their_median_and_only_they_are_noisy(clock):
    seen = _observe_minimum(subject(Lasting(clock, lambda number: 1e-3 * (1 + number % 3))), stage(clock))
    steady = subject(Lasting(clock, lambda number: 1e-3 * (1 + 0.01 * (number % 3))))

    assert (seen.wrong.value, seen.right.value) == pytest.approx((1e-3, 2e-3))
    assert seen.detection.found is True
    assert "spreads over" in seen.detection.evidence
    assert _observe_minimum(steady, stage(clock)).detection.found is False


def test_drift_makes_an_implementation_faster_than_itself_unless_it_takes_turns(clock):
    made = subject(Lasting(clock, lambda number: 1e-3 * 1.01**number))

    seen = _observe_not_interleaved(made, stage(clock))

    assert seen.wrong.value > 1.1
    assert seen.right.value == pytest.approx(1.0, abs=0.02)
    assert not seen.factor.is_within_noise
    assert seen.detection.found is None
    assert "neither is noisy" in seen.detection.evidence


def test_without_drift_the_ratio_of_two_blocks_is_right_and_nothing_is_claimed(clock):
    seen = _observe_not_interleaved(subject(Lasting(clock, 1e-3)), stage(clock))

    assert seen.wrong.value == seen.right.value == pytest.approx(1.0)
    assert seen.factor.is_within_noise


def after_pauses(clock, device, clock_hz):
    """Return the observation where a call after a pause takes ten times as long, and the clock has `clock_hz`."""
    awake = []
    work = Lasting(clock, lambda _: 1e-3 if awake else 1e-2)
    made = subject(work, on=device, implementation="torch")

    def run():
        work()
        awake.append(True)

    made = replace(made, candidate=replace(made.candidate, run=run), call_s=1e-3)
    return _observe_idle_clocks(made, stage(clock, device), awake.clear, lambda: Telemetry(clock_hz=clock_hz))


@pytest.mark.parametrize(
    ("device", "share", "detected", "evidence"),
    [
        (GPU, 0.3, True, "the clock fell to 30.0 % of the boost clock"),
        (GPU, 1.0, False, ""),
        (with_peak(1e12), None, None, ""),
    ],
)
def test_a_call_after_a_pause_is_slow_and_the_low_clock_of_a_gpu_alone_is_flagged(
    clock, device, share, detected, evidence
):
    seen = after_pauses(clock, device, clock_hz=share and share * device.clock_hz)

    assert (seen.wrong.value, seen.right.value) == pytest.approx((1e-2, 1e-3))
    assert seen.detection.found is detected
    assert evidence in seen.detection.evidence
