"""A database brought to the newest schema before it is used, and a plan of what that would do.

Alembic takes a tenth of a second to load, so it is only where there is something to upgrade.
"""

import ast
import logging
import shutil
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, select, text
from sqlalchemy.exc import DBAPIError

from gpuexplore.core.units import format_bytes
from gpuexplore.store.database import FULL, because, connect, create, database_url, size_of, unavailable

if TYPE_CHECKING:
    from alembic.config import Config


LOG = logging.getLogger(__name__)
VERSIONS = Path(__file__).parent / "migrations" / "versions"
KEPT_BY_ALEMBIC = Table("alembic_version", MetaData(), Column("version_num", String))


def upgrade(engine: Engine) -> None:
    """Apply the migrations that are missing; a second process that starts meanwhile waits.

    Before an upgrade, a file of SQLite is copied to its own directory. Where the upgrade fails, the file is as it was,
    and the copy is removed: a full disk may be why.

    Raises:
        StoreUnavailable: a newer version of gpuexplore made this database, or the disk is full.
    """
    create(engine)
    _keep_write_ahead_log(engine)
    copies: list[Path] = []
    try:
        with engine.execution_options(sqlite_begin="BEGIN IMMEDIATE", sqlite_durable=True).begin() as connection:
            _upgrade(engine, connection, copies)
    except BaseException:
        for copy in copies:
            copy.unlink(missing_ok=True)
        raise


def _upgrade(engine: Engine, connection: Connection, copies: list[Path]) -> None:
    """Upgrade in the transaction of `connection`; what was copied before is added to `copies`."""
    if engine.dialect.name == "postgresql":
        # "gpue": any number that no other program locks in this database
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": 0x6770_7565})
    found = _revision_of(connection)
    if found == _newest_revision():
        return
    if found is not None:
        _check_known(found)
        copies += _copy(engine, found)
    from alembic import command

    command.upgrade(_migration_config(connection), "head")


def _migration_config(connection: Connection) -> "Config":
    """Return Alembic's settings for the migrations of this package, run on `connection`."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "gpuexplore.store:migrations")
    config.attributes["connection"] = connection
    return config


def _revision_of(connection: Connection) -> str | None:
    """Return the schema that the database has, as Alembic notes it; None when it is empty."""
    if not inspect(connection).has_table(KEPT_BY_ALEMBIC.name):
        return None
    return connection.scalar(select(KEPT_BY_ALEMBIC.c.version_num))


def revisions() -> list[str]:
    """Return the schemas that this version of gpuexplore knows, the newest last: files begin with their names."""
    return sorted(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*_*.py"))


def _newest_revision() -> str:
    """Return the schema that this version of gpuexplore needs."""
    return revisions()[-1]


def _check_known(revision: str) -> None:
    """Return when this version of gpuexplore knows the schema.

    Raises:
        StoreUnavailable: it does not, as a newer one made the database, or one between two releases.
    """
    if revision in revisions():
        return
    known = ", ".join(revisions())
    if revision < _newest_revision():
        raise because(f"a version between releases made it (schema {revision}): those that can be upgraded are {known}")
    raise because(
        f"a newer version of gpuexplore made it (schema {revision}, this version knows {_newest_revision()}): "
        "install that version again, or restore a copy made before its upgrade"
    )


def _copy(engine: Engine, revision: str) -> list[Path]:
    """Copy the database's file to its own directory; return the copy, and none of a database without a file."""
    if engine.dialect.name != "sqlite":
        LOG.info("The schema is upgraded from %s: no copy is made (use pg_dump for one)", revision)
        return []
    file = Path(str(engine.url.database))
    needed = _needed_bytes(file)
    free = free_bytes(file)
    if free < needed:
        raise because(
            f"its upgrade takes {format_bytes(needed)} of its disk for a copy and for the new schema, but "
            f"{format_bytes(free)} are free. Nothing has changed: free some space, or use the previous version"
        )
    target = file.with_name(f"{file.name}.before-{_newest_revision()}")
    part = target.with_name(f"{target.name}.part")
    try:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
        part.replace(target)
    except OSError as error:
        raise because(FULL if error.errno in (ENOSPC, EDQUOT) else f"it cannot be copied ({error.strerror})") from error
    finally:
        for left in (part, part.with_name(f"{part.name}-journal")):
            left.unlink(missing_ok=True)
    LOG.info("The database was upgraded; %s is a copy of the previous one", target)
    return [target]


def _keep_write_ahead_log(engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        return
    raw = engine.raw_connection()  # the journal mode cannot be changed inside a transaction
    try:
        raw.cursor().execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file only: `space` can then make it smaller
        mode = _write_ahead_log(lambda: raw.cursor().execute("PRAGMA journal_mode = WAL").fetchone()[0])
    finally:
        raw.close()
    if mode != "wal":
        LOG.warning(
            "The database %s cannot keep a write-ahead log (journal mode %s), as on a network file system: pages will "
            "wait while a result is written. Put GPUEXPLORE_HOME on a local disk, or use PostgreSQL.",
            engine.url.render_as_string(),
            mode,
        )


def _write_ahead_log(switch: Callable[[], str]) -> str:
    """Return the journal mode after `switch`; SQLite does not wait when another process switches at that moment."""
    deadline_s = time.monotonic() + 5.0
    while True:
        try:
            return switch()
        except sqlite3.OperationalError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)


def _needed_bytes(file: Path) -> int:
    """Return how much an upgrade of this file of SQLite takes of its disk, at most.

    The copy, then tables and indexes that are written again, in the write-ahead log and in the file. Seen: 2.1 times
    the size from version 0.1.0, and 3.1 times of a database that is nothing but runs.
    """
    return max(10_000_000, round(3.5 * size_of(file)))


def free_bytes(file: Path) -> int:
    """Return how much of its disk is free."""
    return shutil.disk_usage(file.parent).free


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an upgrade.

    Attributes:
        found: the schema there is; None where there is no database yet.
        newest: that of this version.
        steps: what each migration in between does, by the schema that it makes, in order.
        size_bytes: of the database; None where there is none.
        needed_bytes: what it takes of the disk in addition, at most; None on a server, whose disk is its own.
        free_bytes: of that disk.
    """

    found: str | None
    newest: str
    steps: Mapping[str, str]
    size_bytes: int | None
    needed_bytes: int | None
    free_bytes: int | None


def plan_upgrade(url: str | None = None) -> Plan:
    """Return what an upgrade would do to the database; nothing is written.

    Raises:
        StoreUnavailable: a newer version made it, or it cannot be read; says which.
    """
    engine = connect(database_url(url))
    file = Path(str(engine.url.database)) if engine.dialect.name == "sqlite" else None
    try:
        if file is not None and not file.exists():
            return Plan(None, _newest_revision(), {}, None, None, None)
        with engine.connect() as connection:
            found = _revision_of(connection)
            if found is None:
                return Plan(None, _newest_revision(), {}, None, None, None)
            _check_known(found)
            steps = {revision: _about(revision) for revision in revisions() if revision > found}
            if file is None:
                size = connection.scalar(text("SELECT pg_database_size(current_database())"))
                return Plan(found, _newest_revision(), steps, size, None, None)
        return Plan(
            found, _newest_revision(), steps, size_of(file), _needed_bytes(file) if steps else 0, free_bytes(file)
        )
    except (DBAPIError, sqlite3.Error) as error:
        raise unavailable(error) from error
    finally:
        engine.dispose()


def _about(revision: str) -> str:
    """Return the first sentence of a migration, which Alembic would have to load."""
    (path,) = VERSIONS.glob(f"{revision}_*.py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or revision).partition("\n")[0]
