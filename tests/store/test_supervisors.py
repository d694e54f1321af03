"""Heartbeats."""

import pytest

from gpuexplore.model import Device

CPU = Device("cpu", "cpu", "a processor", cores=2)


def test_no_supervisor_is_none(store):
    assert store.supervisor() is None


def test_last_heartbeat_is_shown_with_its_age(store, clock):
    store.heartbeat("host", 12, state="warming", devices=[])
    store.heartbeat("host", 13, state="ready", devices=[CPU])
    clock.advance(5)

    seen = store.supervisor()

    assert (seen.name, seen.pid, seen.state, seen.devices) == ("host", 13, "ready", (CPU,))
    assert seen.age_s == pytest.approx(5.001)


def test_supervisor_heard_of_last_counts(store):
    store.heartbeat("one", 1, state="ready", devices=[])
    store.heartbeat("two", 2, state="ready", devices=[])
    store.heartbeat("one", 1, state="ready", devices=[])

    assert store.supervisor().name == "one"
