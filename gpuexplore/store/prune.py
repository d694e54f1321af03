"""Old runs erased for good, a little at a time, and the space of what was erased given back to the disk.

Each transaction erases so few rows that another writer waits for a tenth of a second at most, and between two
of them the others write. A run that is being erased is off every list from the first of them on. The space
comes back in the same way while others have the database open, else at once.
"""

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, exists, func, or_, select, update

from gpuexplore.core import StoreUnavailable, format_bytes
from gpuexplore.store.backup import alone
from gpuexplore.store.database import Action, Database, note, seconds_since_1970, size_of
from gpuexplore.store.run_states import FINAL
from gpuexplore.store.tables import AUDIT, DEVICE_SECONDS, OBSERVATIONS, RESULTS, RUN_TAGS, RUNS
from gpuexplore.store.turns import MINUTES

ROWS = 200  # of a transaction, to begin with
MOST = 1000
PAGES = 300  # that one transaction gives back: some ten milliseconds
PAUSE_S = 0.1  # SQLite looks so often whether it can write
INCREMENTAL = 2  # the value of PRAGMA auto_vacuum
Paced = Callable[[Callable[[Connection, int], Any]], Any]  # calls a function with how many rows it may change


@dataclass(frozen=True, slots=True)
class _Pruned:
    """Counts of what is or was erased.

    Attributes:
        kept: runs that are as old, and stay for their tag or note.
        audit: lines of the audit log.
    """

    runs: int
    results: int
    kept: int
    audit: int = 0


def _old_runs(before_utc: str, *, marked: bool = False) -> ColumnElement[bool]:
    """Return the condition on the runs that go: those that ended before then, and those that were deleted before then.

    Args:
        before_utc: in ISO 8601.
        marked: whether those go that ended before then with a tag or a note.
    """
    tagged = exists(select(RUN_TAGS.c.tag).where(RUN_TAGS.c.number == RUNS.c.number))
    old = RUNS.c.finished_utc < before_utc
    if not marked:
        old &= (RUNS.c.note == "") & ~tagged
    return RUNS.c.state.in_(FINAL) & or_(old, RUNS.c.deleted_utc < before_utc)


def prunable(database: Database, before_utc: str, *, marked: bool = False) -> _Pruned:
    """Return what `prune` would erase."""
    old = _old_runs(before_utc, marked=marked)
    gone = select(RUNS.c.id).where(old)
    everything = _old_runs(before_utc, marked=True)
    with database.reading() as connection:
        runs = _count(connection, select(func.count()).select_from(RUNS).where(old))
        results = _count(connection, select(func.count()).select_from(RESULTS).where(RESULTS.c.run_id.in_(gone)))
        every = _count(connection, select(func.count()).select_from(RUNS).where(everything))
        lines = _count(connection, select(func.count()).select_from(AUDIT).where(AUDIT.c.at_utc < before_utc))
    return _Pruned(runs, results, every - runs, lines)


def prune(
    database: Database,
    before_utc: str,
    owner: str,
    pause: Callable[[float], None] = time.sleep,
    *,
    marked: bool = False,
) -> _Pruned:
    """Erase old runs with everything in them, and what the audit log says of that time; return what went.

    Args:
        database: where they are.
        before_utc: which; see `_old_runs`.
        owner: who asks, for the audit log.
        pause: waits so many seconds, in which others write.
        marked: also those with a tag or a note.
    """
    do = _paced(database, pause)
    kept = prunable(database, before_utc, marked=marked).kept
    erased = Counter[Table]()
    for table, rows in _erased(database, _old_runs(before_utc, marked=marked), do):
        erased[table] += rows
    do(_erase_uses)
    while rows := do(partial(_erase_some, AUDIT, AUDIT.c.at_utc < before_utc)):
        erased[AUDIT] += rows
    with database.writing(durable=True) as connection:
        note(connection, database.now(), (Action.PRUNED, owner, f"{erased[RUNS]} runs before {before_utc[:19]}"))
    return _Pruned(erased[RUNS], erased[RESULTS], kept, erased[AUDIT])


def purge_deleted(
    database: Database, before_utc: str, *, most_s: float = 1.0, pause: Callable[[float], None] = time.sleep
) -> int:
    """Erase the runs that were deleted before then, with their results, for `most_s` seconds; return how many."""
    end_s = time.monotonic() + most_s
    runs = 0
    for table, rows in _erased(database, RUNS.c.deleted_utc < before_utc, _paced(database, pause)):
        runs += rows if table is RUNS else 0
        if time.monotonic() >= end_s:
            break
    return runs


def _erased(database: Database, old: ColumnElement[bool], do: Paced) -> Iterator[tuple[Table, int]]:
    """Erase runs with what they contain, and yield after each transaction the table and its number of erased rows."""
    with database.reading() as connection:
        left = list(connection.scalars(select(RUNS.c.id).where(old).order_by(RUNS.c.number)))
    while left:
        ids = do(partial(_hide, old, left, now=database.now()))
        for table, run_id in ((RESULTS, RESULTS.c.run_id), (OBSERVATIONS, OBSERVATIONS.c.run_id), (RUNS, RUNS.c.id)):
            while rows := do(partial(_erase_some, table, run_id.in_(ids))):
                yield table, rows


def _paced(database: Database, pause: Callable[[float], None]) -> Paced:
    """Return what does a little in each transaction, by what the ones before took."""
    rows = ROWS
    wanted_s = 0.05  # a transaction: the number of rows follows

    def do(act: Callable[[Connection, int], Any]) -> Any:
        """Return what `act` does in one transaction to so many rows; then let others write."""
        nonlocal rows
        with database.writing() as connection:
            start_s = time.perf_counter()
            done = act(connection, rows)
            took_s = time.perf_counter() - start_s
        if took_s > wanted_s:
            rows = max(10, rows // 2)
        elif took_s < wanted_s / 4:
            rows = min(MOST, 2 * rows)
        pause(PAUSE_S)
        return done

    return do


def _hide(old: ColumnElement[bool], ids: list[str], connection: Connection, rows: int, *, now: str) -> list[str]:
    """Take the first of the runs off `ids`, and those of them that still are old off every list; return these."""
    some = ids[:rows]
    del ids[:rows]
    found = list(connection.scalars(select(RUNS.c.id).where(RUNS.c.id.in_(some), old)))
    hidden = update(RUNS).where(RUNS.c.id.in_(found), RUNS.c.deleted_utc.is_(None))
    connection.execute(hidden.values(deleted_utc=now))
    return found


def _erase_some(table: Table, which: ColumnElement[bool], connection: Connection, rows: int) -> int:
    some = select(table.c.number).where(which).limit(rows)
    return connection.execute(delete(table).where(table.c.number.in_(some))).rowcount


def _erase_uses(connection: Connection, _: int) -> None:
    """Erase the device seconds that no order of runs depends on any more."""
    counted = int(seconds_since_1970(connection) // 60) - MINUTES
    connection.execute(delete(DEVICE_SECONDS).where(DEVICE_SECONDS.c.minute <= counted))


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.scalar(query) or 0


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

    Where no other process has the database open it is rewritten, and can be made smaller in steps from then on. Where
    one has, it gives back a little in each transaction, if it was rewritten or made by this version.
    """
    if database.engine.dialect.name != "sqlite":
        server = "PostgreSQL reuses the space by itself; VACUUM FULL returns it to the disk, but locks the tables"
        return Space(None, None, 0, f"{server} meanwhile")
    file = Path(str(database.engine.url.database))
    before_bytes = size_of(file)
    reason = None
    _shrink_in_steps(database, pause)
    database.engine.dispose()  # this process's own connections
    try:
        _rewrite(file)
    except StoreUnavailable as error:
        reason = str(error)
    with database.reading() as connection:
        page_bytes = int(connection.exec_driver_sql("PRAGMA page_size").scalar() or 0)
    return Space(before_bytes, size_of(file), page_bytes * _free_pages(database), reason)


def _shrink_in_steps(database: Database, pause: Callable[[float], None]) -> None:
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
            f"Rewriting the database temporarily takes {format_bytes(2 * size_of(file))} of its disk, but only "
            f"{format_bytes(free_bytes)} are free."
        )
    with alone(file) as connection:
        in_use = "SELECT environment FROM results WHERE environment IS NOT NULL"
        connection.execute(f"DELETE FROM environments WHERE digest NOT IN ({in_use})")
        connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        connection.execute("VACUUM")
        connection.execute("PRAGMA locking_mode = NORMAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _free_pages(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.exec_driver_sql("PRAGMA freelist_count").scalar() or 0)
