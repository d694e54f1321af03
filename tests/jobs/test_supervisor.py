"""The supervisor's loop with an engine that measures nothing."""

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from itertools import groupby
from threading import Event

import pytest
from sqlalchemy import select, update

from gpuexplore.activity import ActivityReport, of_kind
from gpuexplore.core.errors import DeviceLost, GpuExploreError, StoreUnavailable
from gpuexplore.core.model import Device, Measurement, Result, RunState, Status
from gpuexplore.jobs import heartbeat as module
from gpuexplore.jobs import queue_loop
from gpuexplore.jobs.engines import PREEMPT
from gpuexplore.jobs.heartbeat import Heartbeat, Housekeeping
from gpuexplore.jobs.queue_loop import serve, throttled
from gpuexplore.jobs.supervisor import EXIT_UNUSABLE, _warm_all
from gpuexplore.measure.sample import slow_cases
from gpuexplore.store import Supervisor, open_store
from gpuexplore.store.tables import RUNS, SUPERVISORS
from tests.analysis.made import ok
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on
from tests.waiting import DEADLINE_S, wait_until

CPU = Device("fake", "fake", "a device for tests")
ME = Supervisor("host/1", host="host", scope="locks", pid=1, version="1")
DEAD = Supervisor("host/0", host="host", scope="locks", pid=1, version="1")


class FakeEngine:
    """Succeeds at once; `before_group` may do anything first."""

    side_by_side = False

    def __init__(self, before_group=lambda cases: None):
        self.batches = []
        self.groups = []
        self.before_group = before_group

    def warm(self, device):
        if device.name == "broken":
            raise GpuExploreError("broken was not warmed up")
        return Device(device.id, device.kind, device.name, cores=4)

    def measure(self, cases, on_event, cancelled):
        self.batches.append(cases)
        for _, group in groupby(cases, key=lambda case: case.group):
            self.measure_group(tuple(group), on_event, cancelled)

    def measure_group(self, cases, on_event, cancelled):
        self.groups.append(cases)
        self.before_group(cases)
        for case in cases:
            if cancelled():
                on_event(Result(case, Status.CANCELLED, "the run was cancelled"))
                continue
            on_event(case)
            on_event(Result(case, Status.OK, measurement=Measurement((1.0,), 2.0)))

    def perform(self, activity, on_observation, cancelled):
        self.before_group(activity)
        on_observation(ActivityReport({"device": activity.device}))

    def close(self):
        pass


@pytest.fixture
def store():
    with open_store() as opened:
        yield opened


@pytest.fixture
def heartbeat(store):
    return Heartbeat(store, ME, [CPU], warming=True)


def served(store, engine, heartbeat, stop=None):
    serve(store, engine, heartbeat, stop=stop or Event(), once=True)


def test_queued_runs_are_measured_with_all_cases_of_a_device_at_once(store, heartbeat, experiment):
    ids = [store.submit(experiment, owner) for owner in ("ada", "bob")]
    engine = FakeEngine()

    served(store, engine, heartbeat)

    runs = [store.load(one) for one in ids]
    assert [run.state for run in runs] == [RunState.DONE, RunState.DONE]
    assert [[result.case for result in run.results] for run in runs] == [list(experiment.cases())] * 2
    assert [len(batch) for batch in engine.batches] == [4, 4]


def test_results_are_stored_while_the_run_goes_on(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    seen = []
    engine = FakeEngine(lambda cases: seen.append(store.load(run_id).progress.done))

    served(store, engine, heartbeat)

    assert seen == [0, 2]


def begun_on(store, processor, experiment):
    """Return the id of a run that a supervisor which died began on a processor, and its first result."""
    store.heartbeat(DEAD, state="measuring", devices=[processor])
    run_id = store.submit(experiment, "ada")
    claim = store.claim(DEAD.name, {CPU.id})
    made = measured_on(processor, ok(1e-3, size=8))
    first = replace(made, case=experiment.cases()[0])
    store.add_result(claim, first)
    store.release(claim)
    return run_id, first


def test_run_that_another_processor_began_as_in_a_copied_home_is_not_finished_here(store, experiment):
    here, there = (replace(processor, id=CPU.id) for processor in (ZEN_5, ZEN_4))
    run_id, first = begun_on(store, there, experiment)
    engine = FakeEngine()

    served(store, engine, Heartbeat(store, ME, [here]))

    run = store.load(run_id)
    assert run.state is RunState.FAILED
    assert run.reason.startswith("fake is now another processor, AMD EPYC")
    assert "it is Zen 4, not Zen 5" in run.reason
    assert [result.case for result in run.results] == [first.case]
    assert engine.batches == []


@pytest.mark.parametrize("identity", [ZEN_4.identity, None])
def test_run_that_this_processor_began_goes_on_where_it_was(store, experiment, identity):
    before = replace(ZEN_4, id=CPU.id, identity=identity)
    run_id, _ = begun_on(store, before, experiment)
    engine = FakeEngine()

    served(store, engine, Heartbeat(store, ME, [replace(before, peaks=(), bandwidth=None)]))

    assert store.load(run_id).state is RunState.DONE
    assert sum(len(batch) for batch in engine.batches) == len(experiment.cases()) - 1


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

    class StoppedAfterwards(FakeEngine):
        def measure_group(self, cases, on_event, cancelled):
            super().measure_group(cases, on_event, cancelled)
            stop.set()

    served(store, StoppedAfterwards(), heartbeat, stop)

    assert store.load(run_id).state is RunState.QUEUED
    assert store.load(run_id).progress.done == 2
    engine = FakeEngine()
    served(store, engine, heartbeat)
    assert store.load(run_id).state is RunState.DONE
    assert [one for group in engine.groups for one in group] == list(experiment.cases()[2:])


def test_orphans_of_a_dead_supervisor_are_finished(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    store.heartbeat(DEAD, state="measuring", devices=[CPU])
    store.claim(DEAD.name, {"fake"})

    served(store, FakeEngine(), heartbeat)

    assert store.load(run_id).state is RunState.DONE


def test_run_that_was_taken_away_is_left_alone(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    engine = FakeEngine(lambda cases: take_away(store))
    other = Supervisor("other/1", host="other", scope="locks", pid=2, version="1")
    claims = []

    def take_away(store):
        store.heartbeat(ME, state="measuring", devices=[CPU])
        if not claims:
            store.take_over(other)
            store.heartbeat(other, state="measuring", devices=[CPU])
            claims.append(store.claim(other.name, {"fake"}))

    with pytest.raises(AssertionError, match="nothing is left to do"):
        serve(store, engine, heartbeat, stop=Once())

    run = store.load(run_id)
    assert (run.state, run.results) == (RunState.RUNNING, ())
    assert len(engine.batches) == 1


class Once(Event):
    """A stop that is never set, and fails the test when the loop has nothing left to do."""

    def wait(self, timeout=None):
        raise AssertionError("nothing is left to do")


@pytest.mark.parametrize(
    ("settings", "words", "said"),
    [
        ({"GPUEXPLORE_HOME": "/proc/nowhere"}, (), "GPUEXPLORE_HOME '/proc/nowhere': expected directories"),
        ({}, ("--log", "/proc/nowhere/x.log"), "log '/proc/nowhere/x.log': expected files that can be written"),
        ({"GPUEXPLORE_DATABASE_URL": "nonsense://"}, (), "database 'GPUEXPLORE_DATABASE_URL': expected"),
    ],
)
def test_what_cannot_be_used_is_a_sentence_and_no_traceback(tmp_path, settings, words, said):
    environment = {**os.environ, "GPUEXPLORE_HOME": str(tmp_path), "GPUEXPLORE_LOCKS": str(tmp_path), **settings}
    command = [sys.executable, "-m", "gpuexplore.jobs.supervisor", "--once", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert done.returncode == EXIT_UNUSABLE
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_lease_tells_state_and_devices(store, heartbeat):
    with heartbeat:
        assert store.supervisor().state == "warming"
        with heartbeat.measuring():
            assert store.supervisor().state == "measuring"
        _warm_all(FakeEngine(), heartbeat, [CPU, Device("cuda:0", "cuda", "broken")])
        heartbeat.beat()
        assert store.supervisor().state == "ready"
        assert [device.cores for device in store.supervisor().devices] == [4]

    assert store.supervisor() is None
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("heartbeat")]


def test_signs_of_life_end_when_the_loop_is_stuck(store, monkeypatch):
    signs = []
    monkeypatch.setattr(module, "BEAT_S", 0.01)
    heartbeat = Heartbeat(store, ME, [CPU], sign_life=lambda: signs.append(time.monotonic()))
    heartbeat._stop = CountedWaits()
    with heartbeat:
        wait_until(lambda: len(signs) > 2)
        heartbeat._ticked_s -= module.STUCK_S
        heartbeat._stop.let_pass(4)  # a sign may have been on its way
        count = len(signs)
        heartbeat._stop.let_pass(8)
        assert len(signs) == count
        heartbeat.tick()
        wait_until(lambda: len(signs) > count)


class CountedWaits(Event):
    """Counts how often its two threads came round."""

    rounds = 0

    def wait(self, timeout=None):
        self.rounds += 1
        return super().wait(timeout)

    def let_pass(self, rounds):
        seen = self.rounds
        wait_until(lambda: self.rounds >= seen + rounds)


def test_systemd_is_told_when_it_listens(store, monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with Heartbeat(store, ME, [CPU]):
            told = [systemd.recv(100) for _ in range(2)]

    assert told == [b"WATCHDOG=1", b"READY=1"]


class Failing:
    """A store whose writes fail while `away` is true."""

    def __init__(self, store, away=False):
        self.store, self.away, self.refused = store, away, 0

    def __getattr__(self, name):
        asked = getattr(self.store, name)

        def maybe(*arguments, **named):
            if self.away:
                self.refused += 1
                raise StoreUnavailable("The database cannot be used now: its disk is full.")
            return asked(*arguments, **named)

        return maybe


def test_results_are_kept_while_the_database_is_away_and_written_later(store, heartbeat, experiment, monkeypatch):
    monkeypatch.setattr(queue_loop, "RETRY_S", 0.01)
    run_id, failing, seen = store.submit(experiment, "ada"), Failing(store), []

    def before_group(cases):
        failing.away = len(seen) == 0  # away for the first group, back for the second
        seen.append(store.load_summary(run_id).progress.done)

    serve(failing, FakeEngine(before_group), heartbeat, stop=Event(), once=True)

    assert failing.refused > 0
    run = store.load(run_id)
    assert (run.state, [result.case for result in run.results]) == (RunState.DONE, list(experiment.cases()))


def test_supervisor_that_waits_for_the_database_to_end_a_run_does_not_look_stuck(
    store, heartbeat, experiment, monkeypatch
):
    """It was killed as stuck after a minute, and the results it kept died with it."""
    monkeypatch.setattr(queue_loop, "RETRY_S", 0.01)
    run_id, failing = store.submit(experiment, "ada"), Failing(store)
    turns = []

    def tick():
        turns.append(failing.refused)
        failing.away = failing.away and failing.refused < 4

    monkeypatch.setattr(heartbeat, "tick", tick)

    class AwayAtTheEnd(FakeEngine):
        def measure(self, cases, on_event, cancelled):
            failing.away = True
            for case in cases:
                on_event(Result(case, Status.OK, measurement=Measurement((1.0,), 2.0)))

    serving = threading.Thread(
        target=serve,
        args=(failing, AwayAtTheEnd(), heartbeat),
        kwargs={"stop": Event(), "once": True},
        daemon=True,  # it would never end if it did not tick
    )
    serving.start()
    serving.join(DEADLINE_S)

    assert store.load(run_id).state is RunState.DONE
    assert len(store.load(run_id).results) == 4
    assert len(set(turns)) > 2  # it turned between refusals


def test_database_that_is_away_ends_nothing(store, heartbeat, experiment, monkeypatch):
    monkeypatch.setattr(queue_loop, "RETRY_S", 0.001)
    failing, stop = Failing(store, away=True), Event()
    run_id = store.submit(experiment, "ada")
    serving = threading.Thread(target=serve, args=(failing, FakeEngine(), heartbeat), kwargs={"stop": stop})
    serving.start()
    wait_until(lambda: failing.refused > 5)

    failing.away = False

    wait_until(lambda: store.load_summary(run_id).state is RunState.DONE)
    stop.set()
    serving.join()
    assert store.load(run_id).progress.done == 4


class TwoPasses(FakeEngine):
    """Reports a provisional result of each case, then its final one; once cancelled, all at once, as a runner does."""

    def measure(self, cases, on_event, cancelled):
        self.batches.append(cases)
        for case in cases:
            if cancelled():
                on_event(Result(case, Status.CANCELLED, "the run was cancelled"))
            else:
                on_event(case)
                on_event(Result(case, Status.OK, measurement=Measurement((1.0,), 2.0), provisional=True))
        for case in cases:
            samples_s = (1.0,) if cancelled() else (1.0, 2.0)
            self.before_group([case])
            on_event(Result(case, Status.OK, measurement=Measurement(samples_s, 2.0)))


@pytest.fixture
def short_turns(monkeypatch):
    monkeypatch.setattr(queue_loop, "TIME_SLICE_S", 1e-9)
    monkeypatch.setattr(queue_loop, "YIELD_POLL_S", 0.0)


def test_run_yields_after_its_first_pass_keeps_it_and_goes_on_with_what_has_no_final_result(
    store, heartbeat, experiment, short_turns
):
    long, short = (store.submit(experiment, owner, estimated_s=seconds) for owner, seconds in (("a", 100), ("b", 1)))
    engine, seen = TwoPasses(), []
    claim = store.claim

    def noted_claim(*arguments):
        seen.append([store.load_summary(run_id).progress for run_id in (long, short)])
        return claim(*arguments)

    double = Failing(store)
    double.claim = noted_claim
    served(double, engine, heartbeat)

    assert (seen[1][0].done, seen[1][0].provisional) == (0, 4)
    runs = [store.load(run_id) for run_id in (long, short)]
    assert [run.state for run in runs] == [RunState.DONE] * 2
    assert not any(result.provisional for run in runs for result in run.results)
    assert len(engine.batches) > 2
    assert all(len(batch) <= 4 for batch in engine.batches)


class LeavesOff(FakeEngine):
    """Reports a provisional result of each case, then final ones; where others go first, it finishes none."""

    CALL_S = 1.0

    def __init__(self):
        super().__init__()
        self.order = []

    def measure(self, cases, on_event, cancelled):
        self.batches.append(cases)
        for case in self._passed(cases):
            self._tell("first", case, on_event, provisional=True)
        for case in cases:
            if cancelled() == PREEMPT:
                on_event(Result(case, Status.CANCELLED, "left off"))
            else:
                self._tell("final", case, on_event, provisional=False)

    def _passed(self, cases):
        return cases

    def _tell(self, what, case, on_event, *, provisional):
        self.order.append((what, case.dtype))
        on_event(Result(case, Status.OK, measurement=Measurement((self.CALL_S,), 2.0), provisional=provisional))


def test_everybodys_first_pass_comes_before_anybodys_second(store, heartbeat, experiment):
    dtypes = ("fp64", "fp32", "fp16", "bf16", "fp8e4m3", "fp8e5m2")
    ids = [store.submit(replace(experiment, dtypes=(dtype,)), f"owner {dtype}", estimated_s=2.0) for dtype in dtypes]
    engine = LeavesOff()

    served(store, engine, heartbeat)

    assert [store.load(run_id).state for run_id in ids] == [RunState.DONE] * 6
    assert not any(result.provisional for run_id in ids for result in store.load(run_id).results)
    cases = len(experiment.cases())
    passes = [(what, dtype) for what, dtype in engine.order[: 6 * cases]]
    assert passes == [("first", dtype) for dtype in dtypes for _ in range(cases)]


class LeavesSlowForLater(LeavesOff):
    """Leaves the larger size for later, as a worker that knows by the smaller one that it is slow."""

    def _passed(self, cases):
        return cases[:-1] or cases


@pytest.mark.parametrize("call_s", [1.0, slow_cases.SHORTEST_S / 2])
def test_first_pass_is_made_without_what_is_slow_by_what_was_seen(store, heartbeat, experiment, monkeypatch, call_s):
    monkeypatch.setattr(queue_loop, "YIELD_POLL_S", 0.0)
    monkeypatch.setattr(LeavesOff, "CALL_S", call_s)
    asked = replace(experiment, implementations=("fine",))
    ids = [store.submit(asked, owner, estimated_s=2.0) for owner in ("ada", "bob")]
    engine = LeavesSlowForLater()

    served(store, engine, heartbeat)

    assert [store.load(run_id).state for run_id in ids] == [RunState.DONE] * 2
    first_slice = engine.order[: engine.order.index(("final", "fp32"))]
    assert len(first_slice) == (2 if call_s == 1.0 else 1)


def test_second_run_of_one_waits_for_the_second_pass_of_another(store, heartbeat, experiment):
    ids = [store.submit(experiment, "ada", estimated_s=20.0) for _ in range(2)]
    ids.append(store.submit(experiment, "bob", estimated_s=20.0))
    engine, ended = LeavesOff(), []
    finish = store.finish
    double = Failing(store)
    double.finish = lambda claim, *state, **why: ended.append(claim.run_id) or finish(claim, *state, **why)

    served(double, engine, heartbeat)

    first, second, other = ids
    assert ended in ([first, other, second], [other, first, second])


def test_run_that_is_cancelled_keeps_its_first_pass_as_final(store, heartbeat, experiment, monkeypatch):
    monkeypatch.setattr(queue_loop, "CANCEL_POLL_S", 0.0)
    run_id = store.submit(experiment, "ada")

    served(store, TwoPasses(lambda _: store.request_cancel(run_id, "ada")), heartbeat)

    run = store.load(run_id)
    assert (run.state, run.progress.done, run.progress.provisional) == (RunState.CANCELLED, 4, 0)
    assert {result.status for result in run.results} == {Status.OK}


def test_run_of_the_only_owner_does_not_yield(store, heartbeat, experiment, short_turns):
    first, _ = (store.submit(experiment, "ada") for _ in range(2))
    engine = TwoPasses()

    served(store, engine, heartbeat)

    assert [len(batch) for batch in engine.batches] == [4, 4]
    assert store.load(first).state is RunState.DONE


def test_device_seconds_are_booked(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")

    served(store, FakeEngine(lambda cases: time.sleep(0.001)), heartbeat)

    assert store.load(run_id).device_s > 0


def test_stop_in_a_group_gives_the_run_back_without_its_unmeasured_cases(store, heartbeat, experiment):
    run_id, stop = store.submit(experiment, "ada"), Event()

    class Stopped(FakeEngine):
        def measure(self, cases, on_event, cancelled):
            on_event(Result(cases[0], Status.OK, measurement=Measurement((1.0,), 2.0)))
            stop.set()
            assert cancelled()
            on_event(Result(cases[1], Status.CANCELLED, "the run was cancelled"))

    served(store, Stopped(), heartbeat, stop)

    run = store.load(run_id)
    assert (run.state, [result.status for result in run.results]) == (RunState.QUEUED, [Status.OK])
    with store.reading() as connection:
        assert connection.scalar(select(RUNS.c.lost)) == 0


def test_silent_supervisor_of_another_host_is_believed_dead_at_the_second_look(store, experiment):
    other = Supervisor("other/1", host="other", scope="its locks", pid=2, version="1")
    run_id = store.submit(experiment, "ada")
    store.heartbeat(other, state="measuring", devices=[CPU])
    store.claim(other.name, {"fake"})
    with store.writing() as connection:
        connection.execute(update(SUPERVISORS).values(beat_epoch_s=SUPERVISORS.c.beat_epoch_s - 3600))
    times = iter([0.0, 0.0, 5.0])
    housekeeping = Housekeeping(store, ME, clock=lambda: next(times))

    housekeeping.do_what_is_due()
    assert store.load(run_id).state is RunState.RUNNING
    housekeeping.do_what_is_due()
    assert store.load(run_id).state is RunState.QUEUED


@pytest.mark.parametrize(("set_by_s", "state"), [(3600.0, RunState.QUEUED), (0.0, RunState.CANCELLED)])
def test_clock_that_is_set_forward_cancels_nobodys_run(store, experiment, monkeypatch, set_by_s, state):
    run_id = store.submit(experiment, "ada")
    mine, databases = iter([0.0, 0.0, 5.0]), iter([1000.0, 1005.0 + set_by_s])
    monkeypatch.setattr(type(store), "epoch_s", lambda _: next(databases))
    housekeeping = Housekeeping(store, ME, clock=lambda: next(mine))

    housekeeping.do_what_is_due()
    with store.writing() as connection:  # away for an hour, or so it seems
        connection.exec_driver_sql("UPDATE owners SET seen_epoch_s = seen_epoch_s - 3600")
    housekeeping.do_what_is_due()

    assert store.load(run_id).state is state


def test_paced_question_is_asked_only_when_it_is_due():
    times, answers = iter([0.0, 0.0, 0.0, 0.5, 1.0, 1.0]), iter([False, True])
    paced = throttled(lambda: next(answers), 1.0, clock=lambda: next(times))

    assert [paced(), paced(), paced()] == [False, False, True]


def test_three_crashes_in_a_row_fail_the_run_and_keep_their_results(store, heartbeat, experiment):
    run_id, engine = store.submit(experiment, "ada"), FakeEngine()
    engine.measure = lambda cases, on_event, cancelled: [
        on_event(Result(case, Status.CRASHED, "SIGSEGV")) for case in cases
    ]

    served(store, engine, heartbeat)

    run = store.load(run_id)
    assert (run.state, len(run.results)) == (RunState.FAILED, 3)
    assert run.reason.startswith("3 crashes in a row: matmul fine")


def test_device_of_a_named_host_is_measured_under_its_own_name_and_reported_as_asked_for(store, heartbeat, experiment):
    named = replace(experiment, devices=("host/fake",))
    run_id, elsewhere = store.submit(named, "ada"), store.submit(replace(experiment, devices=("lab9/fake",)), "ada")
    engine = FakeEngine()

    served(store, engine, heartbeat)

    assert {case.device for group in engine.groups for case in group} == {"fake"}
    assert [result.case for result in store.load(run_id).results] == list(named.cases())
    assert store.load(elsewhere).state is RunState.QUEUED


class ClusterEngine(FakeEngine):
    """Has devices that share no host."""

    side_by_side = True


def test_devices_of_a_cluster_are_measured_at_the_same_time_and_each_by_one_run(store, experiment):
    heartbeat = Heartbeat(store, ME, [replace(CPU, id=name) for name in ("lab1/fake", "lab2/fake")])
    ids = [store.submit(replace(experiment, devices=(name,)), "ada") for name in ("lab1/fake", "lab2/fake") * 2]
    together, at_work = threading.Barrier(2, timeout=DEADLINE_S), []

    def before_group(cases):
        device = cases[0].device
        assert device not in at_work
        at_work.append(device)
        together.wait()
        at_work.remove(device)

    served(store, ClusterEngine(before_group), heartbeat)

    assert [store.load_summary(run_id).state for run_id in ids] == [RunState.DONE] * 4


def test_run_whose_device_is_lost_waits_for_it_and_keeps_its_results(store, heartbeat, experiment):
    run_id = store.submit(experiment, "ada")
    losses = iter([False, True])

    def before_group(cases):
        if next(losses, False):
            heartbeat.replace_devices(())
            raise DeviceLost("lab1 left the cluster")

    served(store, FakeEngine(before_group), heartbeat)
    lost = store.load(run_id)
    heartbeat.replace_devices([CPU])
    served(store, FakeEngine(), heartbeat)

    assert (lost.state, lost.progress.done) == (RunState.QUEUED, 2)
    assert store.load(run_id).state is RunState.DONE


def test_run_that_was_cancelled_when_its_device_was_lost_ends(store, heartbeat, experiment, monkeypatch):
    monkeypatch.setattr(queue_loop, "CANCEL_POLL_S", 0.0)
    run_id = store.submit(experiment, "ada")

    def before_group(cases):
        store.request_cancel(run_id, "ada")
        raise DeviceLost("lab1 left the cluster")

    served(store, FakeEngine(before_group), heartbeat)

    assert store.load_summary(run_id).state is RunState.CANCELLED


def test_activity_waits_its_turn_among_runs_and_keeps_what_it_observes(store, heartbeat, experiment):
    order = []
    first = store.submit(experiment, "ada")
    activity = store.submit(of_kind("mistake", {"name": "first-call"}, device="fake"), "bob")
    last = store.submit(experiment, "cem")

    served(store, FakeEngine(order.append), heartbeat)

    done = store.load_activity(activity)
    assert [work.kind for work in order if hasattr(work, "kind")] == ["mistake"]
    assert (done.state, done.payloads, done.device_s > 0) == (RunState.DONE, ({"device": "fake"},), True)
    assert [store.load(run_id).state for run_id in (first, last)] == [RunState.DONE] * 2


def test_activity_on_a_device_named_with_its_host_is_done_here(store, heartbeat):
    run_id = store.submit(of_kind("mistake", {}, device="host/fake"), "ada")

    served(store, FakeEngine(), heartbeat)

    assert store.load_activity(run_id).payloads == ({"device": "fake"},)


def test_activity_that_fails_says_why(store, heartbeat):
    run_id = store.submit(of_kind("mistake", {}, device="fake"), "ada")

    served(store, FakeEngine(lambda work: raise_next(iter([GpuExploreError("no CUDA")]))), heartbeat)

    assert (store.load_activity(run_id).state, store.load_activity(run_id).reason) == (RunState.FAILED, "no CUDA")


def test_cancelled_activity_ends_as_cancelled(store, heartbeat):
    run_id = store.submit(of_kind("mistake", {}, device="fake"), "ada")
    engine = FakeEngine(lambda work: store.request_cancel(run_id, "ada"))
    perform = engine.perform
    engine.perform = lambda work, on_observation, cancelled: (perform(work, on_observation, cancelled), cancelled())

    served(store, engine, heartbeat)

    assert store.load_activity(run_id).state is RunState.CANCELLED
