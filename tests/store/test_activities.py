"""Activities wait in the queue of runs, and are kept apart from results."""

from datetime import timedelta

import pytest

from gpuexplore.activity import DEVICE, ActivityReport, kinds, of_kind
from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import RunState
from gpuexplore.hardware.identity import device_key
from tests.hardware.processors import ZEN_4, ZEN_5

MISTAKE = of_kind("mistake", {"name": "first-call"}, expected_s=3.0)


def test_activity_is_claimed_in_the_order_of_the_queue(store, claim, experiment):
    run_id, activity = store.submit(experiment, "ada"), store.submit(MISTAKE, "bob")

    assert store.position(activity).estimated_s == 3.0
    assert [claim().run_id, claim().run_id] == [run_id, activity]


def test_what_is_observed_is_kept_in_the_order_of_arrival(store, claim):
    run_id = store.submit(MISTAKE, "ada")
    claimed = claim()

    assert [store.add_observation(claimed, ActivityReport({"step": step})) for step in (1, 2)] == [True, True]
    assert store.add_observation(claimed, ActivityReport({}, {"torch": "2.13.0", DEVICE: device_key(ZEN_4)}))
    found = store.load_activity(run_id)
    assert found.payloads == ({"step": 1}, {"step": 2}, {})
    assert found.arguments == {"name": "first-call"}
    assert (found.device_key, found.software) == (device_key(ZEN_4), {"torch": "2.13.0"})


def test_attempt_that_was_given_up_observes_nothing_and_the_next_begins_anew(store, claim):
    run_id = store.submit(MISTAKE, "ada")
    first = claim()
    store.add_observation(first, ActivityReport({"step": 1}))
    store.release(first)
    second = claim()

    assert not store.add_observation(first, ActivityReport({"step": 2}))
    assert store.load_activity(run_id).payloads == ()
    assert store.add_observation(second, ActivityReport({"step": 1}))


def test_activity_is_no_run_and_a_run_is_no_activity(store, experiment, claim):
    run_id, activity = store.submit(experiment, "ada"), store.submit(MISTAKE, "ada")

    with pytest.raises(NotFound, match=activity):
        store.load(activity)
    with pytest.raises(NotFound, match=run_id):
        store.load_activity(run_id)
    assert [run.id for run in store.history("ada")] == [run_id]
    claim()
    claim()
    assert [run.id for run in store.running_activities()] == [activity]
    assert [run.id for run in store.running()] == [run_id]


def test_only_its_owner_cancels_an_activity(store):
    run_id = store.submit(MISTAKE, "ada")
    with pytest.raises(InvalidInput, match="another user"):
        store.request_cancel(run_id, "bob")
    store.request_cancel(run_id, "ada")

    assert store.load_activity(run_id).state is RunState.CANCELLED


def test_newest_one_that_was_done_alike_is_found(store, claim, clock):
    since = store.now()
    older, newer, other = (
        store.submit(activity, "ada") for activity in (MISTAKE, MISTAKE, of_kind("mistake", {"name": "zeros"}))
    )
    for _ in range(3):
        store.finish(claim(), RunState.DONE)

    assert store.newest_activity(MISTAKE, since).id == newer
    assert store.newest_activity(of_kind("mistake", {"name": "minimum"}), since) is None
    clock.advance(timedelta(hours=1).total_seconds())
    assert store.newest_activity(MISTAKE, store.now()) is None
    assert older != other


def test_unknown_kind_is_refused_by_name():
    with pytest.raises(InvalidInput, match=f"activity 'nap': expected {', '.join(kinds())}"):
        of_kind("nap", {})


def test_what_another_processor_of_the_same_name_did_is_not_the_newest_here(store, claim):
    since = store.now()
    ours, theirs, unknown = ({DEVICE: device_key(ZEN_5)}, {DEVICE: device_key(ZEN_4)}, {})
    ids = []
    for versions in (ours, theirs, unknown):
        ids.append(store.submit(MISTAKE, "ada"))
        done = claim()
        store.add_observation(done, ActivityReport({}, versions))
        store.finish(done, RunState.DONE)

    assert store.newest_activity(MISTAKE, since).id == ids[2]
    assert store.newest_activity(MISTAKE, since, device_keys={device_key(ZEN_5)}).id == ids[0]
    assert store.newest_activity(MISTAKE, since, device_keys=set()) is None
