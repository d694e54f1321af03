"""Modes of the database's files: its owner alone reads them."""

import stat

from gpuexplore.hardware.directories import HOME_VARIABLE, data_directory
from gpuexplore.store import open_store


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_and_its_database_are_their_owners_alone(tmp_path, monkeypatch):
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    with open_store(f"sqlite:///{data_directory()}/runs.sqlite3"):
        files = [mode_of(path) for path in data_directory().glob("runs.sqlite3*")]

    assert mode_of(data_directory()) == 0o700
    assert files
    assert set(files) == {0o600}


def test_a_database_that_all_could_read_is_closed_and_one_of_a_group_stays(tmp_path):
    for name, before, after in (("old", 0o644, 0o600), ("group", 0o660, 0o660)):
        path = tmp_path / name
        path.touch()
        path.chmod(before)
        with open_store(f"sqlite:///{path}"):
            assert mode_of(path) == after
