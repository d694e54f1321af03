"""Peaks that users enter."""

from dataclasses import replace

import pytest
from sqlalchemy import insert

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Bandwidth, Device, Peak
from gpuexplore.core.serialization import encode
from gpuexplore.store.entries import BY_NAME
from gpuexplore.store.tables import OWN_BANDWIDTHS, OWN_PEAKS
from tests.hardware.processors import ZEN_4, ZEN_5

GPU_X, GPU_Y = (Device("cuda:0", "cuda", name) for name in ("GPU X", "GPU Y"))
PEAK = Peak("bf16", "matrix", 1e14, "own", "the vendor told me")


def test_own_peak_belongs_to_its_owner_and_device(store):
    vector = replace(PEAK, unit="vector")
    store.set_own_peak("ada", GPU_X, peak=vector)
    store.set_own_peak("ada", GPU_X, peak=PEAK)
    store.set_own_peak("ada", GPU_Y, peak=PEAK)

    assert store.own_peaks("ada", GPU_X) == (PEAK, vector)
    assert store.own_peaks("ada", GPU_Y) == (PEAK,)
    assert store.own_peaks("bob", GPU_X) == ()
    newer = replace(PEAK, flop_per_s=2e14)
    store.set_own_peak("ada", GPU_X, peak=newer)
    assert store.own_peaks("ada", GPU_X) == (newer, vector)
    for _ in range(2):
        store.delete_own_peak("ada", GPU_X, dtype="bf16", unit="matrix")
    assert store.own_peaks("ada", GPU_X) == (vector,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flop_per_s": 0.0}, "peak '0.0': expected positive numbers"),
        ({"flop_per_s": float("inf")}, "peak 'inf'"),
        ({"kind": "datasheet"}, "kind of peak 'datasheet': expected own"),
    ],
)
def test_peak_that_cannot_be_is_refused(store, change, message):
    with pytest.raises(InvalidInput, match=message):
        store.set_own_peak("ada", GPU_X, peak=replace(PEAK, **change))


BANDWIDTH = Bandwidth(1e12, "own", "the vendor told me")


def test_own_bandwidth_belongs_to_its_owner_and_device_and_a_newer_one_replaces_it(store):
    newer = replace(BANDWIDTH, bytes_per_s=2e12)
    store.set_own_bandwidth("ada", GPU_X, bandwidth=BANDWIDTH)
    store.set_own_bandwidth("ada", GPU_X, bandwidth=newer)
    store.set_own_bandwidth("ada", GPU_Y, bandwidth=BANDWIDTH)

    assert (store.own_bandwidth("ada", GPU_X), store.own_bandwidth("ada", GPU_Y)) == (newer, BANDWIDTH)
    assert store.own_bandwidth("bob", GPU_X) is None
    for _ in range(2):
        store.delete_own_bandwidth("ada", GPU_X)
    assert store.own_bandwidth("ada", GPU_X) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes_per_s": -1.0}, "bandwidth '-1.0': expected positive numbers of bytes/s"),
        ({"bytes_per_s": float("nan")}, "bandwidth 'nan'"),
        ({"kind": "formula"}, "kind of bandwidth 'formula': expected own"),
    ],
)
def test_bandwidth_that_cannot_be_is_refused(store, change, message):
    with pytest.raises(InvalidInput, match=message):
        store.set_own_bandwidth("ada", GPU_X, bandwidth=replace(BANDWIDTH, **change))


def test_what_was_entered_for_a_processor_is_not_used_for_another_of_its_name(store):
    store.set_own_peak("ada", ZEN_4, peak=PEAK)
    store.set_own_bandwidth("ada", ZEN_4, bandwidth=BANDWIDTH)

    assert store.own_peaks("ada", replace(ZEN_4, peaks=(), notes=("measured again",))) == (PEAK,)
    assert store.own_peaks("ada", ZEN_5) == ()
    assert (store.own_bandwidth("ada", ZEN_4), store.own_bandwidth("ada", ZEN_5)) == (BANDWIDTH, None)


@pytest.fixture
def entered_by_name(store):
    """Write what version 0.1 kept for a device: its name, and nothing of its identity."""
    named = {"owner": "ada", "device_key": ZEN_4.name}
    with store.writing() as connection:
        connection.execute(insert(OWN_PEAKS).values(**named, dtype="bf16", unit="matrix", payload=encode(PEAK)))
        connection.execute(insert(OWN_BANDWIDTHS).values(**named, payload=encode(BANDWIDTH)))


@pytest.mark.usefixtures("entered_by_name")
@pytest.mark.parametrize("device", [ZEN_4, ZEN_5])
def test_what_was_entered_by_name_says_so(store, device):
    said = f"{PEAK.source} ({BY_NAME})"

    assert store.own_peaks("ada", device) == (replace(PEAK, source=said),)
    assert store.own_bandwidth("ada", device) == replace(BANDWIDTH, source=said)


@pytest.mark.usefixtures("entered_by_name")
def test_what_is_entered_for_the_device_itself_counts_before_what_was_entered_by_name(store):
    newer = replace(PEAK, flop_per_s=2e14)
    store.set_own_peak("ada", ZEN_4, peak=newer)
    store.set_own_bandwidth("ada", ZEN_4, bandwidth=replace(BANDWIDTH, bytes_per_s=2e12))

    assert store.own_peaks("ada", ZEN_4) == (newer,)
    assert store.own_bandwidth("ada", ZEN_4).bytes_per_s == 2e12
    assert BY_NAME in store.own_peaks("ada", ZEN_5)[0].source


@pytest.mark.usefixtures("entered_by_name")
def test_what_was_entered_by_name_does_not_come_back_once_forgotten(store):
    store.set_own_peak("ada", ZEN_4, peak=PEAK)

    store.delete_own_peak("ada", ZEN_4, dtype="bf16", unit="matrix")
    store.delete_own_bandwidth("ada", ZEN_4)

    assert store.own_peaks("ada", ZEN_4) == ()
    assert store.own_bandwidth("ada", ZEN_4) is None
