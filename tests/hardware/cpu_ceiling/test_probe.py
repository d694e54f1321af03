"""The clock probe: a rate where LLVM is, and None where it is not."""

import sys
from itertools import chain, repeat

import pytest

from gpuexplore.hardware.cpu_ceiling import probe
from gpuexplore.hardware.cpu_ceiling.probe import FEWEST_TRIALS, MOST_TRIALS, clock_probe


@pytest.fixture
def anew():
    """Compile again before and after the test."""
    probe._calibrated.cache_clear()
    yield
    probe._calibrated.cache_clear()


def test_the_probe_tells_a_rate_that_a_core_can_have():
    assert 1e9 < clock_probe() < 1e12


def trials(monkeypatch, rates):
    left, taken = chain(rates, repeat(list(rates)[-1])), []
    monkeypatch.setattr(probe, "_calibrated", lambda: lambda: taken.append(next(left)) or taken[-1])
    return taken


def test_a_core_that_raises_its_clock_is_waited_for_and_the_best_trial_counts(monkeypatch):
    rising = [63.0] * 10 + [72.0] * 4 + [80.0] * 5 + [102.0, 101.0]
    taken = trials(monkeypatch, rising)

    assert clock_probe() == 102.0
    assert len(taken) > FEWEST_TRIALS


def test_a_rate_that_never_settles_ends_the_probe(monkeypatch):
    taken = trials(monkeypatch, [1.1**number for number in range(2 * MOST_TRIALS)])

    assert clock_probe() == taken[-1]
    assert len(taken) == MOST_TRIALS


def test_without_llvm_the_rate_is_unknown(monkeypatch, anew):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)

    assert clock_probe() is None


def test_where_llvm_cannot_be_loaded_for_want_of_memory_the_rate_is_unknown(monkeypatch, anew):
    def refused():
        raise OSError("Could not find/load shared object file 'libllvmlite.so'")

    monkeypatch.setattr(probe, "_compiled", refused)

    assert clock_probe() is None
