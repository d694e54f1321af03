"""The database is what the code expects, however many processes start at once."""

import json
import subprocess
import sys

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from gpuexplore.model import Bandwidth, Device
from gpuexplore.store import open_store
from gpuexplore.store.database import connect
from gpuexplore.store.tables import METADATA
from gpuexplore.store.upgrade import migration_config, upgrade


def test_migrations_make_exactly_the_tables(store):
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, METADATA) == []


def test_migrations_can_be_undone(home):
    engine = connect(f"sqlite:///{home}/undone.sqlite3")
    upgrade(engine)

    with engine.begin() as connection:
        command.downgrade(migration_config(connection), "base")

    assert inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()


def test_a_database_of_the_first_release_keeps_its_peaks_and_takes_bandwidths(home):
    engine = connect(f"sqlite:///{home}/old.sqlite3")
    with engine.begin() as connection:
        command.upgrade(migration_config(connection), "0001")
        old_row = {"dtype": "fp32", "unit": "matrix", "flop_per_s": 1e12, "kind": "own", "source": "me"}
        entered = "INSERT INTO own_peaks VALUES ('ada', 'GPU X', 'fp32', 'matrix', :payload)"
        connection.execute(text(entered), {"payload": json.dumps(old_row)})
    engine.dispose()
    gpu, bandwidth = Device("cuda:0", "cuda", "GPU X"), Bandwidth(1e11, "own", "me")

    with open_store(f"sqlite:///{home}/old.sqlite3") as new:
        new.set_own_bandwidth("ada", gpu, bandwidth=bandwidth)

        assert [peak.flop_per_s for peak in new.own_peaks("ada", gpu)] == [1e12]
        assert new.own_bandwidth("ada", gpu) == bandwidth


def test_opening_again_keeps_what_is_there(store, experiment):
    run_id = store.submit(experiment, "ada")

    with open_store() as again:
        assert again.load(run_id).owner == "ada"


def test_sqlite_runs_with_the_settings_we_rely_on(store):
    with store.reading() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }

    assert settings == {"journal_mode": "wal", "busy_timeout": 10_000, "foreign_keys": 1, "synchronous": 1}


def test_missing_write_ahead_log_is_said(caplog):
    engine = connect("sqlite://")  # a database in memory has none, like one on a network file system

    upgrade(engine)

    assert "cannot keep a write-ahead log (journal mode memory)" in caplog.text
    engine.dispose()


def test_environment_names_the_database(monkeypatch, home):
    monkeypatch.setenv("GPUEXPLORE_DATABASE_URL", f"sqlite:///{home}/named.sqlite3")

    open_store().close()

    assert (home / "named.sqlite3").exists()


@pytest.mark.long
def test_processes_that_start_at_once_do_not_race(home):
    script = "from gpuexplore.store import open_store; open_store().close()"
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(4)]

    assert [one.wait() for one in started] == [0, 0, 0, 0]


@pytest.mark.long
def test_store_is_light():
    told = "import sys, gpuexplore.store as _; print(sorted({'torch', 'numba', 'streamlit'} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
