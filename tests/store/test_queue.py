"""Whose turn it is, and that a run has one supervisor at a time."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql

from gpuexplore.errors import InvalidInput
from gpuexplore.model import RunState
from gpuexplore.serialization import encode
from gpuexplore.store import open_store, queue
from gpuexplore.store.tables import RUNS


def claims(store):
    return list(iter(lambda: store.claim("host"), None))


def test_owners_take_turns(store, experiment):
    ids = {store.submit(experiment, owner): owner for owner in "aaabbc"}

    assert "".join(ids[claim.run_id] for claim in claims(store)) == "abcaba"


def test_owner_who_measured_least_recently_comes_first(store, experiment):
    for owner in "ab":
        store.submit(experiment, owner)
    claims(store)
    ids = {store.submit(experiment, owner): owner for owner in "bac"}

    assert "".join(ids[claim.run_id] for claim in claims(store)) == "cab"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12))
def test_position_is_the_order_of_the_claims(store, experiment, seed):
    chance = random.Random(seed)
    ids = []
    for _ in range(30):
        ids.append(store.submit(experiment, chance.choice("abcdef")))
        if chance.random() < 0.3:
            store.claim("host")
    waiting = {store.position(one): one for one in ids}
    waiting.pop(None, None)

    assert sorted(waiting) == list(range(1, store.queue_length() + 1))
    assert [claim.run_id for claim in claims(store)] == [waiting[place] for place in sorted(waiting)]


def test_run_that_does_not_wait_has_no_position(store, experiment):
    run_id = store.submit(experiment, "ada")
    store.claim("host")

    assert store.position(run_id) is None
    assert store.position("gone") is None


def test_many_supervisors_claim_each_run_once(experiment, home):
    with open_store() as store:
        ids = [store.submit(experiment, owner) for owner in "abcd" * 15]
    with ThreadPoolExecutor(8) as threads:
        claimed = Counter(one for part in threads.map(lambda _: _claim_all(), range(8)) for one in part)

    assert claimed == Counter(ids)


def _claim_all():
    with open_store() as store:
        return [claim.run_id for claim in claims(store)]


def test_postgresql_skips_what_another_supervisor_is_claiming():
    statement = str(queue._next_number().compile(dialect=postgresql.dialect()))

    assert statement.endswith("FOR UPDATE OF runs SKIP LOCKED")


def test_current_case_is_shown(store, experiment):
    run_id = store.submit(experiment, "ada")
    claim = store.claim("host")

    assert store.set_current(claim, experiment.cases()[2])
    assert store.load_summary(run_id).progress.current == experiment.cases()[2]
    assert store.set_current(claim, None)
    assert store.load_summary(run_id).progress.current is None


def test_attempt_that_was_given_up_writes_nothing(store, experiment, failed):
    run_id = store.submit(experiment, "ada")
    stale, case = store.claim("host"), experiment.cases()[0]
    store.requeue_orphans("host")
    assert not store.add_result(stale, failed(case))  # waits
    fresh = store.claim("host")

    assert not store.set_current(stale, case)
    assert not store.add_result(stale, failed(case))
    assert not store.finish(stale, RunState.FAILED, reason="stale")
    assert not store.release(stale)
    assert store.load(run_id).progress.done == 0
    assert fresh.attempt == stale.attempt + 1
    assert store.add_result(fresh, failed(case))


def test_finished_run_takes_no_more_results(store, experiment, failed):
    store.submit(experiment, "ada")
    claim = store.claim("host")
    assert store.finish(claim, RunState.DONE)

    assert not store.add_result(claim, failed(experiment.cases()[0]))


def test_run_cannot_be_finished_as_running(store, experiment):
    store.submit(experiment, "ada")

    with pytest.raises(InvalidInput, match="final state 'running': accepted are done, cancelled, failed"):
        store.finish(store.claim("host"), RunState.RUNNING)


def test_orphan_is_measured_on_from_where_it_stood(store, experiment, failed):
    run_id = store.submit(experiment, "ada")
    cases = experiment.cases()
    store.add_result(store.claim("host"), failed(cases[1]))

    assert store.requeue_orphans("host") == 1

    assert store.load(run_id).started_utc is None
    again = store.claim("host")
    assert again.done == {1}
    assert again.remaining == (cases[0], cases[2], cases[3])


def test_run_of_a_living_supervisor_is_no_orphan(store, experiment, clock):
    store.heartbeat("other", 1, state="measuring", devices=())
    store.submit(experiment, "ada")
    store.claim("other")

    assert store.requeue_orphans("host") == 0
    clock.advance(61)
    assert store.requeue_orphans("host") == 1


def test_orphan_that_was_to_be_cancelled_is_cancelled(store, experiment):
    run_id = store.submit(experiment, "ada")
    store.claim("host")
    store.request_cancel(run_id, "ada")

    store.requeue_orphans("host")

    assert (store.load(run_id).state, store.load(run_id).reason) == (RunState.CANCELLED, "cancelled by its owner")


def test_run_that_ends_its_supervisor_again_and_again_fails(store, experiment):
    run_id = store.submit(experiment, "ada")
    for _ in range(3):
        store.claim("host")
        store.requeue_orphans("host")

    run = store.load(run_id)
    assert (run.state, run.reason) == (
        RunState.FAILED,
        "the measuring process ended 3 times while it worked on this run",
    )


def test_released_run_is_next_again(store, experiment):
    run_id = store.submit(experiment, "ada")
    store.submit(experiment, "ada")
    store.release(store.claim("host"))

    assert store.position(run_id) == 1


def test_a_queued_run_of_another_version_fails_with_its_reason_and_the_queue_goes_on(store, experiment):
    unknown, known = (store.submit(experiment, owner) for owner in "ab")
    with store.writing() as connection:
        told = encode(experiment) | {"operation": "fft"}
        connection.execute(update(RUNS).where(RUNS.c.id == unknown).values(experiment=told))

    assert store.claim("host") is None
    assert store.claim("host").run_id == known
    with store.reading() as connection:
        state, reason = connection.execute(select(RUNS.c.state, RUNS.c.reason).where(RUNS.c.id == unknown)).one()
    assert state == RunState.FAILED
    assert "operation 'fft'" in reason
