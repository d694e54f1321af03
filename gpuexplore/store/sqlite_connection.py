"""Settings of SQLite's connections: when transactions begin, how safely they end, and that the file still exists."""

import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DisconnectionError

PATIENCE_S = 10.0  # a writer waits this long for another one before it gives up
SETTINGS = ("PRAGMA foreign_keys = ON",)
OWNER_ONLY, OPEN_TO_ALL = 0o600, 0o644  # owners are cookies: who reads one is its visitor
# With WAL a power cut may lose the last moments under NORMAL, nothing under FULL, and never the file.
SYNCHRONOUS = {False: "NORMAL", True: "FULL"}


def listen(engine: Engine) -> None:
    """Prepare every connection of `engine`."""
    file = _file(engine)
    event.listen(engine, "connect", lambda connection, record: _prepare(connection, record, file))
    event.listen(engine, "begin", _begin)
    if file:
        event.listen(engine, "do_connect", lambda *_: _check_exists(file))
        event.listen(engine, "checkout", lambda _, record, __: _check_file(record, file))


def _prepare(connection: Any, record: Any, file: str | None) -> None:
    # The driver would begin a transaction only before the first change: a read followed by a write could then fail
    # as stale. See https://docs.sqlalchemy.org/en/21/dialects/sqlite.html#pysqlite-serializable
    connection.isolation_level = None
    for setting in SETTINGS:
        connection.execute(setting)
    record.info["file"] = _file_id(file)


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql(f"PRAGMA synchronous = {SYNCHRONOUS[options.get('sqlite_durable', False)]}")
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
            if stat.S_IMODE(path.stat().st_mode) == OPEN_TO_ALL:
                path.chmod(OWNER_ONLY)


def check_whole(connection: Connection) -> None:
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
