"""The database is what the code expects, however many processes start at once."""

import errno
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.core.model import Bandwidth, Device, Experiment
from gpuexplore.core.serialization import encode
from gpuexplore.store import Description, Store, Wanted, open_store
from gpuexplore.store.database import connect, create, database_url
from gpuexplore.store.tables import METADATA
from gpuexplore.store.upgrade import _migration_config, _newest_revision, _write_ahead_log, revisions, upgrade
from tests.analysis.made import ok

MEASURED = ok(1e-3, size=8)
EXPERIMENT = json.dumps(encode(Experiment("matmul", (MEASURED.case.shape,), ("fp32",), ("torch",))))
RUN = "INSERT INTO runs (id, owner, experiment, total, state, attempt, cancel_requested, created_utc) VALUES "
OLD_ROWS = (
    f"{RUN} ('abcdefghij', 'ada', '{EXPERIMENT}', 1, 'done', 1, 0, '2026-01-01')",
    f"{RUN} ('waitingrun', 'ada', '{EXPERIMENT}', 1, 'queued', 0, 0, '2026-01-01')",
    f"INSERT INTO results (run_id, case_index, payload) VALUES ('abcdefghij', 0, '{json.dumps(encode(MEASURED))}')",
)
UNREADABLE_ROWS = (
    f"{RUN} ('strange001', 'ada', '[]', 1, 'done', 1, 0, '2026-01-01')",
    f"{RUN} ('strange002', 'ada', '{{\"operation\": \"matmul\"}}', 1, 'done', 1, 0, '2026-01-01')",
    f"{RUN} ('strange003', 'ada', 'null', 1, 'done', 1, 0, '2026-01-01')",
)


@pytest.fixture
def quick_database():
    """Leave it to the migrations to make every schema."""


@pytest.fixture
def rowless_url(postgresql_url):
    """Return a database without a schema."""
    return postgresql_url


def test_migrations_make_exactly_the_tables(store):
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, METADATA) == []


def test_schemas_are_those_of_alembic_which_is_loaded_only_for_an_upgrade(home):
    script = ScriptDirectory.from_config(_migration_config(None))

    assert revisions() == sorted(each.revision for each in script.walk_revisions())
    assert _newest_revision() == script.get_current_head()
    open_store().close()
    opened = "import sys, gpuexplore.store as s; s.open_store().close(); print('alembic' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", opened], text=True).strip() == "False"


def test_runs_of_the_release_before_are_listed_under_a_title_and_claimed(home):
    engine = connect(f"sqlite:///{home}/old.sqlite3")
    create(engine)
    with engine.begin() as connection:
        command.upgrade(_migration_config(connection), "0002")
        for statement in (*OLD_ROWS, *UNREADABLE_ROWS):
            connection.exec_driver_sql(statement)
    upgrade(engine)

    with Store(engine) as store:
        *_, waiting, done = store.listed()
        assert [(run.id, run.title, run.operation) for run in (done, waiting)] == [
            ("abcdefghij", "matmul 8, fp32", "matmul"),
            ("waitingrun", "matmul 8, fp32", "matmul"),
        ]
        assert [run.id for run in store.listed(Wanted(text="matmul 8"))] == ["waitingrun", "abcdefghij"]
        assert store.load("abcdefghij").results == (MEASURED,)
        assert [encode(result) for _, result in store.measured_results(MEASURED.environment.device)] == [
            encode(MEASURED)
        ]
        assert store.describe("abcdefghij", "ada", Description(tags="lab")).tags == ("lab",)
        assert {run.title for run in store.listed() if run.id.startswith("strange")} == {""}
        assert store.claim("host", {"cpu"}).run_id == "waitingrun"
    engine.dispose()


@pytest.fixture
def old_home(home):
    """Return a home whose database has the schema of version 0.1.0 and a megabyte of other rows."""
    engine = connect(database_url())
    create(engine)
    with engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin() as connection:
        command.upgrade(_migration_config(connection), "0002")
        connection.exec_driver_sql("CREATE TABLE ballast (b BLOB)")
        connection.exec_driver_sql("INSERT INTO ballast VALUES (zeroblob(1000000))")
    engine.dispose()
    return home


def _refuse(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def _full_while_copied(monkeypatch):
    monkeypatch.setattr(Path, "replace", _refuse)


def _full_while_upgraded(monkeypatch):
    monkeypatch.setattr(command, "upgrade", lambda *_: _raise(sqlite3.OperationalError("database or disk is full")))


def _raise(error):
    raise error


@pytest.mark.parametrize("fill", [_full_while_copied, _full_while_upgraded])
def test_an_upgrade_that_a_full_disk_ends_leaves_no_copy_and_the_file_as_it_was(old_home, monkeypatch, fill):
    with monkeypatch.context() as patch:
        fill(patch)
        with pytest.raises(StoreUnavailable, match="its disk is full"):
            open_store()

    assert [path.name for path in old_home.glob("*before*")] == []
    with closing(sqlite3.connect(old_home / "gpuexplore.sqlite3")) as left:
        assert left.execute("SELECT version_num FROM alembic_version").fetchall() == [("0002",)]
    with open_store():
        assert (old_home / f"gpuexplore.sqlite3.before-{_newest_revision()}").stat().st_size > 1_000_000


def test_file_is_copied_before_an_upgrade(home):
    file = home / "gpuexplore.sqlite3"
    engine = connect(f"sqlite:///{file}")
    create(engine)
    with engine.begin() as connection:
        command.upgrade(_migration_config(connection), "0002")
        connection.exec_driver_sql(OLD_ROWS[0])
    engine.dispose()

    open_store().close()

    with sqlite3.connect(home / f"gpuexplore.sqlite3.before-{_newest_revision()}") as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchall() == [("0002",)]
        assert copy.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]
    copy.close()


def test_database_of_a_newer_version_is_refused_in_one_sentence(store, database):
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StoreUnavailable, match=r"a newer version of gpuexplore made it \(schema 9999"):
        open_store(database)


def test_a_database_of_the_first_release_keeps_its_peaks(home):
    engine = connect(f"sqlite:///{home}/old.sqlite3")
    create(engine)
    with engine.begin() as connection:
        command.upgrade(_migration_config(connection), "0002")
        old_row = {"dtype": "fp32", "unit": "matrix", "flop_per_s": 1e12, "kind": "own", "source": "me"}
        entered = "INSERT INTO own_peaks VALUES ('ada', 'GPU X', 'fp32', 'matrix', :payload)"
        connection.execute(text(entered), {"payload": json.dumps(old_row)})
    engine.dispose()
    gpu, bandwidth = Device("cuda:0", "cuda", "GPU X"), Bandwidth(1e11, "own", "me")

    with open_store(f"sqlite:///{home}/old.sqlite3") as new:
        new.set_own_bandwidth("ada", gpu, bandwidth=bandwidth)

        assert [peak.flop_per_s for peak in new.own_peaks("ada", gpu)] == [1e12]
        assert new.own_bandwidth("ada", gpu) == bandwidth


def test_sqlite_runs_with_the_settings_we_rely_on(home):
    store = open_store()
    with store.reading() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }

    assert settings == {"journal_mode": "wal", "busy_timeout": 10_000, "foreign_keys": 1, "synchronous": 1}
    synchronous = []
    for durable in (True, False):
        with store.writing(durable=durable) as connection:
            synchronous.append(connection.exec_driver_sql("PRAGMA synchronous").scalar())
    store.close()
    assert synchronous == [2, 1]  # FULL, NORMAL: https://www.sqlite.org/pragma.html#pragma_synchronous


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
def test_processes_that_start_at_once_do_not_race(database):
    """On PostgreSQL two of four failed: each created the tables."""
    script = "from gpuexplore.store import open_store; import sys; open_store(sys.argv[1] or None).close()"
    started = [subprocess.Popen([sys.executable, "-c", script, database or ""]) for _ in range(4)]

    assert [process.wait() for process in started] == [0, 0, 0, 0]


@pytest.mark.long
def test_store_is_light():
    told = "import sys, gpuexplore.store as _; print(sorted({'torch', 'numba', 'streamlit'} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_journal_that_another_process_switches_is_asked_for_again():
    answers = iter([sqlite3.OperationalError("database is locked"), "wal"])

    def switch():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert _write_ahead_log(switch) == "wal"
