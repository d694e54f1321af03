"""What an upgrade would do is told without doing it, and one without room for it changes nothing."""

import shutil

import pytest
from alembic import command

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.store import open_store
from gpuexplore.store.database import connect, create
from gpuexplore.store.upgrade import _migration_config, _newest_revision, plan_upgrade, revisions


@pytest.fixture
def file(home):
    """Return a database of an earlier schema."""
    path = home / "gpuexplore.sqlite3"
    engine = connect(f"sqlite:///{path}")
    create(engine)
    with engine.begin() as connection:
        command.upgrade(_migration_config(connection), "0002")
    engine.dispose()
    return path


def without_room(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000}))


def test_every_step_is_named_with_what_it_does_and_nothing_is_written(file):
    before = {path.name: path.read_bytes() for path in file.parent.iterdir() if path.is_file()}

    plan = plan_upgrade()

    assert (plan.found, plan.newest) == ("0002", _newest_revision())
    assert list(plan.steps) == [each for each in revisions() if each > "0002"]
    assert all(about.endswith(".") for about in plan.steps.values())
    assert plan.needed_bytes > plan.size_bytes == file.stat().st_size
    assert {path.name: path.read_bytes() for path in file.parent.iterdir() if path.is_file()} == before


def test_without_a_database_none_is_made(home):
    plan = plan_upgrade()

    assert (plan.found, plan.steps) == (None, {})
    assert not (home / "gpuexplore.sqlite3").exists()


def test_a_database_of_this_version_needs_nothing(database, store):
    plan = plan_upgrade(database)

    assert (plan.found, plan.steps) == (_newest_revision(), {})
    assert not plan.needed_bytes
    assert plan.size_bytes > 0


@pytest.mark.parametrize(
    ("revision", "why"),
    [
        ("9999", "a newer version of gpuexplore made it"),
        ("0009", r"a version between releases made it \(schema 0009\): those that can be upgraded are 0002, 0014"),
    ],
)
def test_one_of_another_version_is_refused(file, revision, why):
    with open_store() as store, store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")

    with pytest.raises(StoreUnavailable, match=why):
        plan_upgrade()


def test_an_upgrade_without_room_is_refused_before_anything_is_copied(file, monkeypatch):
    without_room(monkeypatch)

    with pytest.raises(StoreUnavailable, match=r"its upgrade takes 9.54 MiB of its disk .* 1000 B are free. Nothing"):
        open_store()

    assert plan_upgrade().found == "0002"
    assert not list(file.parent.glob("*before*"))
