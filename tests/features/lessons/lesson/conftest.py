"""What the tests of lessons share: a home of their own, and machines that are made up."""

import pytest

from tests.analysis.made import device

DEVICES = (device(),)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    return tmp_path
