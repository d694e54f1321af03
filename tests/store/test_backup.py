"""Copies of the database: made while it is written, checked without a trace, put back, and refused where damaged."""

import sqlite3
import threading
from contextlib import closing

import pytest

from gpuexplore.core.errors import InvalidInput, StoreUnavailable
from gpuexplore.store import backup, open_store
from gpuexplore.store.backup import back_up, contents_of, files_of, restore
from gpuexplore.store.upgrade import _newest_revision

MOMENT = "20260102T030405Z"


@pytest.fixture
def database(home):
    return home / "gpuexplore.sqlite3"


@pytest.fixture
def two_runs(database, experiment, failed):
    """Fill the database with two runs and four results; return their ids."""
    with open_store() as store:
        return [
            store.record(experiment, "ada", results=[failed(case) for case in experiment.cases()[:2]]) for _ in range(2)
        ]


def in_(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_copy_tells_what_is_in_it(home, database, two_runs):
    made = back_up(database, home / "copy", {"mine.md": b"# Mine"})

    assert made == contents_of(home / "copy")
    assert made.revision == _newest_revision()
    assert (made.counts["runs"], made.counts["results"], made.files) == (2, 4, ("mine.md",))
    assert files_of(home / "copy") == {"mine.md": b"# Mine"}
    assert (home / "copy").stat().st_mode & 0o777 == 0o600


def test_a_copy_made_while_somebody_writes_is_one_state(home, database, experiment, failed, two_runs):
    results = [failed(case) for case in experiment.cases()]
    stop = threading.Event()

    def write():
        with open_store() as store:
            while not stop.is_set():
                store.record(experiment, "bob", results=results)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = [back_up(database, home / f"copy{number}", {}) for number in range(5)]
    finally:
        stop.set()
        writer.join()

    assert all(each.counts["results"] == 4 + 4 * (each.counts["runs"] - 2) for each in made)
    assert made[-1].counts["runs"] > 2


def test_checking_changes_nothing_there_and_beside(tmp_path, database, two_runs):
    folder = tmp_path / "copies"
    folder.mkdir()
    back_up(database, folder / "copy", {})
    before = in_(folder)

    contents_of(folder / "copy")

    assert in_(folder) == before


def test_the_copy_is_the_database_again_and_the_one_before_is_kept(home, database, experiment, two_runs):
    back_up(database, home / "copy", {"mine.md": b"# Mine"})
    database.chmod(0o640)
    with open_store() as store:
        later = store.submit(experiment, "ada")

    kept = restore(home / "copy", database, MOMENT)

    assert kept == home / f"gpuexplore.sqlite3.before-restore-{MOMENT}"
    assert database.stat().st_mode & 0o777 == 0o640
    assert not list(home.glob("*-journal"))
    with open_store() as store:
        assert {run.id for run in store.history()} == set(two_runs)
    with open_store(f"sqlite:///{kept}") as store:
        assert {run.id for run in store.history()} == {*two_runs, later}
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'backup_files'").fetchone() is None


def test_a_copy_is_put_where_there_is_no_database(home, database, two_runs):
    back_up(database, home / "copy", {})
    database.unlink()

    assert restore(home / "copy", database, MOMENT) is None
    with open_store() as store:
        assert len(store.history()) == 2


def test_nothing_is_put_back_under_whoever_has_the_database_open(home, database, two_runs):
    back_up(database, home / "copy", {})
    with open_store() as store:
        store.history()
        with pytest.raises(StoreUnavailable, match=r"another program has it open\. Stop the web server"):
            restore(home / "copy", database, MOMENT)
        assert len(store.history()) == 2

    assert {path.name for path in home.iterdir() if "sqlite3" in path.name} <= {
        "gpuexplore.sqlite3",
        "gpuexplore.sqlite3-wal",
        "gpuexplore.sqlite3-shm",
    }


def test_a_damaged_database_is_replaced_and_kept(home, database, two_runs):
    back_up(database, home / "copy", {})
    database.write_bytes(b"no database" * 1000)

    kept = restore(home / "copy", database, MOMENT)

    assert kept.read_bytes() == b"no database" * 1000
    with open_store() as store:
        assert len(store.history()) == 2


def damaged(file):
    content = bytearray(file.read_bytes())
    content[2 * 4096 : 40 * 4096] = bytes(38 * 4096)
    file.write_bytes(content)


def executed(statement):
    def spoil(file):
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(statement)
            connection.commit()

    return spoil


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (damaged, "damaged|malformed"),
        (lambda file: file.write_bytes(file.read_bytes()[:5000]), "damaged|malformed"),
        (lambda file: file.write_bytes(b"text"), "file is not a database"),
        (lambda file: file.unlink(), "expected a file written by gpuexplore backup"),
        (executed("UPDATE results SET run_id = 'gone' WHERE number = 1"), "orphaned rows in results"),
        (executed("UPDATE alembic_version SET version_num = '9999'"), "schema '9999': expected 0002"),
        (executed("DROP TABLE alembic_version"), "this one has another schema"),
    ],
)
def test_what_cannot_be_put_back_is_refused_and_leaves_everything(home, database, two_runs, spoil, said):
    back_up(database, home / "copy", {})
    spoil(home / "copy")

    with pytest.raises(InvalidInput, match=said):
        contents_of(home / "copy")
    with pytest.raises(InvalidInput, match=said):
        restore(home / "copy", database, MOMENT)
    with open_store() as store:
        assert len(store.history()) == 2


def test_a_database_in_use_is_no_copy(database, two_runs):
    with open_store() as store:
        store.see("ada")
        with pytest.raises(InvalidInput, match="a write-ahead log, so it is in use"):
            contents_of(database)


def test_no_file_is_overwritten_and_none_is_left_behind(home, database, two_runs, monkeypatch):
    (home / "copy").write_text("mine")
    with pytest.raises(InvalidInput, match="a file that does not exist yet"):
        back_up(database, home / "copy", {})
    monkeypatch.setattr(backup, "_contents", lambda *_: (_ for _ in ()).throw(InvalidInput("damaged")))
    with pytest.raises(InvalidInput, match="damaged"):
        back_up(database, home / "other", {})

    assert (home / "copy").read_text() == "mine"
    assert not list(home.glob("other*"))


def test_too_small_a_disk_is_told_before_anything_is_written(home, database, two_runs, monkeypatch):
    monkeypatch.setattr(backup.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10}))

    with pytest.raises(StoreUnavailable, match=r"The copy needs .* but 10 B are free"):
        back_up(database, home / "copy", {})
    assert not (home / "copy").exists()


def test_without_a_database_there_is_nothing_to_copy(home, database):
    with pytest.raises(StoreUnavailable, match="it does not exist yet"):
        back_up(database, home / "copy", {})
    assert not database.exists()
