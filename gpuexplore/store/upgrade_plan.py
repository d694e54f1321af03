"""What opening a database with this version of gpuexplore would do to it, told without doing it."""

import ast
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from gpuexplore.store.database import connect, database_url
from gpuexplore.store.sqlite_connection import size_of
from gpuexplore.store.unavailable import unavailable
from gpuexplore.store.upgrade import (
    VERSIONS,
    check_known,
    free_bytes,
    needed_bytes,
    newest_revision,
    revision_of,
    revisions,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One migration: the schema that it makes, and what it does."""

    revision: str
    about: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What an upgrade would do.

    Attributes:
        found: the schema there is; None where there is no database yet.
        newest: that of this version.
        steps: the migrations in between.
        size_bytes: of the database; None where there is none.
        needed_bytes: what it takes of the disk beside that, at most; None on a server, whose disk is its own.
        free_bytes: of that disk.
    """

    found: str | None
    newest: str
    steps: tuple[Step, ...]
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
            return Plan(None, newest_revision(), (), None, None, None)
        return _plan(engine, file)
    except (DBAPIError, sqlite3.Error) as error:
        raise unavailable(error) from error
    finally:
        engine.dispose()


def _plan(engine: Engine, file: Path | None) -> Plan:
    with engine.connect() as connection:
        found = revision_of(connection)
        if found is None:
            return Plan(None, newest_revision(), (), None, None, None)
        check_known(found)
        steps = tuple(Step(revision, _about(revision)) for revision in revisions() if revision > found)
        if file is None:
            size = connection.scalar(text("SELECT pg_database_size(current_database())"))
            return Plan(found, newest_revision(), steps, size, None, None)
    return Plan(found, newest_revision(), steps, size_of(file), needed_bytes(file) if steps else 0, free_bytes(file))


def _about(revision: str) -> str:
    """Return the first sentence of a migration, which Alembic would have to load."""
    (path,) = VERSIONS.glob(f"{revision}_*.py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or revision).partition("\n")[0]
