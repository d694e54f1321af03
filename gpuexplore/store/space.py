"""Gives the space of what was erased back to the disk: a little at a time beside others, else at once."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuexplore.errors import StoreUnavailable
from gpuexplore.store.backup import alone
from gpuexplore.store.database import Database
from gpuexplore.store.prune import PAUSE_S
from gpuexplore.store.sqlite_connection import size_of
from gpuexplore.units import format_bytes

PAGES = 300  # that one transaction gives back: some ten milliseconds
INCREMENTAL = 2  # the value of PRAGMA auto_vacuum
ENVIRONMENTS_OF_NOTHING = (
    "DELETE FROM environments WHERE digest NOT IN (SELECT environment FROM results WHERE environment IS NOT NULL)"
)
SERVER_KEEPS = "PostgreSQL fills the space again by itself; VACUUM FULL gives it back, and keeps everybody waiting"


@dataclass(frozen=True, slots=True)
class Space:
    """The database's file before and after, in bytes; None where it is a server's.

    Attributes:
        free_bytes: of it, what is empty inside and is filled again.
        reason: why that was not given back; None where it was.
    """

    before_bytes: int | None
    after_bytes: int | None
    free_bytes: int
    reason: str | None


def give_back(database: Database, pause: Callable[[float], None] = time.sleep) -> Space:
    """Make the file of SQLite as small as what is in it; return what came of it.

    Where nobody else has the database open it is rewritten, and can be made smaller beside others from then on. Where
    somebody has, it gives back a little in each transaction, if it was rewritten or made by this version.
    """
    if database.engine.dialect.name != "sqlite":
        return Space(None, None, 0, SERVER_KEEPS)
    file = Path(str(database.engine.url.database))
    before_bytes, reason = size_of(file), None
    _shrink_beside_others(database, pause)
    database.engine.dispose()  # this process's own connections
    try:
        _rewrite(file)
    except StoreUnavailable as error:
        reason = str(error)
    return Space(before_bytes, size_of(file), _free_bytes(database), reason)


def _shrink_beside_others(database: Database, pause: Callable[[float], None]) -> None:
    with database.reading() as connection:
        if connection.exec_driver_sql("PRAGMA auto_vacuum").scalar() != INCREMENTAL:
            return
    while _free_pages(database):
        raw: Any = database.engine.raw_connection()
        try:  # the driver takes one step of any other call, and a step gives back one page
            raw.driver_connection.executescript(f"PRAGMA incremental_vacuum({PAGES})")
        finally:
            raw.close()
        pause(PAUSE_S)


def _rewrite(file: Path) -> None:
    free_bytes = shutil.disk_usage(file.parent).free
    if free_bytes < 2 * size_of(file):  # the new file, and a journal of the old one
        raise StoreUnavailable(
            f"To rewrite the database takes {format_bytes(2 * size_of(file))} of its disk for a while, and "
            f"{format_bytes(free_bytes)} are free."
        )
    with alone(file) as connection:
        connection.execute(ENVIRONMENTS_OF_NOTHING)
        connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        connection.execute("VACUUM")
        connection.execute("PRAGMA locking_mode = NORMAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _free_pages(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.exec_driver_sql("PRAGMA freelist_count").scalar() or 0)


def _free_bytes(database: Database) -> int:
    with database.reading() as connection:
        page_bytes = int(connection.exec_driver_sql("PRAGMA page_size").scalar() or 0)
    return page_bytes * _free_pages(database)
