"""Brings a database to the newest schema before anybody uses it."""

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from gpuexplore.store.sqlite_connection import create
from gpuexplore.store.unavailable import because

LOG = logging.getLogger(__name__)
SWITCH_S, POLL_S = 5.0, 0.02
ADVISORY_LOCK = 0x6770_7565  # "gpue": any number that nobody else locks in this database
NO_WAL = (
    "The database %s cannot keep a write-ahead log (journal mode %s), as on a network file system: pages will wait "
    "while a result is written. Put GPUEXPLORE_HOME on a local disk, or use PostgreSQL."
)


def upgrade(engine: Engine) -> None:
    """Apply the migrations that are missing; a second process that starts meanwhile waits its turn.

    Before an upgrade, a file of SQLite is copied beside itself.

    Raises:
        StoreUnavailable: a newer version of gpuexplore made this database.
    """
    create(engine)
    _keep_write_ahead_log(engine)
    with engine.execution_options(sqlite_begin="BEGIN IMMEDIATE", sqlite_durable=True).begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": ADVISORY_LOCK})
        found, newest = revision_of(connection), newest_revision()
        if found == newest:
            return
        if found is not None:
            _check_known(found)
            _copy(engine, found)
        command.upgrade(migration_config(connection), "head")


def migration_config(connection: Connection) -> Config:
    """Return Alembic's settings for the migrations of this package, run on `connection`."""
    config = _config()
    config.attributes["connection"] = connection
    return config


def revision_of(connection: Connection) -> str | None:
    """Return the schema that the database has; None when it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def newest_revision() -> str | None:
    """Return the schema that this version of gpuexplore needs."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "gpuexplore.store:migrations")
    return config


def _check_known(revision: str) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if revision not in known:
        raise because(
            f"a newer version of gpuexplore made it (schema {revision}, and this version knows {newest_revision()}): "
            "install that version again, or restore a copy made before its upgrade"
        )


def _copy(engine: Engine, revision: str) -> None:
    if engine.dialect.name != "sqlite":
        LOG.info("The schema is upgraded from %s: pg_dump would have kept a copy", revision)
        return
    file = Path(str(engine.url.database))
    target = file.with_name(f"{file.name}.before-{newest_revision()}")
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    LOG.info("The database is upgraded; %s is a copy of it as it was", target)


def _keep_write_ahead_log(engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        return
    raw = engine.raw_connection()  # the journal mode cannot be changed inside a transaction
    try:
        mode = _write_ahead_log(lambda: raw.cursor().execute("PRAGMA journal_mode = WAL").fetchone()[0])
    finally:
        raw.close()
    if mode != "wal":
        LOG.warning(NO_WAL, engine.url.render_as_string(), mode)


def _write_ahead_log(switch: Callable[[], str]) -> str:
    """Return the journal mode after `switch`; SQLite does not wait when another process switches at that moment."""
    deadline_s = time.monotonic() + SWITCH_S
    while True:
        try:
            return switch()
        except sqlite3.OperationalError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(POLL_S)
