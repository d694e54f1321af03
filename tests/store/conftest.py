"""What the tests of the store share: a database of their own and a clock that never repeats itself."""

import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, select, text, update

from gpuexplore.core.model import Device, Experiment, Result, Shape, Status
from gpuexplore.store import Supervisor, open_store
from gpuexplore.store.tables import METADATA, SUPERVISORS
from gpuexplore.store.upgrade import KEPT_BY_ALEMBIC, _newest_revision
from tests import postgresql
from tests.analysis.made import ok


class FakeClock:
    """Moves on by a millisecond whenever it is read."""

    def __init__(self):
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, seconds):
        self.now += timedelta(seconds=seconds)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, quick_database):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    return tmp_path


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(scope="session")
def postgresql_server():
    """Return a PostgreSQL server that this session started."""
    if reason := postgresql.why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="gpuexplore-postgresql-"))
    with postgresql.server(folder) as server:
        yield server
    shutil.rmtree(folder)


@pytest.fixture
def postgresql_url(postgresql_server):
    """Return an empty database."""
    engine = create_engine(postgresql_server.url)
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgresql_server.url


@pytest.fixture
def rowless_url(postgresql_server):
    """Return a database with the newest schema and no rows: making the schema takes half a second."""
    engine = create_engine(postgresql_server.url)
    with engine.begin() as connection:
        if _has_newest_schema(connection):
            for table in reversed(METADATA.sorted_tables):
                connection.execute(table.delete())
            connection.execute(text("SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'"))
        else:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    engine.dispose()
    return postgresql_server.url


def _has_newest_schema(connection):
    known = {*METADATA.tables, KEPT_BY_ALEMBIC.name}
    if set(inspect(connection).get_table_names()) != known:
        return False
    return connection.scalar(select(KEPT_BY_ALEMBIC.c.version_num)) == _newest_revision()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def database(request, home):
    """Return the URL of an empty database, of each kind."""
    return request.getfixturevalue("rowless_url") if request.param == "postgresql" else None


@pytest.fixture
def store(database, clock):
    with open_store(database, clock=clock) as opened:
        yield opened


@pytest.fixture
def instance_of():
    """Return how to make a supervisor: its name says its host, and by default it shares its locks with nobody."""

    def made(name, scope=None, version="1"):
        return Supervisor(name, host=name.partition("/")[0], scope=scope or name, pid=1, version=version)

    return made


@pytest.fixture
def claim(store):
    """Return how a supervisor that has a CPU claims; it has reported itself."""

    def claimed(name="host", devices=("cpu",), scope=None, side_by_side=False):
        host = name.partition("/")[0]
        instance = Supervisor(name, host=host, scope=scope or name, pid=1, version="1", side_by_side=side_by_side)
        found = [Device(device, "cpu", device) for device in devices]
        store.heartbeat(instance, state="measuring", devices=found)
        return store.claim(name, {*devices, *(f"{host}/{device}" for device in devices)})

    return claimed


@pytest.fixture
def silence(store):
    """Return how to let a supervisor be silent for some seconds, by the database's clock."""

    def silent(name, seconds):
        with store.writing() as connection:
            older = update(SUPERVISORS).where(SUPERVISORS.c.name == name)
            connection.execute(older.values(beat_epoch_s=SUPERVISORS.c.beat_epoch_s - seconds))

    return silent


@pytest.fixture
def experiment():
    return Experiment(
        "matmul", tuple(Shape.of(m=size, k=size, n=size) for size in (1, 2)), ("fp32",), ("numpy", "torch")
    )


@pytest.fixture
def failed():
    def result_of(case):
        return Result(case, Status.ERROR, f"no {case.implementation}")

    return result_of


@pytest.fixture
def measured():
    """Return how to make a result with a time."""
    return lambda case: replace(ok(1e-3), case=case)


@pytest.fixture
def experiment_on(experiment):
    """Return how to ask for the same on other devices."""
    return lambda *devices: replace(experiment, devices=devices)
