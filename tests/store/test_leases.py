"""Leases: who measures, and when it was last heard of by the database's own clock."""

import pytest

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.core.model import Device

CPU = Device("cpu", "cpu", "a processor", cores=2)


def test_lease_tells_who_and_on_what(store, instance_of):
    instance = instance_of("lab/1", version="3")
    store.heartbeat(instance, state="warming", devices=[])
    store.heartbeat(instance, state="ready", devices=[CPU])

    (seen,) = store.supervisors()

    assert (seen.name, seen.host, seen.version, seen.state, seen.devices) == ("lab/1", "lab", "3", "ready", (CPU,))
    assert seen.alive
    assert seen.age_s == pytest.approx(0, abs=2)
    assert seen.device_ids == {"cpu", "lab/cpu"}


@pytest.mark.parametrize(("silent_s", "alive"), [(4, True), (6, False), (-4, True), (-6, False), (31, None)])
def test_silence_ends_a_life_in_either_direction_of_a_clock_that_was_set(store, instance_of, silence, silent_s, alive):
    store.heartbeat(instance_of("host"), state="ready", devices=[CPU])

    silence("host", silent_s)

    supervisor = store.supervisor()
    assert (supervisor and supervisor.alive) is alive  # None: its lease has expired


def test_supervisor_heard_of_last_comes_first(store, instance_of, silence):
    for name in ("one", "two"):
        store.heartbeat(instance_of(name), state="ready", devices=[])
    silence("two", 2)

    assert [supervisor.name for supervisor in store.supervisors()] == ["one", "two"]


def test_supervisor_that_ends_well_is_forgotten_with_those_long_silent(store, instance_of, silence):
    for name in ("ends", "stays", "long-gone"):
        store.heartbeat(instance_of(name), state="ready", devices=[])
    silence("long-gone", 4000)

    store.end_lease(instance_of("ends"))

    assert [supervisor.name for supervisor in store.supervisors()] == ["stays"]


def test_server_is_ready_while_a_supervisor_is_alive(store, instance_of, silence):
    assert (store.supervisor(), store.supervisors()) == (None, ())
    with pytest.raises(StoreUnavailable, match="No supervisor has reported in the last 5 seconds"):
        store.ready()
    store.heartbeat(instance_of("host"), state="ready", devices=[])
    store.ready()
    silence("host", 10)
    with pytest.raises(StoreUnavailable):
        store.ready()
