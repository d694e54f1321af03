"""A run has one supervisor at a time, and none is lost with one."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import RunState
from gpuexplore.core.serialization import encode
from gpuexplore.store import claims, open_store
from gpuexplore.store.tables import OWNERS, RUNS


def test_many_supervisors_claim_each_run_once(experiment, home, database, store, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LIMIT_WAITING_PER_OWNER", "100")
    ids = [store.submit(experiment, owner) for owner in "abcd" * 8]
    start = threading.Barrier(6)
    with ThreadPoolExecutor(6) as threads:
        parts = list(threads.map(lambda _: _claim_all(database, start), range(6)))

    assert Counter(run_id for part in parts for run_id in part) == Counter(ids)


def _claim_all(database, start):
    with open_store(database) as store:
        start.wait()
        return [claim.run_id for claim in iter(lambda: store.claim("host", {"cpu"}), None)]


def test_postgresql_skips_what_another_supervisor_is_claiming():
    statement = str(claims.NEXT.compile(dialect=postgresql.dialect()))

    assert statement.endswith("FOR UPDATE SKIP LOCKED")


def test_run_is_claimed_only_by_a_supervisor_that_has_its_devices(store, experiment_on, claim):
    """Two hosts on one database ended every run of the other as unsupported."""
    here, there, both = (experiment_on(*devices) for devices in (["lab1/cpu"], ["lab2/cpu"], ["lab2/cpu", "lab2/gpu"]))
    ids = [store.submit(experiment, "ada") for experiment in (both, there, here)]

    assert claim("lab1/x", ["cpu"]).run_id == ids[2]
    assert claim("lab1/x", ["cpu"]) is None
    assert claim("lab2/x", ["cpu"]).run_id == ids[1]
    assert claim("lab2/x", ["cpu"]) is None
    assert claim("lab2/x", ["cpu", "gpu"]).run_id == ids[0]


def test_current_case_is_shown(store, experiment, claim):
    run_id = store.submit(experiment, "ada")
    claimed = claim()

    assert store.set_current(claimed, experiment.cases()[2])
    assert store.load_summary(run_id).progress.current == experiment.cases()[2]
    assert store.set_current(claimed, None)
    assert store.load_summary(run_id).progress.current is None


def test_attempt_that_was_given_up_writes_nothing(store, experiment, failed, claim, instance_of):
    run_id = store.submit(experiment, "ada")
    stale, case = claim(), experiment.cases()[0]
    store.take_over(instance_of("next", scope="host"))
    assert not store.add_result(stale, failed(case))  # waits
    fresh = claim("next")

    assert not store.set_current(stale, case)
    assert not store.add_result(stale, failed(case))
    assert not store.finish(stale, RunState.FAILED, reason="stale")
    assert not store.release(stale)
    assert not store.add_device_seconds(stale, 1.0)
    assert (store.load(run_id).progress.done, store.load(run_id).device_s) == (0, 0)
    assert fresh.attempt == stale.attempt + 1
    assert store.add_result(fresh, failed(case))


def test_finished_run_takes_no_more_results(store, experiment, failed, claim):
    store.submit(experiment, "ada")
    claimed = claim()
    with pytest.raises(InvalidInput, match="final state 'running': expected done, cancelled, failed"):
        store.finish(claimed, RunState.RUNNING)
    assert store.finish(claimed, RunState.DONE)

    assert not store.add_result(claimed, failed(experiment.cases()[0]))


def test_run_of_a_dead_supervisor_is_measured_on_from_where_it_stood(store, experiment, failed, claim, instance_of):
    run_id = store.submit(experiment, "ada")
    cases = experiment.cases()
    store.add_result(claim(), failed(cases[1]))

    assert store.take_over(instance_of("next", scope="host")) == 1

    assert store.load(run_id).state is RunState.QUEUED
    again = claim("next")
    assert again.done == {1}
    assert again.remaining == (cases[0], cases[2], cases[3])


def test_run_of_another_hosts_supervisor_is_taken_only_when_its_lease_has_expired(
    store, experiment, claim, instance_of, silence
):
    store.submit(experiment, "ada")
    claim("other")
    me = instance_of("host")

    assert store.silent_supervisors() == set()
    assert store.take_over(me, {"other"}) == 0
    silence("other", 29)
    assert store.silent_supervisors() == set()
    silence("other", 2)
    assert store.silent_supervisors() == {"other"}
    assert store.take_over(me, {"nobody"}) == 0
    assert store.take_over(me, {"other"}) == 1


def test_supervisor_never_takes_over_from_itself(store, experiment, claim, instance_of):
    store.submit(experiment, "ada")
    claim("host", scope="locks")

    assert store.take_over(instance_of("host", scope="locks")) == 0
    assert store.take_over(instance_of("next", scope="locks")) == 1


def test_run_to_be_cancelled_is_cancelled_when_it_is_taken_over(store, experiment, claim, instance_of):
    run_id = store.submit(experiment, "ada")
    claim()
    store.request_cancel(run_id, "ada")

    store.take_over(instance_of("next", scope="host"))

    assert (store.load(run_id).state, store.load(run_id).reason) == (RunState.CANCELLED, "cancelled by its owner")


def test_run_that_ends_its_supervisor_again_and_again_fails(store, experiment, claim, instance_of):
    run_id = store.submit(experiment, "ada")
    for attempt in range(3):
        claim(f"host/{attempt}", scope="locks")
        store.take_over(instance_of("next", scope="locks"))

    run = store.load(run_id)
    assert (run.state, run.reason) == (
        RunState.FAILED,
        "the measuring process ended 3 times during this run",
    )


def test_run_that_is_given_back_may_be_given_back_without_end(store, experiment, claim):
    run_id = store.submit(experiment, "ada")
    for _ in range(5):
        assert store.release(claim())

    assert store.load(run_id).state is RunState.QUEUED


def test_run_waits_in_vain_for_an_owner_who_has_gone(store, experiment, claim):
    gone, here, measured = (store.submit(experiment, owner) for owner in ("gone", "here", "gone"))
    with store.writing() as connection:
        earlier = update(OWNERS).where(OWNERS.c.owner == "gone")
        connection.execute(earlier.values(seen_epoch_s=OWNERS.c.seen_epoch_s - 599))
    assert store.drop_abandoned() == 0
    with store.writing() as connection:
        connection.execute(earlier.values(seen_epoch_s=OWNERS.c.seen_epoch_s - 2))
        connection.execute(update(RUNS).where(RUNS.c.id == measured).values(state=RunState.RUNNING))

    assert store.drop_abandoned() == 1

    assert store.load(gone).state is RunState.CANCELLED
    assert "its owner was away for 10 min" in store.load(gone).reason
    assert [store.load(run_id).state for run_id in (here, measured)] == [RunState.QUEUED, RunState.RUNNING]


def test_owner_who_is_seen_keeps_the_place(store, experiment):
    run_id = store.submit(experiment, "ada")
    with store.writing() as connection:
        connection.execute(update(OWNERS).values(seen_epoch_s=OWNERS.c.seen_epoch_s - 700))

    store.see("ada")

    assert store.drop_abandoned() == 0
    assert store.load(run_id).state is RunState.QUEUED


def test_a_queued_run_of_another_version_fails_with_its_reason_and_the_queue_goes_on(store, experiment, claim):
    unknown, known = (store.submit(experiment, owner) for owner in "ab")
    with store.writing() as connection:
        told = encode(experiment) | {"operation": "fft"}
        connection.execute(update(RUNS).where(RUNS.c.id == unknown).values(experiment=told))

    assert claim() is None
    assert claim().run_id == known
    with store.reading() as connection:
        state, reason = connection.execute(select(RUNS.c.state, RUNS.c.reason).where(RUNS.c.id == unknown)).one()
    assert state == RunState.FAILED
    assert "operation 'fft'" in reason
