"""Old runs are erased in short transactions, between which others write; the rest stays."""

from datetime import timedelta

import pytest
from sqlalchemy import event, func, select

from gpuexplore.activity import of_kind
from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import RunState
from gpuexplore.store.tables import OBSERVATIONS, RESULTS, RUNS
from tests.analysis.made import ok
from tests.pages.conftest import told


@pytest.fixture
def fill(store, experiment, claim):
    """Return a function that stores `count` runs that ended now, each with as many results as there are cases."""
    cases = experiment.cases()
    results = [ok(1e-3, size=case.shape["m"], dtype=case.dtype, implementation=case.implementation) for case in cases]

    def made(count=1):
        return [store.record(experiment, "ada", results=results) for _ in range(count)]

    return made


@pytest.fixture
def deleted_rows(store):
    """Return how many rows each transaction deletes, in order."""
    seen = []

    def note(connection, cursor, text, *_):
        if text.startswith("DELETE"):
            seen.append(cursor.rowcount)

    event.listen(store.engine, "after_cursor_execute", note)
    yield seen
    event.remove(store.engine, "after_cursor_execute", note)


def rows(store, table):
    with store.reading() as connection:
        return connection.scalar(select(func.count()).select_from(table))


def moment(clock):
    return clock().isoformat(timespec="microseconds")


def test_runs_that_ended_before_are_erased_with_their_results_and_no_others(store, clock, fill):
    old = fill(5)
    clock.now += timedelta(days=1)
    before = moment(clock)
    (recent,) = fill()
    waiting = store.submit(store.load(recent).experiment, "ada")
    gone = []

    assert store.prune(before, pause=lambda _: None, on_run=gone.append) == 5
    assert gone == old
    assert rows(store, RUNS) == 2
    assert rows(store, RESULTS) == len(store.load(recent).results)
    assert store.load(waiting).state is RunState.QUEUED


def test_no_transaction_erases_more_than_a_batch_and_others_write_between_two(store, clock, fill, deleted_rows):
    runs = fill(20)
    clock.now += timedelta(days=1)
    written = []

    def write_meanwhile(_):
        written.extend(fill())

    assert store.prune(moment(clock), batch=3, pause=write_meanwhile) == 20
    assert max(deleted_rows) <= 3
    assert len(written) >= 20
    assert rows(store, RUNS) == len(written)
    with pytest.raises(NotFound):
        store.load(runs[0])


def test_small_runs_are_erased_together(store, clock, fill, deleted_rows):
    fill(20)
    clock.now += timedelta(days=1)
    pauses = []

    store.prune(moment(clock), batch=100, pause=pauses.append)

    assert sum(deleted_rows) == 20
    assert len(pauses) == len(deleted_rows) < 5


def test_activities_go_with_what_they_observed(store, clock, claim):
    store.submit_activity(of_kind("mistake", {"mistake": "zeros"}), "ada")
    claimed = claim()
    for number in range(7):
        store.add_observation(claimed, told({"n": number}))
    store.finish(claimed, RunState.DONE)
    clock.now += timedelta(days=1)

    assert store.prune(moment(clock), batch=2, pause=lambda _: None) == 1
    assert rows(store, OBSERVATIONS) == 0


def test_a_run_that_is_erased_when_the_power_goes_is_seen_by_nobody_and_erased_next_time(store, clock, fill):
    (run_id,) = fill()
    clock.now += timedelta(days=1)

    def power_goes(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.prune(moment(clock), batch=1, pause=power_goes)
    with pytest.raises(NotFound):
        store.load(run_id)
    assert store.purge_deleted(moment(clock), pause=lambda _: None) == 1
    assert rows(store, RESULTS) == 0


def test_what_was_deleted_is_erased_for_a_second_at_most(store, clock, fill):
    for run_id in fill(3):
        store.delete_run(run_id, "ada")
    clock.now += timedelta(days=1)

    assert store.purge_deleted(moment(clock), most_s=0.0) == 0
    assert store.purge_deleted(moment(clock), pause=lambda _: None) == 3
