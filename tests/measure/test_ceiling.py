"""A measured ceiling that a result passes is measured again; a printed one is left alone."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Bandwidth, CacheRoof, Device, Peak, Result, Shape, ThreadRoofs
from gpuexplore.measure import flags
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.runner import measure_cases
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU, QUIET, FakeClock, case, measurement

CASE = case("torch", operation="matmul", shape=Shape.of(m=10, k=10, n=10))  # 2000 FLOP/s in one second


def with_peak(flop_per_s, kind="measured_ceiling"):
    return replace(CPU, peaks=(Peak("fp32", "matrix", flop_per_s, kind, "a test"),))


@pytest.fixture
def fair(monkeypatch):
    """Return how to ask, with the ceilings that measuring again finds, and count how often it is asked."""

    def ask(device, *found, asks=CASE):
        left, asked = list(found), []

        def again(device, threads, *, again):
            asked.append(again)
            given = left.pop(0)
            return given if isinstance(given, Device) else with_peak(given)

        monkeypatch.setattr(flags, "ensure_ceiling", again)
        monkeypatch.setattr(flags, "_STILL_EXCEEDED", set())
        candidate = SimpleNamespace(case=asks, dtype=DTYPES[asks.dtype])
        return flags.with_fair_ceiling(device, candidate, OPERATIONS[asks.operation], measurement(1.0)), asked

    return ask


def test_ceiling_above_the_result_stays(fair):
    assert fair(with_peak(2000.0)) == (with_peak(2000.0), [])


def test_ceiling_below_the_result_is_measured_again_until_it_is_above(fair):
    assert fair(with_peak(1000.0), 1500.0, 2500.0) == (with_peak(2500.0), [True, True])


def test_ceiling_that_stays_below_is_given_up_and_will_be_flagged(fair):
    device, asked = fair(with_peak(1000.0), 1100.0, 1200.0, 1300.0)

    assert (device, len(asked)) == (with_peak(1300.0), flags.ATTEMPTS)


@pytest.mark.parametrize("kind", ["datasheet", "formula", "own"])
def test_printed_peak_is_never_measured(fair, kind):
    assert fair(with_peak(1.0, kind)) == (with_peak(1.0, kind), [])


def test_unknown_peak_stays_unknown(fair):
    assert fair(replace(CPU, peaks=())) == (replace(CPU, peaks=()), [])


def with_roofs(memory, cache, cache_bytes, kind="measured_ceiling"):
    """Return a CPU with one cache; the case moves 1200 bytes in one second."""
    roof = CacheRoof(3, cache_bytes, Bandwidth(cache, kind, "a test"))
    return replace(with_peak(2000.0), bandwidth=Bandwidth(memory, kind, "a test"), caches=(roof,))


@pytest.mark.parametrize(
    ("memory", "cache", "cache_bytes", "asked"),
    [
        (1000.0, 5000.0, 599, [True]),  # 1200 bytes are more than two caches, so memory gave them
        (1000.0, 5000.0, 600, []),  # the cache may have held some
        (1000.0, 1050.0, 2000, [True]),
        (1150.0, 5000.0, 300, []),  # by less than the mix of loads and stores can explain
    ],
)
def test_bandwidth_below_the_result_is_measured_again(fair, memory, cache, cache_bytes, asked):
    healed = with_roofs(1500.0, 5000.0, cache_bytes)
    found, how = fair(with_roofs(memory, cache, cache_bytes), healed)

    assert how == asked
    assert (found == healed) == bool(asked)


def test_what_runs_on_one_thread_is_held_against_the_roofs_of_one(fair):
    """NumPy adds on one thread: 1200 bytes in one second are more than one thread's cache gives, not than all do."""
    low, high = (with_roofs(rate / 2, rate, 2000) for rate in (1000.0, 5000.0))
    whole, healed = (
        replace(high, one_thread=ThreadRoofs(each.peaks, each.bandwidth, caches=each.caches)) for each in (low, high)
    )
    alone = case("numpy", operation="vector_add", shape=Shape.of(n=100))

    assert fair(whole, healed, asks=alone) == (healed, [True])
    assert fair(whole, asks=replace(alone, implementation="numba-cpu")) == (whole, [])


def test_bandwidth_that_stays_below_is_measured_once(fair):
    low = with_roofs(1000.0, 5000.0, 300)

    assert fair(low, low) == (low, [True])
    assert (low.id, None) in flags._STILL_EXCEEDED


def test_printed_bandwidth_is_never_measured(fair):
    assert fair(with_roofs(1.0, 1.0, 1, kind="datasheet"))[1] == []


def test_peaks_that_are_known_after_the_first_pass_stand_in_every_later_result():
    """The first point does not wait for them, and what is concluded has them."""
    events = []
    hooks = ProgressHooks(events.append, with_peaks=lambda device: replace(device, peaks=with_peak(1e15).peaks))
    sums = [case("numpy", operation="vector_add", shape=Shape.of(n=257))]

    measure_cases(sums, replace(CPU, peaks=()), clock=FakeClock(tick_ns=100_000), isolation=QUIET, progress=hooks)

    first, *later = [event for event in events if isinstance(event, Result)]
    assert [result.provisional for result in (first, *later)] == [True, True, False]
    assert not first.environment.device.peaks
    assert {result.environment.device.peaks for result in later} == {with_peak(1e15).peaks}
