import pytest


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path))
