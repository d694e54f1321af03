"""Codes of rooms after many wrong ones from one address."""

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.workshop.ui import known
from gpuexplore.rooms import _WrongCodes

CODE = "CDFHJK"


@pytest.fixture
def room(monkeypatch):
    """Return a room whose code is known, at an address from which too many wrong ones came."""
    wrong, here = _WrongCodes(), object()
    for _ in range(1000):
        wrong.note("10.0.0.1")
    monkeypatch.setattr(known, "WRONG_CODES", wrong)
    monkeypatch.setattr(known, "address", lambda: "10.0.0.1")
    monkeypatch.setattr(known, "_looked_up", lambda code: here if code == CODE else None)
    monkeypatch.setattr(known, "me_in", lambda _: None)
    monkeypatch.setattr(known, "leads", lambda _: False)
    return here


@pytest.mark.parametrize("who", ["me_in", "leads"])
def test_who_is_in_a_room_waits_for_nobodys_wrong_codes(monkeypatch, room, who):
    with pytest.raises(InvalidInput, match="wrong room codes"):
        known.room_with(CODE)
    monkeypatch.setattr(known, who, lambda _: True)

    assert known.room_with(CODE) is room
    with pytest.raises(InvalidInput, match="wrong room codes"):
        known.room_with("CDFHJM")


def test_newcomers_behind_the_address_of_one_who_is_in_are_let_in(monkeypatch, room):
    with pytest.raises(InvalidInput, match="wrong room codes"):
        known.room_with(CODE)
    with monkeypatch.context() as context:
        context.setattr(known, "leads", lambda _: True)
        known.room_with(CODE)

    assert known.room_with(CODE) is room
