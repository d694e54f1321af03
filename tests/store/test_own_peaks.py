"""Peaks that users enter."""

from dataclasses import replace

import pytest

from gpuexplore.errors import InvalidInput
from gpuexplore.model import Bandwidth, Peak

PEAK = Peak("bf16", "matrix", 1e14, "own", "the vendor told me")


def test_own_peak_belongs_to_its_owner_and_device(store):
    vector = replace(PEAK, unit="vector")
    store.set_own_peak("ada", "GPU X", peak=vector)
    store.set_own_peak("ada", "GPU X", peak=PEAK)
    store.set_own_peak("ada", "GPU Y", peak=PEAK)

    assert store.own_peaks("ada") == {"GPU X": (PEAK, vector), "GPU Y": (PEAK,)}
    assert store.own_peaks("bob") == {}


def test_newer_peak_replaces_the_older(store):
    newer = replace(PEAK, flop_per_s=2e14)
    store.set_own_peak("ada", "GPU X", peak=PEAK)
    store.set_own_peak("ada", "GPU X", peak=newer)

    assert store.own_peaks("ada") == {"GPU X": (newer,)}


def test_peak_can_be_forgotten(store):
    store.set_own_peak("ada", "GPU X", peak=PEAK)

    for _ in range(2):
        store.delete_own_peak("ada", "GPU X", dtype="bf16", unit="matrix")

    assert store.own_peaks("ada") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flop_per_s": 0.0}, "peak '0.0': accepted are positive numbers"),
        ({"flop_per_s": float("inf")}, "peak 'inf'"),
        ({"kind": "datasheet"}, "kind of peak 'datasheet': accepted are own"),
    ],
)
def test_peak_that_cannot_be_is_refused(store, change, message):
    with pytest.raises(InvalidInput, match=message):
        store.set_own_peak("ada", "GPU X", peak=replace(PEAK, **change))


BANDWIDTH = Bandwidth(1e12, "own", "the vendor told me")


def test_own_bandwidth_belongs_to_its_owner_and_device_and_a_newer_one_replaces_it(store):
    newer = replace(BANDWIDTH, bytes_per_s=2e12)
    store.set_own_bandwidth("ada", "GPU X", bandwidth=BANDWIDTH)
    store.set_own_bandwidth("ada", "GPU X", bandwidth=newer)
    store.set_own_bandwidth("ada", "GPU Y", bandwidth=BANDWIDTH)

    assert store.own_bandwidths("ada") == {"GPU X": newer, "GPU Y": BANDWIDTH}
    assert store.own_bandwidths("bob") == {}


def test_own_bandwidth_can_be_forgotten(store):
    store.set_own_bandwidth("ada", "GPU X", bandwidth=BANDWIDTH)

    for _ in range(2):
        store.delete_own_bandwidth("ada", "GPU X")

    assert store.own_bandwidths("ada") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes_per_s": -1.0}, "bandwidth '-1.0': accepted are positive numbers of bytes/s"),
        ({"bytes_per_s": float("nan")}, "bandwidth 'nan'"),
        ({"kind": "formula"}, "kind of bandwidth 'formula': accepted are own"),
    ],
)
def test_bandwidth_that_cannot_be_is_refused(store, change, message):
    with pytest.raises(InvalidInput, match=message):
        store.set_own_bandwidth("ada", "GPU X", bandwidth=replace(BANDWIDTH, **change))
