"""The clock probe: a rate where LLVM is, and None where it is not."""

import sys

import pytest

from gpuexplore.devices.cpu_ceiling import probe
from gpuexplore.devices.cpu_ceiling.probe import TRIALS, clock_probe


@pytest.fixture
def anew():
    """Compile again before and after the test."""
    probe._calibrated.cache_clear()
    yield
    probe._calibrated.cache_clear()


def test_the_probe_tells_a_rate_that_a_core_can_have():
    assert 1e9 < clock_probe() < 1e12


def test_the_best_of_several_passes_counts_and_the_first_does_not(monkeypatch):
    rates = iter([9.0, *range(1, TRIALS + 1)])
    monkeypatch.setattr(probe, "_calibrated", lambda: lambda: next(rates))

    assert clock_probe() == TRIALS


def test_without_llvm_the_rate_is_unknown(monkeypatch, anew):
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)

    assert clock_probe() is None


def test_where_llvm_cannot_be_loaded_for_want_of_memory_the_rate_is_unknown(monkeypatch, anew):
    def refused():
        raise OSError("Could not find/load shared object file 'libllvmlite.so'")

    monkeypatch.setattr(probe, "_compiled", refused)

    assert clock_probe() is None
