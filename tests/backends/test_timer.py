"""Timers read their clock where they should, flush outside of it, and keep every sample."""

import contextlib

import pytest

from gpuexplore.backends import MIN_BATCH_S, EventTimer, HostTimer
from tests.measure.fakes import FakeClock, FakeWork


def test_host_timer_reads_the_clock_twice_for_a_batch_and_gives_the_mean():
    clock = FakeClock()
    work = FakeWork(clock, [1e-6, 3e-6])

    samples = HostTimer(clock).sample(work, calls=2, flush=None)

    assert samples == pytest.approx([2e-6])
    assert (clock.readings, work.calls) == (2, 2)


def test_host_timer_flushes_before_every_call_and_outside_the_timed_part():
    clock = FakeClock()
    work, flush = FakeWork(clock, [1e-6]), FakeWork(clock, [1.0])

    samples = HostTimer(clock).sample(work, calls=3, flush=flush)

    assert samples == pytest.approx([1e-6])
    assert (clock.readings, work.calls, flush.calls) == (6, 3, 3)


@pytest.mark.parametrize(
    ("call_s", "calls"), [(MIN_BATCH_S / 2, 2), (MIN_BATCH_S / 2.5, 3), (MIN_BATCH_S, 1), (9.0, 1)]
)
def test_host_batch_is_as_long_as_the_clock_needs(call_s, calls):
    assert HostTimer(FakeClock()).calls_per_round(call_s) == calls


@pytest.mark.parametrize("call_s", [1e-9, 70e-9, 3e-6, 40e-6])
def test_host_batch_is_long_enough_and_no_longer(call_s):
    calls = HostTimer(FakeClock()).calls_per_round(call_s)

    assert MIN_BATCH_S * (1 - 1e-9) <= calls * call_s <= MIN_BATCH_S + call_s


def test_host_batch_of_a_call_too_short_for_the_clock_is_that_of_a_nanosecond():
    timer = HostTimer(FakeClock())

    assert timer.calls_per_round(0.0) == timer.calls_per_round(1e-9) == pytest.approx(MIN_BATCH_S / 1e-9, abs=1)


class FakeStream:
    """A device that does its work when it is waited for, and writes down all that is asked of it."""

    def __init__(self):
        self.log = []

    def event(self):
        return Recorded(self)

    def timer(self, clock=None, spun=None):
        spun = [] if spun is None else spun
        return EventTimer(
            clock or FakeClock(),
            self.event,
            self.elapsed_s,
            wait=lambda: self.log.append("wait"),
            on_device=contextlib.nullcontext,
            enqueue_spin=spun.append,
        )

    def elapsed_s(self, start, end):
        assert "wait" in self.log
        return float(end.at - start.at)


class Recorded:
    def __init__(self, stream):
        self.stream, self.at = stream, None

    def record(self):
        self.at = len(self.stream.log)
        self.stream.log.append("event")


def test_event_timer_gives_a_sample_per_call_and_waits_once_at_the_end():
    stream = FakeStream()

    samples = stream.timer().sample(lambda: stream.log.append("run"), calls=3, flush=None)

    assert samples == [2.0, 2.0, 2.0]
    assert stream.log == [*["event", "run", "event"] * 3, "wait"]


def test_event_timer_takes_a_round_again_during_which_the_device_did_not_spin_long_enough():
    stream, clock, spun, runs = FakeStream(), FakeClock(), [], []
    timer = stream.timer(clock, spun)

    timer.sample(lambda: (clock.spend(100e-6), runs.append("first")), calls=2, flush=None)
    timer.sample(lambda: (clock.spend(50e-6), runs.append("second")), calls=2, flush=None)

    margin = EventTimer.MARGIN
    assert spun == pytest.approx([2 * margin * EventTimer.ENQUEUE_S, 2 * margin * 100e-6, 2 * margin * 100e-6])
    assert runs == [*["first"] * 4, *["second"] * 2]


def test_event_timer_does_not_wait_for_a_host_that_enqueues_for_longer_than_the_longest_spin():
    stream, clock, spun = FakeStream(), FakeClock(), []
    timer = stream.timer(clock, spun)

    timer.sample(lambda: clock.spend(1.0), calls=2, flush=None)
    timer.sample(lambda: clock.spend(1.0), calls=2, flush=None)

    assert spun == pytest.approx([2 * EventTimer.MARGIN * EventTimer.ENQUEUE_S, *[EventTimer.MOST_SPIN_S] * 2])


def test_event_timer_looks_at_the_device_while_it_is_busy():
    stream = FakeStream()
    timer = stream.timer()
    timer.meanwhile = lambda: stream.log.append("look")

    timer.sample(lambda: stream.log.append("run"), calls=1, flush=None)

    assert stream.log == ["event", "run", "event", "look", "wait"]


def test_event_timer_flushes_outside_of_the_events():
    stream = FakeStream()

    samples = stream.timer().sample(lambda: stream.log.append("run"), calls=2, flush=lambda: stream.log.append("flush"))

    assert samples == [2.0, 2.0]
    assert stream.log == [*["flush", "event", "run", "event"] * 2, "wait"]


@pytest.mark.parametrize(("call_s", "calls"), [(0.0, 32), (1e-6, 32), (1e-4, 10), (1e-3, 1), (9.0, 1)])
def test_event_round_is_a_millisecond_and_at_most_32_calls(call_s, calls):
    assert FakeStream().timer().calls_per_round(call_s) == calls


def test_timers_say_what_a_sample_is():
    assert not HostTimer(FakeClock()).one_sample_per_call
    assert FakeStream().timer().one_sample_per_call
