"""The connection pool of the database and its clocks, settings of SQLite's connections, and errors in one sentence.

SQLite's settings are when transactions begin, how safely they end, and that the file still exists. What a user reads
when the database cannot be used now is one sentence, whatever the driver said.

The audit log: who ran, cancelled and deleted what, and when, written in the transaction of the action.

An account is named as it signed in; a browser by a digest of its cookie, which tells browsers apart and is no
credential.
"""

import json
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, Float, RowMapping, Table, create_engine, event, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, InternalError, OperationalError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.hardware.directories import data_directory
from gpuexplore.store.tables import AUDIT, REPLACEMENT, storable

PATIENCE_S = 10.0  # a writer waits this long for another one before it gives up
OWNER_ONLY = 0o600  # owners are cookies: who reads one is its visitor


def _prepare(connection: Any, record: Any, file: str | None) -> None:
    # The driver would begin a transaction only before the first change: a read followed by a write could then fail
    # as stale. See https://docs.sqlalchemy.org/en/21/dialects/sqlite.html#pysqlite-serializable
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    record.info["file"] = _file_id(file)


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    # With WAL a power cut may lose the last moments under NORMAL, nothing under FULL, and never the file.
    synchronous = "FULL" if options.get("sqlite_durable") else "NORMAL"
    connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {round(1000 * options.get('sqlite_patience_s', PATIENCE_S))}")
    connection.exec_driver_sql(options.get("sqlite_begin", "BEGIN"))


def create(engine: Engine) -> None:
    """Create an empty file, unless there is one: nothing else does, so that a deleted one is missed.

    Only its owner reads it, also one that an older version left open to all.
    """
    file = _file(engine) if engine.dialect.name == "sqlite" else None
    if not file:
        return
    if not Path(file).exists():
        Path(file).touch(OWNER_ONLY)
    for path in map(Path, (file, f"{file}-wal", f"{file}-shm")):
        with suppress(OSError):  # there is none, or it is another user's
            if stat.S_IMODE(path.stat().st_mode) == 0o644:
                path.chmod(OWNER_ONLY)


def _check_whole(connection: Connection) -> None:
    """Refuse a file that was cut off: it lacks more than its write-ahead log can hold, which reads find out too late.

    Raises:
        sqlite3.DatabaseError: it was.
    """
    file = _file(connection.engine) if connection.dialect.name == "sqlite" else None
    if not file:
        return
    pages, page_bytes = (connection.exec_driver_sql(f"PRAGMA page_{name}").scalar_one() for name in ("count", "size"))
    if pages * page_bytes > size_of(Path(file)):
        raise sqlite3.DatabaseError("the database is malformed: its file was cut off")


def size_of(file: Path) -> int:
    """Return the bytes of the file of a database, its write-ahead log among them."""
    log = Path(f"{file}-wal")
    return file.stat().st_size + (log.stat().st_size if log.exists() else 0)


def _file(engine: Engine) -> str | None:
    """Return the path of the database's file; None for one in memory."""
    return engine.url.database if engine.url.database not in ("", ":memory:") else None


def _check_exists(file: str) -> None:
    if not Path(file).exists():
        raise sqlite3.OperationalError("the file of the database was deleted or replaced")


def _check_file(record: Any, file: str) -> None:
    """Open the file anew when another one, or none, has its name: what is written to a deleted file is lost."""
    if _file_id(file) != record.info["file"]:
        raise DisconnectionError("the file of the database was deleted or replaced")


def _file_id(file: str | None) -> tuple[int, int] | None:
    try:
        found = Path(file).stat() if file else None
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino) if found else None


LOG = logging.getLogger(__name__)
KEPT = "No stored data is lost"
CAUSES = (  # of SQLite's texts (https://www.sqlite.org/rescode.html) and of PostgreSQL's
    (("database is locked", "lock timeout"), f"another program keeps it locked. {KEPT}: try again"),
    (("disk is full", "no space left", "disk full"), f"its disk is full. {KEPT}: free some space"),
    (("readonly", "read-only"), f"it is read-only. {KEPT}: make the file and its directory writable"),
    (("malformed", "not a database", "corrupt"),
     "its file is damaged. The administrator has to restore a backup, or move the file away"),
    (("unable to open", "no such table", "no such column", "undefinedtable", "does not exist", "deleted or replaced"),
     "its file was deleted or replaced. The administrator has to restore a backup, or restart with an empty one"),
    (("disk i/o error",), "its disk does not respond"),
)  # fmt: skip
LOCKED = CAUSES[0][1]
FULL = CAUSES[1][1]
UNREACHABLE = f"the database server does not respond. {KEPT}: it is retried"

URL_VARIABLE = "GPUEXPLORE_DATABASE_URL"
SOON_S = 1.0  # as long as a page, or a program that asks, can wait for another writer


def utc_now() -> datetime:
    """Return this moment, UTC: the clock of the store outside tests."""
    return datetime.now(UTC)


def database_url(url: str | None = None) -> str:
    """Return `url`, else the environment's, else that of the file in the data directory; a file's path is absolute."""
    given = url or os.environ.get(URL_VARIABLE) or f"sqlite:///{data_directory() / 'gpuexplore.sqlite3'}"
    scheme, separator, path = given.partition(":///")
    if scheme != "sqlite" or path in ("", ":memory:"):
        return given
    return f"{scheme}{separator}{Path(path).resolve()}"


class epoch_s(FunctionElement[float]):  # noqa: N801 - reads like the SQL function it is
    """Seconds since 1970 by the database's clock."""

    type = Float()
    inherit_cache = True


@compiles(epoch_s, "sqlite")
def _sqlite_epoch_s(_: epoch_s, __: SQLCompiler, **___: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(epoch_s, "postgresql")
def _postgresql_epoch_s(_: epoch_s, __: SQLCompiler, **___: Any) -> str:
    return "extract(epoch from clock_timestamp())::float"


@dataclass(frozen=True, slots=True)
class Database:
    """The database of the runs, and the clock that dates them."""

    engine: Engine
    clock: Callable[[], datetime] = utc_now
    _one_writer: Lock = field(default_factory=Lock, repr=False, compare=False)
    _engines: dict[tuple[tuple[str, Any], ...], Engine] = field(default_factory=dict, repr=False, compare=False)

    @contextmanager
    def reading(self, *, snapshot: bool = True) -> Iterator[Connection]:
        """Give a connection to read by.

        Args:
            snapshot: it sees one state of the database throughout; without, each statement may see a later one, and
                on PostgreSQL two round trips are saved, those that begin and end a transaction.

        Raises:
            StoreUnavailable: the database cannot be used now.
        """
        isolation = "REPEATABLE READ" if snapshot else "AUTOCOMMIT"
        options = {} if self.engine.dialect.name == "sqlite" else {"isolation_level": isolation}
        with _translated(), self._engine_with(**options).connect() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = False, patience_s: float = PATIENCE_S) -> Iterator[Connection]:
        """Give a connection that commits at the end; on SQLite it is the only writer from its first statement.

        Args:
            durable: what is written survives a power cut as soon as this returns; it costs a sync of the disk.
            patience_s: how long to wait for another writer, of this process or another one; on SQLite.

        Raises:
            StoreUnavailable: the database cannot be used now; nothing was written.
        """
        engine = self._engine_with(sqlite_begin="BEGIN IMMEDIATE", sqlite_durable=durable, sqlite_patience_s=patience_s)
        with _translated(), self._one_at_a_time(patience_s), engine.begin() as connection:
            yield connection

    def check(self, *, writing: bool = True) -> None:
        """Return when the database is whole, and can be written to soon.

        Raises:
            StoreUnavailable: it is not; says why.
        """
        with self.reading() as connection:
            _check_whole(connection)
        if writing:
            with self.writing(patience_s=SOON_S) as connection:
                connection.exec_driver_sql("UPDATE alembic_version SET version_num = version_num")

    def _engine_with(self, **options: Any) -> Engine:
        """Return the engine with these options, made once: that takes a tenth of a millisecond."""
        key = tuple(options.items())
        if key not in self._engines:
            self._engines[key] = self.engine.execution_options(**options)
        return self._engines[key]

    @contextmanager
    def _one_at_a_time(self, patience_s: float) -> Iterator[None]:
        """On SQLite, let one thread of this process write at a time: waiting for its lock is slower and unfair."""
        if self.engine.dialect.name != "sqlite":
            yield
            return
        if not self._one_writer.acquire(timeout=patience_s):
            raise because(LOCKED)
        try:
            yield
        finally:
            self._one_writer.release()

    def epoch_s(self) -> float:
        """Return seconds since 1970 by the database's clock."""
        with self.reading(snapshot=False) as connection:
            return seconds_since_1970(connection)

    def now(self) -> str:
        """Return the time as the tables store it."""
        return self.clock().isoformat(timespec="microseconds")


def connect(url: str) -> Engine:
    """Return the connection pool for `url`; nothing is opened yet."""
    engine = create_engine(url, pool_pre_ping=True, json_serializer=_json)
    if engine.dialect.name == "sqlite":
        # Prepare every connection of `engine`.
        file = _file(engine)
        event.listen(engine, "connect", lambda connection, record: _prepare(connection, record, file))
        event.listen(engine, "begin", _begin)
        if file:
            event.listen(engine, "do_connect", lambda *_: _check_exists(file))
            event.listen(engine, "checkout", lambda _, record, __: _check_file(record, file))
    return engine


def seconds_since_1970(connection: Connection) -> float:
    """Return the time by the database's clock."""
    return float(connection.execute(select(epoch_s())).scalar_one())


def insertion(connection: Connection, table: Table) -> Any:
    """Return an INSERT of the connection's own kind, which can say what is done where the row is there already."""
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)


def upsert(connection: Connection, table: Table, row: Mapping[str, Any], *, add: tuple[str, ...] = ()) -> None:
    """Insert `row`, or change the one with its primary key.

    Args:
        connection: in a transaction that writes.
        table: where to.
        row: by column.
        add: columns to which the row's value is added where the row exists.
    """
    insert = insertion(connection, table).values(**row)
    keys = [column.name for column in table.primary_key]
    changes = {name: insert.excluded[name] for name in row if name not in keys}
    changes |= {name: table.c[name] + insert.excluded[name] for name in add}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changes))


def _json(value: Any) -> str:
    """Return JSON that every database takes."""
    return storable(json.dumps(value, ensure_ascii=False).replace("\\u0000", REPLACEMENT))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        if isinstance(error, OperationalError | InterfaceError | InternalError) or _cause(error) is not None:
            raise unavailable(error) from error
        raise  # the statement is to blame


def unavailable(error: BaseException) -> StoreUnavailable:
    """Return the error shown to a user; the driver's own words go to the log."""
    LOG.warning("The database cannot be used: %s", _said(error))
    return because(_cause(error) or UNREACHABLE)


def because(cause: str) -> StoreUnavailable:
    """Return the error that states `cause`."""
    return StoreUnavailable(f"The database cannot be used now: {cause}.")


def _cause(error: BaseException) -> str | None:
    said = _said(error).lower()
    return next((cause for words, cause in CAUSES if any(word in said for word in words)), None)


def _said(error: BaseException) -> str:
    driver = getattr(error, "orig", None) or error
    return f"{type(driver).__name__}: {driver}".splitlines()[0]


ACCOUNT_PREFIX = "user:"  # of the owners whom a login or a proxy vouches for
MOST_LISTED = 100_000


class Action(StrEnum):
    """Audited actions."""

    SUBMITTED = "run submitted"
    SAVED = "run saved"
    CANCELLED = "run cancelled"
    DELETED = "run deleted"
    RESTORED = "run restored"
    PRUNED = "runs pruned"
    PAUSED = "device paused"
    DRAINED = "device drained"
    RESERVED = "device reserved"
    RESUMED = "device resumed"
    ROOM_OPENED = "room opened"
    ROOM_CLOSED = "room closed"
    ROOM_DELETED = "room deleted"


def note(connection: Connection, at_utc: str, entry: tuple[Action, str, str], address: str | None = None) -> None:
    """Write down what is done in this transaction.

    Args:
        connection: in it.
        at_utc: now.
        entry: the action, the owner who does it, and to what.
        address: where from.
    """
    action, owner, thing = entry
    row = {"at_utc": at_utc, "who": shown(owner), "address": address, "action": action.value, "object": thing}
    connection.execute(insert(AUDIT).values(**row))


def noted(database: Database, since_utc: str = "", *, limit: int = 1000) -> Sequence[RowMapping]:
    """Return what was done since then, the newest first, `limit` rows at most.

    Of each it is `at_utc`, in ISO 8601, `who` did it, an account, `command line`, or `browser` and a digest of its
    cookie, from which `address`, None for this machine and where it is unknown, the `action`, and its `object`: the id
    of a run, or the code of a room.
    """
    columns = (AUDIT.c.at_utc, AUDIT.c.who, AUDIT.c.address, AUDIT.c.action, AUDIT.c.object)
    wanted = select(*columns).where(AUDIT.c.at_utc >= since_utc).order_by(AUDIT.c.number.desc()).limit(limit)
    with database.reading() as connection:
        return connection.execute(wanted).mappings().all()


def shown(owner: str) -> str:
    """Return an owner as the log names them."""
    if owner.startswith(ACCOUNT_PREFIX):
        return owner.removeprefix(ACCOUNT_PREFIX)
    if owner == "command line":
        return owner
    return f"browser {sha256(owner.encode(errors='surrogatepass')).hexdigest()[:12]}"
