"""A home in which the version before has worked, on its machine."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpuexplore.core.model import Device
from gpuexplore.core.serialization import decode
from gpuexplore.store import open_store
from gpuexplore.ui import session
from tests.pages.conftest import compiler, home, page

__all__ = ["compiler", "home", "page"]  # the fixtures of the tests of pages

DATA = Path(__file__).with_name("data")
RECORDING = DATA / "recording.jsonl"
ADA = "ada"  # who owns most of the runs, and entered peaks


def machine() -> Device:
    """Return the processor the version before has measured on, as it described it."""
    return decode(Device, json.loads(RECORDING.read_text(encoding="utf8").splitlines()[0])["devices"][0])


@pytest.fixture(scope="session")
def upgraded(tmp_path_factory):
    """Return the database of the version before, upgraded to this version."""
    file = tmp_path_factory.mktemp("before") / "gpuexplore.sqlite3"
    with closing(sqlite3.connect(file)) as before:
        before.executescript((DATA / "database.sql").read_text(encoding="utf8"))
    open_store(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def store(home, upgraded, monkeypatch):
    """Return the store of this version on a copy of that database."""
    shutil.copyfile(upgraded, home / "gpuexplore.sqlite3")
    monkeypatch.setattr(session, "discover", lambda: (machine(),))
    return session.store()
