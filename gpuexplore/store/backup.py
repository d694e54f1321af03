"""Backup of an SQLite database, with the few other files of a home in it; it can be verified and restored.

The backup is a consistent snapshot, taken while others write, and is itself an SQLite file.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpuexplore.core import InvalidInput, StoreUnavailable, check_known, format_bytes, require
from gpuexplore.store.database import OWNER_ONLY, because, size_of, unavailable
from gpuexplore.store.upgrade import revisions

FILES = "backup_files"  # the table of the other files of the home in a backup
SIDE_FILES = ("-wal", "-shm", "-journal")
READ_ONLY = "mode=ro&immutable=1"  # not even a lock is written


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of a copy.

    Attributes:
        revision: its schema.
        size_bytes: of the file.
        counts: rows by table, of those that the copy has.
        files: names of the other files in it.
    """

    revision: str
    size_bytes: int
    counts: Mapping[str, int]
    files: tuple[str, ...]


def back_up(database: Path, target: Path, files: Mapping[str, bytes]) -> Contents:
    """Copy the database to a new file, readable by its owner only; return its verified contents.

    Args:
        database: the file of SQLite, which others may write meanwhile.
        target: path of the backup; it exists only once it is complete.
        files: contents of further files, by name.

    Raises:
        InvalidInput: `target` exists or cannot be written.
        StoreUnavailable: there is no database, its disk is full, or the copy is damaged.
    """
    if not database.is_file():
        raise because("it does not exist yet")
    if target.exists():
        raise InvalidInput.of("file", target, "a file that does not exist yet")
    _check_space(target.parent, size_of(database) + sum(map(len, files.values())))
    part = target.with_name(f"{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
    except OSError as error:
        raise InvalidInput.of("file", target, f"a writable file ({error.strerror})") from error
    try:
        with _translated(), closing(_opened(database)) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, and no other
            copy.execute(f"DROP TABLE IF EXISTS {FILES}")
            copy.execute(f"CREATE TABLE {FILES} (name TEXT PRIMARY KEY, content BLOB NOT NULL)")
            copy.executemany(f"INSERT INTO {FILES} VALUES (?, ?)", files.items())
            copy.commit()
        found = contents_of(part)
        part.rename(target)
    except BaseException:
        _remove(part)
        raise
    return found


def contents_of(backup: Path) -> Contents:
    """Return the contents of an intact backup; nothing is written, neither there nor next to it.

    Raises:
        InvalidInput: it is not a backup of gpuexplore, is damaged, or is of a newer version; the text says which.
    """
    accepted = "a file written by gpuexplore backup"
    require(backup.is_file(), "file", backup, accepted)
    require(
        size_of(backup) <= backup.stat().st_size,
        "file",
        backup,
        f"{accepted}; this one has a write-ahead log, so it is in use",
    )
    try:
        with closing(_opened(backup, READ_ONLY)) as connection:
            return _contents(connection, backup)
    except sqlite3.Error as error:
        raise InvalidInput.of("file", backup, f"{accepted}; this one cannot be read: {error}") from error


def restore(backup: Path, database: Path, moment: str) -> Path | None:
    """Replace the database with a backup; return the path of the previous database, None where there was none.

    Args:
        backup: written by `back_up`.
        database: to be replaced.
        moment: part of the name under which the previous database is kept.

    Raises:
        InvalidInput: the copy cannot be used.
        StoreUnavailable: another process uses the database, or the disk is full; nothing has changed then.
    """
    contents_of(backup)
    _check_space(database.parent, backup.stat().st_size)
    new = database.with_name(f"{database.name}.restored")
    try:
        _remove(new)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY))
        with _translated(), closing(_opened(backup, READ_ONLY)) as source, closing(sqlite3.connect(new)) as copy:
            source.backup(copy)
            copy.execute(f"DROP TABLE IF EXISTS {FILES}")
            copy.commit()
        if not database.exists():
            new.rename(database)
            return None
        found = database.stat()
        new.chmod(found.st_mode)
        if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            with suppress(PermissionError):
                os.chown(new, found.st_uid, found.st_gid)
        with _alone_if_readable(database) as sides:
            kept = _kept(database, moment, sides)
            new.replace(database)
        return kept
    except BaseException:
        _remove(new)
        raise


def files_of(backup: Path) -> dict[str, bytes]:
    """Return the other files of the home that are in a copy, by name."""
    with _translated(), closing(_opened(backup, READ_ONLY)) as connection:
        if not _has(connection, FILES):
            return {}
        return dict(connection.execute(f"SELECT name, content FROM {FILES}"))


@contextmanager
def alone(database: Path) -> Iterator[sqlite3.Connection]:
    """Yield an exclusive connection to the database; others wait meanwhile.

    Other connections share a lock on the file as long as it has a write-ahead log, so leaving that mode fails while
    there are any.

    Raises:
        StoreUnavailable: another process has it open.
    """
    with closing(_opened(database)) as connection:
        connection.execute("PRAGMA busy_timeout = 1000")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        try:
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")  # the lock stays
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(
                "The database is in use: another program has it open. Stop the web server and the supervisor, and "
                "close all other programs that use it."
            ) from error
        yield connection


@contextmanager
def _alone_if_readable(database: Path) -> Iterator[tuple[str, ...]]:
    """Get exclusive access to a database, unless it is so damaged that SQLite fails: it is to be replaced anyway.

    Yields:
        The side files that belong to it: none with exclusive access, except a journal deleted with the connection.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(database))
            sides: tuple[str, ...] = ()
        except sqlite3.DatabaseError:
            sides = SIDE_FILES
        yield sides


def _kept(database: Path, moment: str, sides: Iterable[str]) -> Path:
    """Give the database, and the files that belong to it, another name in the same directory; return it."""
    kept = database.with_name(f"{database.name}.before-restore-{moment}")
    for side in sides:
        with suppress(FileNotFoundError):
            Path(f"{database}{side}").rename(f"{kept}{side}")
    try:
        os.link(database, kept)  # so that there is a database at every moment
    except OSError:  # a file system without links
        database.rename(kept)
    return kept


def _contents(connection: sqlite3.Connection, backup: Path) -> Contents:
    accepted = "an intact copy"
    ((said,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    require(said == "ok", "file", backup, f"{accepted}; this one is damaged: {said}")
    if broken := connection.execute("PRAGMA foreign_key_check").fetchone():
        raise InvalidInput.of("file", backup, f"{accepted}; this one has orphaned rows in {broken[0]}")
    require(
        _has(connection, "alembic_version"), "file", backup, "a database of gpuexplore; this one has another schema"
    )
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    check_known("schema", revision, revisions())
    counted = ("runs", "results", "observations", "answers", "rooms")
    counts = {
        table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for table in counted
        if _has(connection, table)
    }
    rows = connection.execute(f"SELECT name FROM {FILES} ORDER BY name") if _has(connection, FILES) else ()
    return Contents(revision, backup.stat().st_size, counts, tuple(name for (name,) in rows))


def _has(connection: sqlite3.Connection, table: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    return found.fetchone() is not None


def _opened(file: Path, how: str = "mode=rw") -> sqlite3.Connection:
    return sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True, isolation_level=None)


def _check_space(folder: Path, needed_bytes: int) -> None:
    try:
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        raise InvalidInput.of("folder", folder, f"an existing one ({error.strerror})") from error
    if free_bytes < needed_bytes:
        raise StoreUnavailable(
            f"The copy needs {format_bytes(needed_bytes)} in {folder}, but {format_bytes(free_bytes)} are free: "
            "free some space, or choose another disk."
        )


def _remove(file: Path) -> None:
    for path in (file, *(Path(f"{file}{side}") for side in SIDE_FILES)):
        path.unlink(missing_ok=True)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise unavailable(error) from error
