import pytest

from gpuexplore.recorded import library


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder that stands in for the shipped recordings."""
    found = tmp_path / "recordings"
    found.mkdir()
    monkeypatch.setattr(library, "FOLDER", found)
    return found
