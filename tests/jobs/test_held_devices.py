"""A device that is held back while something is measured on it: paused, that stops and waits; drained, it ends."""

from threading import Event

import pytest

from gpuexplore.core.model import RunState
from gpuexplore.jobs import queue_loop
from gpuexplore.jobs.heartbeat import Heartbeat
from gpuexplore.jobs.queue_loop import serve
from gpuexplore.store import open_store
from gpuexplore.store.turns import Restriction, RestrictionKind
from tests.jobs.test_supervisor import CPU, ME, FakeEngine


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(queue_loop, "YIELD_POLL_S", 0.0)
    with open_store() as opened:
        yield opened


@pytest.fixture
def measured(store, experiment):
    """Return how to measure a run whose device is held back before its second group."""

    def measure(kind):
        run = store.submit(experiment, "ada")
        engine = FakeEngine(
            lambda _: store.restrict(Restriction(CPU.id, kind), "root") if len(engine.groups) == 2 else None
        )
        serve(store, engine, Heartbeat(store, ME, [CPU]), stop=Event(), once=True)
        return run

    return measure


def test_a_run_on_a_paused_device_waits_with_its_results_and_goes_on_later(store, measured):
    run = measured(RestrictionKind.PAUSED)

    paused = store.load(run)
    assert paused.state is RunState.QUEUED
    assert 0 < paused.progress.measured < paused.progress.total

    store.resume(CPU.id, "root")
    serve(store, FakeEngine(), Heartbeat(store, ME, [CPU]), stop=Event(), once=True)
    assert store.load(run).state is RunState.DONE
    assert store.load(run).progress.done == paused.progress.total


def test_a_run_on_a_drained_device_ends_and_the_next_one_waits(store, measured, experiment):
    run = measured(RestrictionKind.DRAINED)
    later = store.submit(experiment, "bob")
    serve(store, FakeEngine(), Heartbeat(store, ME, [CPU]), stop=Event(), once=True)

    assert store.load(run).state is RunState.DONE
    assert store.load(later).state is RunState.QUEUED
