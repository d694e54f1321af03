"""One visitor cannot fill the queue: each limit refuses by name, and queues nothing."""

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.store.submission import _QueueLimits, limits


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("WAITING_PER_OWNER", "2 runs of yours are queued, the limit is 2: nothing was added"),
        ("WAITING_PER_ADDRESS", "2 runs from your network address are queued, the limit is 2: nothing was added"),
        ("WAITING", "2 runs on this server are queued, the limit is 2: nothing was added"),
    ],
)
def test_waiting_runs_are_limited(store, experiment, monkeypatch, limit, text):
    monkeypatch.setenv(f"GPUEXPLORE_LIMIT_{limit}", "2")
    for _ in range(2):
        store.submit(experiment, "ada", address="10.0.0.1")

    with pytest.raises(InvalidInput, match=text):
        store.submit(experiment, "ada", address="10.0.0.1")

    assert store.queue_length() == 2


def test_others_cannot_fill_the_queue_for_an_address_of_which_hardly_any_run_waits(store, experiment, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LIMIT_WAITING", "10")
    for number in range(10):
        store.submit(experiment, f"cookie {number}", address="10.0.0.1")

    with pytest.raises(InvalidInput, match="10 runs on this server are queued, the limit is 10"):
        store.submit(experiment, "one more", address="10.0.0.1")
    for number in range(5):
        store.submit(experiment, f"honest {number}", address="10.0.0.2")
    with pytest.raises(InvalidInput, match="15 runs on this server are queued, the limit is 10"):
        store.submit(experiment, "the sixth", address="10.0.0.2")


def test_other_owners_and_addresses_are_not_refused(store, experiment, monkeypatch):
    for limit in ("WAITING_PER_OWNER", "WAITING_PER_ADDRESS"):
        monkeypatch.setenv(f"GPUEXPLORE_LIMIT_{limit}", "1")

    for owner, address in (("ada", "10.0.0.1"), ("bob", "10.0.0.2"), ("cyd", None), ("dan", None)):
        store.submit(experiment, owner, address=address)

    assert store.queue_length() == 4


def test_device_seconds_of_an_hour_are_limited(store, experiment, claim, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LIMIT_DEVICE_SECONDS_PER_HOUR", "100")
    store.submit(experiment, "ada", estimated_s=1.0)
    store.add_device_seconds(claim(), 60.0)
    store.submit(experiment, "ada", estimated_s=30.0)

    with pytest.raises(
        InvalidInput, match=r"may take 20\.0 s, and you have used 1 min 30 s of device time in this hour"
    ):
        store.submit(experiment, "ada", estimated_s=20.0)
    store.submit(experiment, "bob", estimated_s=20.0)


def test_of_several_runs_all_are_queued_or_none(store, experiment, experiment_on, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LIMIT_WAITING_PER_OWNER", "1")

    with pytest.raises(InvalidInput, match="1 runs of yours are queued"):
        store.submit_all({experiment: 1.0, experiment_on("gpu"): 1.0}, "ada")

    assert store.queue_length() == 0


def test_limits_are_settings():
    assert limits({}) == _QueueLimits()
    assert limits({"GPUEXPLORE_LIMIT_WAITING": "7"}).waiting == 7
    with pytest.raises(InvalidInput, match="GPUEXPLORE_LIMIT_WAITING 'many': expected whole numbers from 1"):
        limits({"GPUEXPLORE_LIMIT_WAITING": "many"})
