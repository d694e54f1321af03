"""Runs as their owners see them."""

import re
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import Experiment, Progress, Result, RunState, Status
from gpuexplore.store.tables import ENVIRONMENTS, RESULTS, RUNS
from tests.analysis.made import ok


def test_submitted_run_waits_with_everything_it_was_given(store, experiment):
    run_id = store.submit(experiment, "ada")

    run = store.load(run_id)

    assert re.fullmatch("[a-z0-9]{10}", run_id)
    assert (run.id, run.owner, run.experiment) == (run_id, "ada", experiment)
    assert (run.state, run.progress, run.results) == (RunState.QUEUED, Progress(0, 4), ())
    assert run.created_utc == "2026-01-02T03:04:05.001000+00:00"
    assert run.started_utc is run.finished_utc is None


def test_unknown_run_is_named(store):
    with pytest.raises(NotFound, match="no run 'gone': check the link"):
        store.load("gone")
    with pytest.raises(NotFound, match="gone"):
        store.request_cancel("gone", "ada")


def test_results_come_in_order_of_arrival_or_of_cases(store, experiment, failed, claim):
    run_id = store.submit(experiment, "ada")
    claimed, cases = claim(), experiment.cases()
    for case in reversed(cases):
        store.add_result(claimed, failed(case))

    arrived = store.results_after(run_id, 0)
    assert [result.case for _, result in arrived] == list(reversed(cases))
    assert store.results_after(run_id, arrived[2][0]) == arrived[3:]
    assert [result.case for result in store.load(run_id).results] == list(cases)
    assert store.load_summary(run_id).results == ()
    assert store.load_summary(run_id).progress == Progress(4, 4)


def test_final_result_replaces_a_provisional_one_and_arrives_anew(store, experiment, measured, failed, claim):
    run_id = store.submit(experiment, "ada")
    claimed, (first, second, *_) = claim(), experiment.cases()
    for case in (first, second):
        store.add_result(claimed, replace(measured(case), provisional=True))
    passed = store.load_summary(run_id).progress
    seen = store.results_after(run_id, 0)

    store.add_result(claimed, failed(first))
    store.add_result(claimed, replace(measured(first), provisional=True))  # late: what is final stays

    assert (passed.done, passed.provisional, passed.measured) == (0, 2, 2)
    assert [result.provisional for _, result in seen] == [True, True]
    assert [result for _, result in store.results_after(run_id, seen[-1][0])] == [failed(first)]
    assert [(one.case, one.provisional) for one in store.load(run_id).results] == [(first, False), (second, True)]
    assert store.load_summary(run_id).progress == Progress(1, 4, provisional=1)


@pytest.mark.parametrize("ended_by", ["release", "cancel", "failure"])
def test_first_pass_of_a_run_that_ended_is_final(store, experiment, measured, claim, ended_by):
    run_id = store.submit(experiment, "ada")
    claimed = claim()
    result = measured(experiment.cases()[0])
    store.add_result(claimed, replace(result, provisional=True))

    if ended_by == "failure":
        store.finish(claimed, RunState.FAILED, reason="no worker")
    else:
        store.release(claimed)
        assert store.measured_results(result.environment.device) == ()
        again = claim()
        assert (again.passed, len(again.remaining)) == ({0}, 4)
        if ended_by == "cancel":
            store.release(again)
        store.request_cancel(run_id, "ada")
        store.release(again)

    assert store.load(run_id).results == (result,)
    assert [found for _, found in store.measured_results(result.environment.device)] == [result]


def test_history_is_newest_first_and_can_be_narrowed(store, experiment):
    first, other, last = (store.submit(experiment, owner) for owner in ("ada", "bob", "ada"))
    store.request_cancel(first, "ada")

    assert [one.id for one in store.history()] == [last, other, first]
    assert [one.id for one in store.history("ada")] == [last, first]
    assert [one.id for one in store.history(states=[RunState.CANCELLED])] == [first]
    assert [one.id for one in store.history(limit=1, skip=1)] == [other]


def test_run_measured_elsewhere_is_stored_as_done(store, experiment, failed, claim):
    results = [failed(case) for case in experiment.cases()[1:3]]

    run = store.load(store.record(experiment, "ada", results=results))

    assert (run.state, run.results, run.progress) == (RunState.DONE, tuple(results), Progress(2, 4))
    assert claim() is None


def test_foreign_and_repeated_results_are_refused(store, experiment, failed):
    result = failed(experiment.cases()[0])

    with pytest.raises(InvalidInput, match="one result per case"):
        store.record(experiment, "ada", results=[result, result])
    assert store.history() == ()


def test_waiting_run_is_cancelled_at_once(store, experiment, claim):
    run_id = store.submit(experiment, "ada")

    store.request_cancel(run_id, "ada")

    run = store.load(run_id)
    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by its owner")
    assert run.finished_utc is not None
    assert claim() is None


@pytest.mark.parametrize(
    ("owner", "reason"), [("ada", "cancelled by its owner"), ("root", "cancelled by an administrator")]
)
def test_running_run_is_only_asked_to_stop_and_ends_when_it_is_given_back(store, experiment, claim, owner, reason):
    run_id = store.submit(experiment, "ada")
    held = claim()
    assert not store.cancel_requested(run_id)

    store.request_cancel(run_id, owner, admin=owner == "root")

    assert store.cancel_requested(run_id)
    assert store.load(run_id).state is RunState.RUNNING
    assert store.release(held)
    run = store.load(run_id)
    assert (run.state, run.reason) == (RunState.CANCELLED, reason)
    assert run.finished_utc


def test_finished_run_cannot_be_cancelled(store, experiment, claim):
    run_id = store.submit(experiment, "ada")
    store.finish(claim(), RunState.DONE)

    store.request_cancel(run_id, "ada")

    assert store.load(run_id).state is RunState.DONE


def test_only_the_owner_and_an_administrator_can_cancel(store, experiment, claim):
    run_id = store.submit(experiment, "ada")
    held = claim()
    with pytest.raises(InvalidInput, match=f"run {run_id} belongs to another user: only its owner can cancel it"):
        store.request_cancel(run_id, "bob")
    assert not store.cancel_requested(run_id)

    store.request_cancel(run_id, "root", admin=True)
    store.finish(held, RunState.CANCELLED, reason="cancelled by its owner")

    assert store.load(run_id).reason == "cancelled by an administrator"


def test_runs_that_are_measured_can_be_listed(store, experiment, claim):
    store.submit(experiment, "ada")
    second = store.submit(experiment, "bob")
    first = claim("lab/1").run_id

    assert [(run.id, run.supervisor) for run in store.running()] == [(first, "lab/1")]
    assert claim("lab/2").run_id == second
    assert [run.id for run in store.running()] == [first, second]


def test_reading_sees_one_state_throughout(store, experiment):
    count = select(func.count()).select_from(RUNS)
    with store.reading() as connection:
        before = connection.scalar(count)
        store.submit(experiment, "ada")
        assert connection.scalar(count) == before
    with store.reading() as connection:
        assert connection.scalar(count) == before + 1


def test_every_result_changes_the_number_of_the_newest(store, experiment, failed, claim):
    store.submit(experiment, "ada")
    claimed, numbers = claim(), [store.newest_result()]
    for case in experiment.cases():
        store.add_result(claimed, failed(case))
        numbers.append(store.newest_result())

    assert len(set(numbers)) == 5
    assert numbers == sorted(numbers)


def test_environment_is_stored_once_for_a_whole_run(store):
    results = [ok(1e-3, size=size) for size in (8, 16, 32)]
    shapes = tuple(result.case.shape for result in results)
    wanted = Experiment("matmul", shapes, ("fp32",), ("torch",))

    run = store.load(store.record(wanted, "ada", results=results))

    assert run.results == tuple(results)
    with store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(ENVIRONMENTS)) == 1
        stored = connection.scalars(select(RESULTS.c.payload)).all()
    assert {tuple(payload["environment"]) for payload in stored} == {("started_utc", "before", "after")}


@pytest.mark.parametrize("text", ["nul \x00 in it", "half of a pair \ud800", "plain"])
def test_text_that_a_database_refuses_is_stored_readable(store, experiment, text, claim):
    store.submit(experiment, "ada")
    case = experiment.cases()[0]
    claimed = claim()

    assert store.add_result(claimed, Result(case, Status.ERROR, text))
    assert store.finish(claimed, RunState.FAILED, reason=text)

    run = store.load(claimed.run_id)
    assert run.reason == run.results[0].reason == text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
