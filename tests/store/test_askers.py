"""The same request is measured once for all who ask for it while it waits or goes on."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import func, select, update

from gpuexplore.activity import of_kind
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import RunState
from gpuexplore.store import Wanted, open_store
from gpuexplore.store.prune import purge_deleted
from gpuexplore.store.run_states import ABANDONED_AFTER_S
from gpuexplore.store.tables import OWNERS, RUN_ASKERS, RUNS


@pytest.fixture
def gone(store):
    """Return how to let an owner be away for longer than the queue waits."""

    def away(owner):
        with store.writing() as connection:
            left = update(OWNERS).where(OWNERS.c.owner == owner)
            connection.execute(left.values(seen_epoch_s=OWNERS.c.seen_epoch_s - ABANDONED_AFTER_S - 1))

    return away


def test_the_second_who_asks_gets_the_run_of_the_first(store, experiment, claim):
    first = store.ask(experiment, "ada")
    second = store.ask(experiment, "bob")
    claim()
    third = store.ask(experiment, "cem")

    assert first == second == third
    assert store.askers_of(first) == ("bob", "cem")
    assert store.load(first).owner == "ada"
    assert store.ask(experiment, "bob") == first
    assert store.askers_of(first) == ("bob", "cem")


def test_what_differs_in_anything_measured_is_measured_by_itself(store, experiment, experiment_on):
    first = store.ask(experiment, "ada")
    others = (
        experiment_on("cuda:0"),
        replace(experiment, dtypes=("fp64",)),
        replace(experiment, options=replace(experiment.options, budget_s=0.7)),
        replace(experiment, shapes=experiment.shapes[:1]),
    )

    assert len({first, *(store.ask(other, "bob") for other in others)}) == 5


def test_what_has_ended_or_is_to_end_is_not_joined_and_ones_own_neither(store, experiment, claim):
    done = store.ask(experiment, "ada")
    store.finish(claim(), RunState.DONE)
    cancelled = store.ask(experiment, "ada")
    claim()
    store.request_cancel(cancelled, "ada")
    own = store.ask(experiment, "ada")

    assert len({done, cancelled, own, store.ask(experiment, "ada")}) == 4
    assert store.ask(experiment, "bob") == own


def test_functions_of_users_are_measured_for_themselves_only_and_activities_once(store, experiment):
    private = replace(experiment, implementations=("torch:mine",))
    activity = of_kind("mistake", {"name": "first-call"})

    assert store.ask(private, "ada") != store.ask(private, "bob")
    assert store.ask(activity, "ada") == store.ask(activity, "bob")


def test_thirty_who_ask_at_once_share_one_run(store, database, experiment):
    with open_store(database) as other, ThreadPoolExecutor(8) as threads:  # as two servers with one database
        ids = set(threads.map(lambda number: (store, other)[number % 2].ask(experiment, f"owner {number}"), range(30)))
        with store.reading() as connection:
            counts = [connection.scalar(select(func.count()).select_from(table)) for table in (RUNS, RUN_ASKERS)]

    assert (len(ids), counts) == (1, [1, 29])


def test_joining_counts_for_no_limit(store, experiment, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LIMIT_WAITING", "1")
    run_id = store.ask(experiment, "ada")

    assert store.ask(experiment, "bob") == run_id
    with pytest.raises(InvalidInput, match="nothing was added"):
        store.ask(replace(experiment, dtypes=("fp64",)), "bob")


def test_a_run_has_the_earliest_turn_of_those_who_asked(store, experiment, claim):
    mine = replace(experiment, dtypes=("fp64",))
    first = store.ask(mine, "busy", estimated_s=10.0)
    shared = store.ask(experiment, "busy", estimated_s=10.0)
    between = store.ask(replace(experiment, dtypes=("bf16",)), "cem", estimated_s=1.0)
    assert [store.position(run_id).position for run_id in (first, between, shared)] == [1, 2, 3]

    assert store.ask(experiment, "bob") == shared
    store.order_all()

    assert [store.position(run_id).position for run_id in (first, shared, between)] == [1, 2, 3]


def test_cancelling_hands_the_run_to_the_first_who_asked(store, experiment, claim):
    run_id = store.ask(experiment, "ada")
    for owner in ("bob", "cem"):
        store.ask(experiment, owner)

    assert not store.request_cancel(run_id, "ada")

    assert (store.load(run_id).state, store.load(run_id).owner) == (RunState.QUEUED, "bob")
    assert store.askers_of(run_id) == ("cem",)
    claim()
    assert not store.request_cancel(run_id, "bob")
    assert not store.cancel_requested(run_id)
    assert store.request_cancel(run_id, "cem")
    assert store.cancel_requested(run_id)


def test_who_asked_too_cannot_cancel_and_an_administrator_can(store, experiment):
    run_id = store.ask(experiment, "ada")
    store.ask(experiment, "bob")

    with pytest.raises(InvalidInput, match="belongs to another user"):
        store.request_cancel(run_id, "bob")
    assert store.request_cancel(run_id, "root", admin=True)
    assert store.load(run_id).state is RunState.CANCELLED


def test_a_run_waits_on_while_one_who_asked_is_there(store, experiment, gone):
    run_id = store.ask(experiment, "ada")
    store.ask(experiment, "bob")
    gone("ada")
    assert store.drop_abandoned() == 0

    gone("bob")
    assert store.drop_abandoned() == 1
    assert store.load(run_id).state is RunState.CANCELLED


def test_runs_one_asked_for_are_ones_own_in_lists(store, experiment, experiment_on):
    shared = store.ask(experiment, "ada")
    store.ask(experiment, "bob")
    own = store.submit(experiment_on("cuda:0"), "bob")
    store.submit(experiment, "cem")

    assert [run.id for run in store.listed(Wanted(owner="ada"))] == [shared]
    assert [run.id for run in store.listed(Wanted(owner="bob"))] == [own, shared]


def test_what_was_measured_for_others_is_not_deleted_by_one_of_them(store, experiment, claim):
    run_id = store.ask(experiment, "ada")
    store.ask(experiment, "bob")
    store.finish(claim(), RunState.DONE)

    with pytest.raises(InvalidInput, match=f"run {run_id} is shared with 1 other users"):
        store.delete_run(run_id, "ada")
    store.delete_run(run_id, "root", admin=True)
    assert store.listed(Wanted(owner="bob")) == ()
    purge_deleted(store, "9999")
    with store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(RUN_ASKERS)) == 0
