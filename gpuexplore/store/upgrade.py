"""Brings a database to the newest schema before anybody uses it."""

import logging

from alembic import command
from alembic.config import Config
from filelock import FileLock
from sqlalchemy import Connection, Engine

from gpuexplore.devices.directories import data_directory

LOG = logging.getLogger(__name__)
NO_WAL = (
    "The database %s cannot keep a write-ahead log (journal mode %s), as on a network file system: pages will wait "
    "while a result is written. Put GPUEXPLORE_HOME on a local disk, or use PostgreSQL."
)


def upgrade(engine: Engine) -> None:
    """Apply the migrations that are missing; a second process that starts meanwhile waits its turn."""
    directory = data_directory() / "locks"
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(directory / "migration.lock"):
        _keep_write_ahead_log(engine)
        with engine.begin() as connection:
            command.upgrade(migration_config(connection), "head")


def migration_config(connection: Connection) -> Config:
    """Return Alembic's settings for the migrations of this package, run on `connection`."""
    config = Config()
    config.set_main_option("script_location", "gpuexplore.store:migrations")
    config.attributes["connection"] = connection
    return config


def _keep_write_ahead_log(engine: Engine) -> None:
    if engine.dialect.name != "sqlite":
        return
    raw = engine.raw_connection()  # the journal mode cannot be changed inside a transaction
    try:
        mode = raw.cursor().execute("PRAGMA journal_mode = WAL").fetchone()[0]
    finally:
        raw.close()
    if mode != "wal":
        LOG.warning(NO_WAL, engine.url.render_as_string(), mode)
