"""Simulated devices exist by a setting only, and say everywhere that they are no others."""

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware import discover
from gpuexplore.hardware.discovery import MOST, VARIABLE, _simulated_devices


def test_there_are_none_unless_asked_for(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)

    assert not any(device.is_simulated for device in discover())


def test_there_are_as_many_as_asked_for_and_each_says_what_it_is(monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")

    first, second = (device for device in discover() if device.is_simulated)

    assert (first.id, second.id) == ("simulated:0", "simulated:1")
    assert first.name == "Simulated device 0: nothing is measured"
    assert (first.peaks, first.bandwidth) == ((), None)


@pytest.mark.parametrize("asked", ["-1", "many", str(MOST + 1), "1.5"])
def test_other_numbers_are_refused_with_the_accepted_ones(asked):
    with pytest.raises(InvalidInput, match=f"{VARIABLE} '{asked}': expected whole numbers from 0 to {MOST}"):
        _simulated_devices({VARIABLE: asked})
