"""The wait for idle pool threads, with a made-up process clock."""

from itertools import accumulate, chain, repeat

import pytest

from gpuexplore.measure.conditions.idle_threads import IDLE_SHARE, MAX_WAIT_S, SLICE_S, wait_for_idle_threads


def slept(*busy_shares, then=0.0):
    """Return how often it slept when the process used these shares of a core in its slices."""
    used_s = accumulate((share * SLICE_S for share in chain(busy_shares, repeat(then))), initial=0.0)
    readings = [0.0]
    slices = []

    def sleep(seconds):
        slices.append(seconds)
        readings[0] = next(used_s)

    next(used_s)
    wait_for_idle_threads(cpu_s=lambda: readings[0], sleep=sleep)
    assert set(slices) == {SLICE_S}
    return len(slices)


def test_silent_process_waits_one_slice():
    assert slept(0.0) == 1


@pytest.mark.parametrize("spinning", [1, 5, 100])
def test_wait_lasts_as_long_as_others_spin(spinning):
    assert slept(*[1.0] * spinning) == spinning + 1


def test_half_a_core_is_not_idle_and_a_tenth_is():
    assert slept(0.5, 0.1) == 2
    assert 0.1 < IDLE_SHARE < 0.5


def test_wait_ends_where_threads_never_sleep():
    assert slept(then=2.0) == round(MAX_WAIT_S / SLICE_S)
