"""Runs as their owners see them."""

import re

import pytest

from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.model import Progress, RunState


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


def test_results_come_in_order_of_arrival_or_of_cases(store, experiment, failed):
    run_id = store.submit(experiment, "ada")
    claim, cases = store.claim("host"), experiment.cases()
    for case in reversed(cases):
        store.add_result(claim, failed(case))

    assert [one.case for one in store.results_after(run_id, 0)] == list(reversed(cases))
    assert [one.case for one in store.results_after(run_id, 3)] == [cases[0]]
    assert [result.case for result in store.load(run_id).results] == list(cases)
    assert store.load_summary(run_id).results == ()
    assert store.load_summary(run_id).progress == Progress(4, 4)


def test_history_is_newest_first_and_can_be_narrowed(store, experiment):
    first, other, last = (store.submit(experiment, owner) for owner in ("ada", "bob", "ada"))
    store.request_cancel(first, "ada")

    assert [one.id for one in store.history()] == [last, other, first]
    assert [one.id for one in store.history("ada")] == [last, first]
    assert [one.id for one in store.history(states=[RunState.CANCELLED])] == [first]
    assert [one.id for one in store.history(limit=1, skip=1)] == [other]


def test_run_measured_elsewhere_is_stored_as_done(store, experiment, failed):
    results = [failed(case) for case in experiment.cases()[1:3]]

    run = store.load(store.record(experiment, "ada", results=results))

    assert (run.state, run.results, run.progress) == (RunState.DONE, tuple(results), Progress(2, 4))
    assert store.claim("host") is None


def test_foreign_and_repeated_results_are_refused(store, experiment, failed):
    result = failed(experiment.cases()[0])

    with pytest.raises(InvalidInput, match="a case of its own"):
        store.record(experiment, "ada", results=[result, result])
    assert store.history() == ()


def test_waiting_run_is_cancelled_at_once(store, experiment):
    run_id = store.submit(experiment, "ada")

    store.request_cancel(run_id, "ada")

    run = store.load(run_id)
    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by its owner")
    assert run.finished_utc is not None
    assert store.claim("host") is None


def test_running_run_is_only_asked_to_stop(store, experiment):
    run_id = store.submit(experiment, "ada")
    store.claim("host")
    assert not store.cancel_requested(run_id)

    store.request_cancel(run_id, "ada")

    assert store.cancel_requested(run_id)
    assert store.load(run_id).state is RunState.RUNNING


def test_finished_run_cannot_be_cancelled(store, experiment):
    run_id = store.submit(experiment, "ada")
    store.finish(store.claim("host"), RunState.DONE)

    store.request_cancel(run_id, "ada")

    assert store.load(run_id).state is RunState.DONE


def test_only_the_owner_can_cancel(store, experiment):
    run_id = store.submit(experiment, "ada")

    with pytest.raises(InvalidInput, match=f"run {run_id} belongs to somebody else: only its owner can cancel it"):
        store.request_cancel(run_id, "bob")

    assert store.load(run_id).state is RunState.QUEUED
