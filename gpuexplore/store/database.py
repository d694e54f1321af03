"""One connection pool and one clock: how every query of this package reaches the database."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event

from gpuexplore.devices.directories import data_directory

URL_VARIABLE = "GPUEXPLORE_DATABASE_URL"
BUSY_TIMEOUT_MS = 10_000  # a writer waits this long for another one before it gives up
SETTINGS = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = NORMAL",  # with WAL a power cut may lose the last moments, never the file
)


def utc_now() -> datetime:
    """Return this moment, UTC: the clock of the store outside tests."""
    return datetime.now(UTC)


def database_url(url: str | None = None) -> str:
    """Return `url`, else the environment's, else that of the file in the data directory."""
    return url or os.environ.get(URL_VARIABLE) or f"sqlite:///{data_directory() / 'gpuexplore.sqlite3'}"


def url_is_given(url: str | None = None) -> bool:
    """Return whether somebody chose the database: its text may hold a password, so no message shows it."""
    return bool(url or os.environ.get(URL_VARIABLE))


@dataclass(frozen=True, slots=True)
class Database:
    """Where the runs live, and the clock that dates them."""

    engine: Engine
    clock: Callable[[], datetime] = utc_now

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database throughout."""
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection that commits at the end; on SQLite it is the only writer from its first statement."""
        with self.engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin() as connection:
            yield connection

    def now(self, *, back_s: float = 0.0) -> str:
        """Return the time `back_s` seconds ago, as the tables hold it."""
        moment = datetime.fromtimestamp(self.clock().timestamp() - back_s, UTC)
        return moment.isoformat(timespec="microseconds")

    def age_s(self, moment: str) -> float:
        """Return the seconds since a time that the tables hold."""
        return self.clock().timestamp() - datetime.fromisoformat(moment).timestamp()


def connect(url: str) -> Engine:
    """Return the connection pool for `url`; nothing is opened yet."""
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    # The driver would begin a transaction only before the first change: a read followed by a write could then fail
    # as stale. See https://docs.sqlalchemy.org/en/21/dialects/sqlite.html#pysqlite-serializable
    connection.isolation_level = None
    for setting in SETTINGS:
        connection.execute(setting)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
