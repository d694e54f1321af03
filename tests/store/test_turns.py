"""Whose turn it is, in device seconds; the position that is shown is the order of the claims."""

import random
from dataclasses import replace

import pytest
from sqlalchemy import update

from gpuexplore.core.model import Device, RunState
from gpuexplore.store import Supervisor, open_store
from gpuexplore.store.tables import DEVICE_SECONDS
from gpuexplore.store.turns import LEADER_S

CPU = Device("cpu", "cpu", "CPU")


def measured(store, claim, device_s):
    """Claim the next run, let it take `device_s` of the device, end it, and return its id."""
    claimed = claim()
    if claimed is None:
        return None
    store.add_device_seconds(claimed, device_s)
    store.finish(claimed, RunState.DONE)
    return claimed.run_id


def test_who_used_the_device_least_comes_first(store, experiment, claim):
    for owner, device_s in (("long", 9.0), ("short", 1.0), ("middle", 3.0)):
        store.submit(experiment, owner)
        measured(store, claim, device_s)
    ids = {store.submit(experiment, owner): owner for owner in ("long", "middle", "short", "new")}

    assert [ids[measured(store, claim, 0.1)] for _ in range(4)] == ["new", "short", "middle", "long"]


def test_a_hundred_runs_of_one_wait_behind_the_first_of_everybody_else(store, experiment, claim, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LIMIT_WAITING_PER_OWNER", "100")
    ids = {store.submit(experiment, "busy", estimated_s=1.0): "busy" for _ in range(20)}
    ids |= {store.submit(experiment, owner, estimated_s=1.0): owner for owner in "abc"}

    order = [ids[measured(store, claim, 1.0)] for _ in range(5)]

    assert order == ["busy", "a", "b", "c", "busy"]


def test_who_has_seen_nothing_comes_before_who_has_unless_they_used_far_more(store, experiment, claim):
    for owner, device_s in (("some", 20.0), ("much", 200.0)):
        store.submit(experiment, owner)
        measured(store, claim, device_s)
    store.submit(experiment, "begun")
    begun = claim()
    store.add_device_seconds(begun, 1.0)
    store.submit(experiment, "much")
    assert not store.first_pass_waits("begun", {"cpu"})
    store.submit(experiment, "some")
    assert store.first_pass_waits("begun", {"cpu"})
    assert not store.first_pass_waits("begun", {"cuda:0"})
    store.release(begun)

    assert [run.owner for run in store.waiting()] == ["some", "begun", "much"]


def test_many_cookies_of_one_address_wait_behind_the_first_run_of_another(store, experiment, claim):
    ids = {store.submit(experiment, f"cookie {n}", estimated_s=1.0, address="10.0.0.1"): "flood" for n in range(12)} | {
        store.submit(experiment, name, estimated_s=1.0, address=f"10.0.1.{name}"): name for name in "23"
    }

    order = [ids[measured(store, claim, 1.0)] for _ in range(3)]

    assert order == ["flood", "2", "3"]
    assert store.position(store.submit(experiment, "late", estimated_s=1.0, address="10.0.2.1")).position == 1


def test_new_cookies_of_an_address_that_used_the_device_do_not_begin_anew(store, experiment, claim):
    store.submit(experiment, "first cookie", address="10.0.0.1")
    measured(store, claim, 60.0)
    flood = store.submit(experiment, "second cookie", address="10.0.0.1")
    honest = store.submit(experiment, "ada", address="10.0.0.2")

    assert [store.position(run_id).position for run_id in (honest, flood)] == [1, 2]


def test_ten_behind_one_address_take_turns_and_share_with_another(store, experiment, claim):
    ids = {}
    for _ in range(2):
        ids |= {store.submit(experiment, f"seat {n}", estimated_s=1.0, address="10.0.0.1"): n for n in range(10)}
        ids[store.submit(experiment, "alone", estimated_s=1.0, address="10.0.0.2")] = "alone"

    order = [ids[measured(store, claim, 1.0)] for _ in range(22)]

    assert [seat for seat in order if seat != "alone"] == [*range(10), *range(10)]
    assert [place for place, seat in enumerate(order) if seat == "alone"] in ([1, 2], [1, 3])


@pytest.mark.parametrize("owners", [("ada", "bob"), ("user:ada", "user:bob")])
def test_visitors_of_this_machine_and_accounts_are_no_group(store, experiment, owners):
    first, second = owners
    address = "10.0.0.1" if first.startswith("user:") else None
    for _ in range(2):
        store.submit(experiment, first, estimated_s=5.0, address=address)
    other = store.submit(experiment, second, estimated_s=5.0, address=address)

    assert store.position(other).position == 2
    assert store.position(store.submit(experiment, "cyd", address="10.0.0.9")).position == 3


def test_own_runs_keep_their_order(store, experiment, claim):
    ids = [store.submit(experiment, "ada", estimated_s=seconds) for seconds in (5.0, 0.1, 1.0)]

    assert [measured(store, claim, 0.0) for _ in range(3)] == ids


def test_run_that_is_being_measured_counts_with_what_is_left_of_it(store, experiment, claim):
    store.submit(experiment, "ada", estimated_s=10.0)
    claim()
    ids = {store.submit(experiment, owner, estimated_s=1.0): owner for owner in ("ada", "bob")}

    assert ids[measured(store, claim, 1.0)] == "bob"


def test_device_seconds_count_for_an_hour(store, experiment, claim):
    store.submit(experiment, "ada")
    measured(store, claim, 100.0)
    ada, bob = store.submit(experiment, "ada"), store.submit(experiment, "bob")
    assert store.position(ada).position == 2

    with store.writing() as connection:
        connection.execute(update(DEVICE_SECONDS).values(minute=DEVICE_SECONDS.c.minute - 61))
    store.order_all()

    assert [store.position(run_id).position for run_id in (ada, bob)] == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_position_is_the_order_of_the_claims(store, experiment, claim, seed):
    chance = random.Random(seed)
    ids = []
    for _ in range(30):
        ids.append(store.submit(experiment, chance.choice("abcdef"), estimated_s=chance.uniform(0.1, 5)))
        if chance.random() < 0.3:
            measured(store, claim, chance.uniform(0, 5))
    waiting = {found.position: run_id for run_id in ids if (found := store.position(run_id))}

    assert sorted(waiting) == list(range(1, store.queue_length() + 1))
    assert [run.id for run in store.waiting()] == [waiting[place] for place in sorted(waiting)]
    assert [claim().run_id for _ in waiting] == [waiting[place] for place in sorted(waiting)]


def test_expected_start_is_what_stands_before_by_the_estimates(store, experiment, claim):
    running = store.submit(experiment, "ada", estimated_s=10.0)
    claimed = claim()
    store.add_device_seconds(claimed, 4.0)
    first, second = (store.submit(experiment, owner, estimated_s=3.0) for owner in "bc")

    assert store.position(running) is store.position("gone") is None
    assert store.position(first).expected_start_s == pytest.approx(6.0)
    assert store.position(second).expected_start_s == pytest.approx(9.0)


def test_expected_start_is_unknown_while_nobody_has_the_devices(store, experiment_on, claim):
    run_id = store.submit(experiment_on("lab9/cuda:0"), "ada")
    claim("lab1/x")

    found = store.position(run_id)

    assert (found.position, found.expected_start_s, found.devices) == (1, None, ("lab9/cuda:0",))


def test_runs_for_another_hosts_device_are_not_before(store, experiment_on, claim):
    for device in ("lab1/cpu", "lab1/cpu", "lab2/cpu"):
        last = store.submit(experiment_on(device), "ada")
    claim("lab1/x")

    assert claim("lab2/x").run_id == last
    later = store.submit(experiment_on("lab2/cpu"), "bob")
    assert store.position(later).position == 1


def test_each_device_of_a_cluster_has_a_queue_of_its_own(store, experiment_on, claim):
    nodes = ["lab1/cpu", "lab2/cpu"]
    for node in nodes:
        store.submit(experiment_on(node), "ada", estimated_s=4.0)
        claim("head/x", nodes, side_by_side=True)
    ids = [store.submit(experiment_on(node), owner, estimated_s=8.0) for owner in "bc" for node in nodes]
    several = store.submit(experiment_on(*nodes), "d", estimated_s=2.0)

    places = [store.position(run_id) for run_id in ids]
    assert [(place.position, place.expected_start_s) for place in places] == [(1, 4.0), (1, 4.0), (2, 12.0), (2, 12.0)]
    assert store.position(several).position == 3  # it needs both nodes, and comes before the second runs of b and c
    assert {run.id: run for run in store.waiting()} == {run_id: store.position(run_id) for run_id in [*ids, several]}


def test_another_owner_waits_is_asked_of_other_owners_and_these_devices(store, experiment, experiment_on):
    store.submit(experiment, "ada")
    store.submit(experiment_on("lab2/cpu"), "bob")

    assert not store.another_owner_waits("ada", {"cpu"})
    assert store.another_owner_waits("ada", {"lab2/cpu"})
    assert store.another_owner_waits("cyd", {"cpu"})


@pytest.fixture
def present(database):
    """Return a store by the clock of now: rooms that were opened in it are open."""
    with open_store(database) as opened:
        yield opened


def test_who_leads_an_open_room_goes_first_until_it_is_closed(present, experiment):
    ids = {present.submit(experiment, owner, estimated_s=5.0): owner for owner in ("ada", "bob", "leader")}
    room, _ = present.open_room("leader", "GPU course", 4)
    present.join_room("bob", room, "Bob")
    ids |= {present.submit(experiment, "leader", estimated_s=5.0): "leader again"}

    assert [ids[run.id] for run in present.waiting()] == ["leader", "leader again", "ada", "bob"]
    assert [run.of_leader for run in present.waiting()] == [True, True, False, False]
    assert all(present.position(run.id) == run for run in present.waiting())

    present.close_room("leader", room)
    present.order_all()
    assert [ids[run.id] for run in present.waiting()] == ["ada", "bob", "leader", "leader again"]
    assert not any(run.of_leader for run in present.waiting())


def test_what_a_leader_asked_for_goes_first_whoever_owns_it(present, experiment):
    others = [present.submit(experiment, owner, estimated_s=5.0) for owner in ("ada", "bob")]
    present.open_room("leader", "GPU course", 4)
    shared = present.ask(replace(experiment, dtypes=("fp64",)), "cem")
    assert present.ask(replace(experiment, dtypes=("fp64",)), "leader") == shared

    assert [run.id for run in present.waiting()] == [shared, *others]


def test_a_leader_who_used_far_more_than_others_waits_as_they_do(present, experiment):
    present.open_room("leader", "GPU course", 4)
    present.submit(experiment, "leader")
    claimed = present.claim("host", {"cpu"})
    present.add_device_seconds(claimed, LEADER_S + 100.0)
    present.finish(claimed, RunState.DONE)
    for owner in ("leader", "ada"):
        present.submit(experiment, owner)

    assert [run.owner for run in present.waiting()] == ["ada", "leader"]


def test_a_leaders_run_gives_way_to_nobody_it_would_go_before(present, experiment):
    present.open_room("leader", "GPU course", 4)
    present.submit(experiment, "leader")
    claimed = present.claim("host", {"cpu"})
    present.add_device_seconds(claimed, 5.0)
    present.submit(experiment, "ada")

    assert not present.another_owner_waits("leader", {"cpu"})
    assert not present.first_pass_waits("leader", {"cpu"})
    assert present.another_owner_waits("bob", {"cpu"})


@pytest.mark.parametrize(("weight", "of_alone"), [(1, 4), (3, 2)])
def test_those_in_a_room_get_as_much_of_a_device_as_it_weighs(present, experiment, weight, of_alone):
    present.heartbeat(
        Supervisor("host", host="host", scope="host", pid=1, version="1"), state="measuring", devices=[CPU]
    )
    room, _ = present.open_room("lead", "GPU course", 2)
    present.set_weight(room, weight)
    ids = {}
    for seat in range(3):
        present.join_room(f"seat {seat}", room, f"Seat {seat}")
    for _ in range(4):
        for seat in range(3):
            run_id = present.submit(experiment, f"seat {seat}", estimated_s=100.0, address="10.0.0.1")
            ids[run_id] = "class"
        ids[present.submit(experiment, "alone", estimated_s=100.0, address="10.0.0.2")] = "alone"

    order = [ids[measured(present, lambda: present.claim("host", {"cpu"}), 100.0)] for _ in range(8)]

    assert order.count("alone") == of_alone
