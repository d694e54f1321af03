"""Calls without timing go on until the next one is no faster, with a clock that only the work moves."""

from math import ceil

import pytest

from gpuexplore.measure.candidates.candidate import BRIEFLY_S, LEAST_S, MOST_S, WINDOW_S, wake, wake_briefly
from tests.measure.fakes import FakeClock, FakeWork, candidate


def woken(durations_s, call_s, *, flush=None):
    clock = FakeClock()
    work = FakeWork(clock, durations_s)
    wake(candidate(work, flush=flush and (lambda: clock.spend(flush))), call_s, clock)
    return work, clock.now_ns * 1e-9


def test_steady_calls_are_woken_for_the_least_time():
    work, lasted_s = woken([1e-4], 1e-4)

    assert lasted_s == pytest.approx(LEAST_S)
    assert work.calls == round(LEAST_S / 1e-4)


def test_calls_that_get_faster_go_on_until_they_do_not():
    falling = [1e-3 * 0.9**number for number in range(5)]
    work, _ = woken(falling, 1e-3)

    assert work.calls == len(falling) + 1


def test_calls_that_never_settle_end():
    _, lasted_s = woken([1e-3 * 0.95**number for number in range(100)], 1e-3)

    assert MOST_S - WINDOW_S < lasted_s <= MOST_S + WINDOW_S


@pytest.mark.parametrize(("call_s", "calls"), [(20e-3, 1), (0.1, 0)])
def test_a_long_call_is_made_once_and_one_that_waking_does_not_show_in_not_at_all(call_s, calls):
    assert woken([call_s], call_s)[0].calls == calls


def test_what_is_timed_with_cold_caches_is_called_once_after_a_flush():
    work, lasted_s = woken([1e-5], 1e-5, flush=1e-2)

    assert work.calls == 1
    assert lasted_s == pytest.approx(1e-2 + 1e-5)


def test_a_brief_waking_lasts_for_a_fifth_of_a_millisecond():
    clock = FakeClock()
    work = FakeWork(clock, [1e-5])

    wake_briefly(candidate(work), 1e-5)

    assert work.calls == ceil(BRIEFLY_S / 1e-5)
