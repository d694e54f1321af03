"""Old runs erased while others write: in short transactions, each followed by a pause in which they get their turn."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, delete, func, literal, select, update

from gpuexplore.store.database import Database
from gpuexplore.store.run_states import FINAL
from gpuexplore.store.tables import OBSERVATIONS, RESULTS, RUNS

BATCH = 500  # results or observations that one transaction erases: some ten milliseconds
LOOK = 1000  # runs that are found at once
PAUSE_S = 0.1  # SQLite's waiting writers look again after so long at most
ERASED_UTC = "1970-01-01T00:00:00.000000+00:00"  # of a run that is being erased: nobody sees it, and nobody restores it
Pause = Callable[[float], object]


def prune(
    database: Database,
    before_utc: str,
    *,
    batch: int = BATCH,
    pause: Pause = time.sleep,
    on_run: Callable[[str], object] = lambda _: None,
) -> int:
    """Erase the runs that ended before then, with their results; return how many.

    No transaction erases more than `batch` rows, so that whoever writes meanwhile waits for some ten milliseconds.

    Args:
        database: where they are.
        before_utc: in ISO 8601, as the tables hold it.
        batch: results or observations of one transaction.
        pause: waits so many seconds after each.
        on_run: gets the id of each run that was erased.
    """
    old = RUNS.c.state.in_(FINAL) & (RUNS.c.finished_utc < before_utc)
    return _erase_all(database, _found(database, old), batch=batch, pause=pause, on_run=on_run)


def purge_deleted(database: Database, before_utc: str, *, most_s: float = 1.0, pause: Pause = time.sleep) -> int:
    """Erase the runs that were deleted before then, with their results, for `most_s` seconds; return how many."""
    end_s = time.monotonic() + most_s
    gone = RUNS.c.deleted_utc < before_utc
    found = takewhile(lambda _: time.monotonic() < end_s, _found(database, gone))
    return _erase_all(database, found, pause=pause)


def _erase_all(
    database: Database,
    runs: Iterable[Row[Any]],
    *,
    batch: int = BATCH,
    pause: Pause,
    on_run: Callable[[str], object] = lambda _: None,
) -> int:
    count, together, rows = 0, list[Row[Any]](), 0
    for run in runs:
        if together and rows + run.held + 1 > batch:
            count += _erase(database, together, pause, on_run)
            together, rows = [], 0
        if run.held > batch:
            _empty(database, run, batch, pause)
        together.append(run)
        rows += 1 + (run.held if run.held <= batch else 0)
    return count + (_erase(database, together, pause, on_run) if together else 0)


def _found(database: Database, which: ColumnElement[bool]) -> Iterator[Row[Any]]:
    """Yield the runs that are to be erased and how many rows each holds, the oldest first, outside any transaction."""
    last = 0
    held = (
        select(func.count()).where(table.c.run_id == RUNS.c.id).scalar_subquery() for table in (RESULTS, OBSERVATIONS)
    )
    columns = (RUNS.c.number, RUNS.c.id, sum(held, start=literal(0)).label("held"))
    while True:
        wanted: Select[Any] = select(*columns).where(RUNS.c.number > last, which).order_by(RUNS.c.number)
        with database.reading() as connection:
            rows = connection.execute(wanted.limit(LOOK)).all()
        yield from rows
        if len(rows) < LOOK:
            return
        last = rows[-1].number


def _empty(database: Database, run: Row[Any], batch: int, pause: Pause) -> None:
    """Erase what a large run holds, bit by bit; nobody sees the run meanwhile."""
    with database.writing() as connection:
        connection.execute(update(RUNS).where(RUNS.c.number == run.number).values(deleted_utc=ERASED_UTC))
    for table in (RESULTS, OBSERVATIONS):
        some = select(table.c.number).where(table.c.run_id == run.id).limit(batch)
        erased = batch
        while erased == batch:
            with database.writing() as connection:
                erased = connection.execute(delete(table).where(table.c.number.in_(some))).rowcount
            pause(PAUSE_S)


def _erase(database: Database, runs: Sequence[Row[Any]], pause: Pause, on_run: Callable[[str], object]) -> int:
    with database.writing() as connection:
        connection.execute(delete(RUNS).where(RUNS.c.number.in_([run.number for run in runs])))
    for run in runs:
        on_run(run.id)
    pause(PAUSE_S)
    return len(runs)
