"""How fast cores run is told against what they usually reach, and rounds of samples wait for slow ones."""

import os

import pytest

from gpuexplore.hardware.cpu_ceiling.probe import core_rates
from gpuexplore.measure.conditions.isolation import FRESH_S, MOST_CORES, SLOW_BELOW, CoreSpeeds, is_slow

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be placed here")


class Cores:
    """Two cores whose rates are laid out, and a clock that passes by a second with every reading."""

    def __init__(self, *rates, tick_s=1.0):
        self.rates, self.asked, self.waits, self.now_s, self.tick_s = iter(rates), [], 0, 0.0, tick_s
        self.speeds = CoreSpeeds(self._rates, self._clock)

    def _rates(self, cores):
        self.asked.append(len(cores))
        return next(self.rates)[: len(cores)]

    def _clock(self):
        self.now_s += self.tick_s
        return self.now_s

    def _wait(self):
        self.waits += 1

    def look(self, threads=2):
        return self.speeds.look(threads, self._wait)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_the_slowest_core_counts_against_what_it_usually_reaches():
    cores = Cores(*[(100.0, 200.0)] * 10, (100.0, 100.0), (60.0, 200.0))
    quiet = [cores.look() for _ in range(10)]

    assert set(quiet) == {1.0}
    assert not any(map(is_slow, quiet))
    assert [cores.look() for _ in range(2)] == [0.5, pytest.approx(0.6)]
    assert cores.waits == 12


def test_a_burst_of_the_clock_is_not_what_a_core_usually_reaches():
    cores = Cores(*[(100.0, 100.0)] * 20, (150.0, 100.0), *[(100.0, 100.0)] * 5)

    assert not any(is_slow(cores.look()) for _ in range(26))


def test_fewer_threads_than_cores_are_looked_at_on_the_first_core():
    cores = Cores(*[(100.0, 100.0), (100.0, 50.0)] * 2)

    assert [cores.look(threads) for threads in (1, 1, 2, 2)] == [1, 1, 1, pytest.approx(0.5, 0.1)]
    assert cores.asked == [1, 1, 2, 2]


def test_the_end_of_a_round_is_the_beginning_of_the_next():
    cores = Cores((100.0, 100.0), (100.0, 100.0), tick_s=FRESH_S / 4)

    assert cores.look() == cores.look() == 1.0
    assert (len(cores.asked), cores.waits) == (1, 1)
    cores.now_s += 1
    cores.look()
    assert (len(cores.asked), cores.waits) == (2, 2)


def test_where_nothing_tells_the_rate_nothing_is_known():
    cores = Cores((), ())

    assert cores.look() is None
    assert cores.waits == 1


def test_many_cores_are_not_all_looked_at(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    cores = Cores((100.0,) * 64)
    cores.look(64)

    assert cores.asked == [MOST_CORES]


@pytest.mark.parametrize(("share", "slow"), [(SLOW_BELOW - 0.01, True), (SLOW_BELOW, False), (1.1, False)])
def test_slow_is_what_a_clock_does_not_explain(share, slow):
    assert is_slow(share) is slow


def test_real_cores_have_rates_and_threads_stay_where_they_were(monkeypatch):
    monkeypatch.undo()
    before = os.sched_getaffinity(0)
    rates = core_rates(sorted(before))

    assert len(rates) == len(before)
    assert all(1e9 < rate < 1e13 for rate in rates)
    assert os.sched_getaffinity(0) == before
    assert core_rates([]) == ()


def test_a_core_that_may_not_be_used_makes_the_rates_unknown(monkeypatch):
    monkeypatch.undo()

    assert core_rates([10_000]) == ()
