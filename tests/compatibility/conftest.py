"""A home in which the version before has worked, on its machine."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpuexplore.core.model import Device
from gpuexplore.core.serialization import decode
from gpuexplore.ui import session
from tests.pages.conftest import compiler, home, page

__all__ = ["compiler", "home", "page"]  # the fixtures of the tests of pages

DATA = Path(__file__).with_name("data")
RECORDING = DATA / "recording.jsonl"
ADA = "ada"  # who owns most of the runs, and entered peaks


def machine() -> Device:
    """Return the processor the version before has measured on, as it described it."""
    return decode(Device, json.loads(RECORDING.read_text(encoding="utf8").splitlines()[0])["devices"][0])


@pytest.fixture
def store(home, monkeypatch):
    """Return the store of this version, opened on the database of the version before."""
    with closing(sqlite3.connect(home / "gpuexplore.sqlite3")) as before:
        before.executescript((DATA / "database.sql").read_text(encoding="utf8"))
    monkeypatch.setattr(session, "discover", lambda: (machine(),))
    return session.store()
