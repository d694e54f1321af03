"""Devices that are held back measure nothing new, on every supervisor; whoever waits is told why."""

import pytest

from gpuexplore.core.model import Device
from gpuexplore.store import open_store
from gpuexplore.store.database import Action, noted
from gpuexplore.store.turns import Restriction, RestrictionKind, applies, free_of

PAUSED = Restriction("cpu", RestrictionKind.PAUSED, "new cooler")
NAMES = ("cpu", "lab1/cpu", "cuda:0", "lab1/cuda:0")


def reserved(store, clock, seconds=3600, owner="user:ada"):
    clock.advance(seconds)
    until = store.now()
    clock.advance(-seconds)
    return Restriction("cpu", RestrictionKind.RESERVED, owner=owner, until_utc=until)


@pytest.mark.parametrize("kind", [RestrictionKind.PAUSED, RestrictionKind.DRAINED])
def test_nothing_starts_on_a_device_that_is_held_back_until_it_resumes(store, experiment, claim, kind):
    run = store.submit(experiment, "ada")
    store.restrict(Restriction("cpu", kind, "new cooler"), "root")

    assert claim() is None
    assert store.position(run).restriction == f"cpu is {kind}: new cooler"
    assert store.position(run).expected_start_s is None
    assert store.resume("cpu", "root")
    assert store.position(run).restriction is None
    assert claim().run_id == run


def test_other_devices_go_on(store, experiment_on, claim):
    held, free = store.submit(experiment_on("cuda:0"), "ada"), store.submit(experiment_on("cpu"), "ada")
    both = store.submit(experiment_on("cpu", "cuda:0"), "ada")
    store.restrict(Restriction("cuda:0", RestrictionKind.PAUSED), "root")
    claim(devices=("cpu", "cuda:0"))

    assert store.running()[0].id == free
    assert claim(devices=("cpu", "cuda:0")) is None
    told = {run.id: run.restriction for run in store.waiting()}
    assert told == {held: "cuda:0 is paused", both: "cuda:0 is paused"}


@pytest.mark.parametrize(
    ("held", "free"),
    [
        ("cpu", {"cuda:0", "lab1/cuda:0"}),
        ("lab1/cpu", {"cuda:0", "lab1/cuda:0"}),
        ("lab2/cpu", set(NAMES)),
        ("cuda:0", {"cpu", "lab1/cpu"}),
        ("uda:0", set(NAMES)),
    ],
)
def test_a_device_of_one_host_is_held_back_there_under_both_its_names(held, free):
    assert free_of(NAMES, [Restriction(held, RestrictionKind.PAUSED)]) == free


def test_a_name_with_a_host_is_held_back_on_that_host_only():
    held = Restriction("lab1/cuda:0", RestrictionKind.PAUSED)

    assert applies(held, "cuda:0", {"cuda:0", "lab1/cuda:0"})
    assert not applies(held, "cuda:0", {"cuda:0", "lab2/cuda:0"})


def test_the_run_goes_to_the_host_that_is_not_held_back(store, experiment, claim):
    run = store.submit(experiment, "ada")
    store.restrict(Restriction("lab1/cpu", RestrictionKind.DRAINED), "root")

    assert claim("lab1") is None
    assert store.position(run).restriction == "lab1/cpu is drained"
    assert claim("lab2").run_id == run


def test_a_reserved_device_measures_the_runs_of_one_account(store, experiment, claim, clock):
    others, hers = store.submit(experiment, "bob"), store.submit(experiment, "user:ada")
    store.restrict(reserved(store, clock), "root")

    assert "cpu is reserved until 2026-01-02 04:04 UTC" in store.position(others).restriction
    claimed = claim()
    assert claimed.run_id == hers
    assert claim() is None
    assert {run.id: bool(run.restriction) for run in store.waiting()} == {others: True}


def test_a_reservation_ends_by_itself(store, experiment, claim, clock):
    run = store.submit(experiment, "bob")
    store.restrict(reserved(store, clock), "root")
    clock.advance(3601)

    assert store.current_restrictions() == ()
    assert store.position(run).restriction is None
    assert claim().run_id == run


def test_what_is_measured_on_a_paused_device_is_to_stop_and_on_a_drained_one_is_not(store):
    store.restrict(PAUSED, "root")
    store.restrict(Restriction("cuda:0", RestrictionKind.DRAINED), "root")

    assert store.is_paused(("cpu",), NAMES)
    assert store.is_paused(("lab1/cpu",), NAMES)
    assert not store.is_paused(("cuda:0",), NAMES)


def test_a_run_does_not_give_way_to_one_that_is_held_back(store, experiment):
    store.submit(experiment, "bob")
    store.restrict(Restriction("cpu", RestrictionKind.DRAINED), "root")

    assert not store.another_owner_waits("ada", {"cpu"})
    store.resume("cpu", "root")
    assert store.another_owner_waits("ada", {"cpu"})


def test_it_holds_after_a_restart_and_is_written_down(database, clock, experiment, claim, store):
    store.restrict(PAUSED, "command line")
    with open_store(database, clock=clock) as again:
        assert again.current_restrictions() == (PAUSED,)
    store.resume("cpu", "command line")

    assert not store.resume("cpu", "command line")
    assert [(entry.action, entry.object) for entry in noted(store)] == [
        (Action.RESUMED, "cpu"),
        (Action.PAUSED, "cpu"),
    ]


def test_positions_and_the_list_agree_beside_what_is_held_back(store, experiment_on, instance_of):
    devices = [Device("cpu", "cpu", "CPU"), Device("cuda:0", "cuda", "GPU")]
    store.heartbeat(instance_of("lab1"), state="ready", devices=devices)
    runs = [
        store.submit(experiment_on(*asked), "ada") for asked in (("cuda:0",), ("cpu",), ("cpu", "cuda:0"), ("cpu",))
    ]
    store.restrict(Restriction("cuda:0", RestrictionKind.PAUSED), "root")

    listed = {run.id: run for run in store.waiting()}
    assert {run: store.position(run) for run in runs} == listed
    assert [listed[run].position for run in (runs[1], runs[3])] == [1, 2]
    assert [listed[run].restriction for run in runs] == ["cuda:0 is paused", None, "cuda:0 is paused", None]
