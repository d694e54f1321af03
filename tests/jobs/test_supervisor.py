"""The supervisor's loop with an engine that measures nothing."""

import threading
from threading import Event

import pytest

from gpuexplore.errors import GpuExploreError
from gpuexplore.jobs.supervisor.__main__ import warm_all
from gpuexplore.jobs.supervisor.heartbeat import Heartbeat
from gpuexplore.jobs.supervisor.loop import serve
from gpuexplore.jobs.throttle import Throttled
from gpuexplore.model import Device, Measurement, Result, RunState, Status
from gpuexplore.store import open_store

CPU = Device("fake", "fake", "a device for tests")


class FakeEngine:
    """Succeeds at once; `before_group` may do anything first."""

    def __init__(self, before_group=lambda cases: None):
        self.groups = []
        self.before_group = before_group

    def warm(self, device):
        if device.name == "broken":
            raise GpuExploreError("broken was not warmed up")
        return Device(device.id, device.kind, device.name, cores=4)

    def measure(self, cases, on_event, cancelled):
        self.groups.append(cases)
        self.before_group(cases)
        for case in cases:
            if cancelled():
                on_event(Result(case, Status.CANCELLED, "cancelled by its owner"))
                continue
            on_event(case)
            on_event(Result(case, Status.OK, measurement=Measurement((1.0,), 2.0)))

    def close(self):
        pass


@pytest.fixture
def store():
    with open_store() as opened:
        yield opened


@pytest.fixture
def heartbeat(store):
    return Heartbeat(store, "host", [CPU], warming=True)


def served(store, engine, heartbeat, stop=None):
    serve(store, engine, heartbeat, stop=stop or Event(), once=True)


def test_queued_runs_are_measured_group_by_group(store, heartbeat, experiment):
    ids = [store.submit(experiment, owner) for owner in ("ada", "bob")]
    engine = FakeEngine()

    served(store, engine, heartbeat)

    runs = [store.load(one) for one in ids]
    assert [run.state for run in runs] == [RunState.DONE, RunState.DONE]
    assert [[result.case for result in run.results] for run in runs] == [list(experiment.cases())] * 2
    assert [len(group) for group in engine.groups] == [2, 2, 2, 2]


def test_results_are_stored_while_the_run_goes_on(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    seen = []
    engine = FakeEngine(lambda cases: seen.append(store.load(run_id).progress.done))

    served(store, engine, heartbeat)

    assert seen == [0, 2]


def test_cancelled_run_keeps_what_it_has(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    engine = FakeEngine(lambda cases: store.request_cancel(run_id, "ada"))

    served(store, engine, heartbeat)

    run = store.load(run_id)
    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by its owner")
    assert {result.status for result in run.results} == {Status.CANCELLED}
    assert run.progress.done == run.progress.total


def test_broken_engine_fails_its_run_and_the_next_one_is_measured(store, heartbeat, experiment):
    failing, fine = store.submit(experiment, "ada"), store.submit(experiment, "bob")
    errors = iter([GpuExploreError("the worker did not start")])
    engine = FakeEngine(lambda cases: raise_next(errors))

    served(store, engine, heartbeat)

    assert (store.load(failing).state, store.load(failing).reason) == (RunState.FAILED, "the worker did not start")
    assert store.load(fine).state is RunState.DONE


def test_unexpected_error_is_named_in_the_reason(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")

    served(store, FakeEngine(lambda cases: raise_next(iter([ZeroDivisionError("oops")]))), heartbeat)

    assert store.load(run_id).reason == "ZeroDivisionError: oops"


def raise_next(errors):
    error = next(errors, None)
    if error is not None:
        raise error


def test_stop_between_groups_gives_the_run_back_with_its_results(store, heartbeat, experiment):
    run_id, stop = store.submit(experiment, "ada"), Event()

    served(store, FakeEngine(lambda cases: stop.set()), heartbeat, stop)

    assert store.load(run_id).state is RunState.QUEUED
    assert store.load(run_id).progress.done == 2
    engine = FakeEngine()
    served(store, engine, heartbeat)
    assert store.load(run_id).state is RunState.DONE
    assert [one for group in engine.groups for one in group] == list(experiment.cases()[2:])


def test_orphans_of_a_dead_supervisor_are_finished(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    store.claim("host")

    served(store, FakeEngine(), heartbeat)

    assert store.load(run_id).state is RunState.DONE


def test_run_that_was_taken_away_is_left_alone(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    engine = FakeEngine(lambda cases: take_away(store))
    engine_of_other = []

    def take_away(store):
        if not engine_of_other:
            store.requeue_orphans("host")
            engine_of_other.append(store.claim("other"))

    served(store, engine, heartbeat)

    run = store.load(run_id)
    assert (run.state, run.results) == (RunState.RUNNING, ())
    assert len(engine.groups) == 1


def test_heartbeat_reports_state_and_devices(store, heartbeat):
    with heartbeat:
        assert store.supervisor().state == "warming"
        with heartbeat.measuring():
            assert store.supervisor().state == "measuring"
        warm_all(FakeEngine(), heartbeat, [CPU, Device("cuda:0", "cuda", "broken")])
        heartbeat.beat()

    assert store.supervisor().state == "ready"
    assert [device.cores for device in store.supervisor().devices] == [4]
    assert "heartbeat" not in {one.name for one in threading.enumerate()}


def test_paced_question_is_asked_only_when_it_is_due():
    times, answers = iter([0.0, 0.0, 0.0, 0.5, 1.0, 1.0]), iter([False, True])
    paced = Throttled(lambda: next(answers), 1.0, clock=lambda: next(times))

    assert [paced(), paced(), paced()] == [False, False, True]
