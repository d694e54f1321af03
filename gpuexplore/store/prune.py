"""Erases old runs for good, a little at a time.

Each transaction erases so few rows that whoever writes beside it waits for a tenth of a second at most, and between two
of them everybody else has a turn. A run that is being erased is off every list from the first of them on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, exists, func, or_, select, update

from gpuexplore.model import RunState
from gpuexplore.store.audit import Action, note
from gpuexplore.store.database import Database, seconds_since_1970
from gpuexplore.store.tables import AUDIT, DEVICE_SECONDS, OBSERVATIONS, RESULTS, RUN_TAGS, RUNS
from gpuexplore.store.turns import MINUTES

ROWS = 200  # of a transaction, to begin with
FEWEST, MOST = 10, 1000
TRANSACTION_S = 0.05  # so long one is to take: the number of rows follows
PAUSE_S = 0.1  # SQLite looks so often whether it can write
ENDED = RUNS.c.state.in_((RunState.DONE, RunState.CANCELLED, RunState.FAILED))


@dataclass(frozen=True, slots=True)
class Old:
    """Which runs go.

    Attributes:
        before_utc: those that ended before then, with neither tag nor note, and those that were deleted before then.
        marked: also those with a tag or a note.
    """

    before_utc: str
    marked: bool = False

    def condition(self) -> ColumnElement[bool]:
        """Return what holds of the runs: they have ended, whatever else."""
        tagged = exists(select(RUN_TAGS.c.tag).where(RUN_TAGS.c.number == RUNS.c.number))
        old = RUNS.c.finished_utc < self.before_utc
        if not self.marked:
            old &= (RUNS.c.note == "") & ~tagged
        return ENDED & or_(old, RUNS.c.deleted_utc < self.before_utc)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What goes, or went.

    Attributes:
        kept: runs that are as old, and stay for their tag or note.
        audit: lines of the audit log.
    """

    runs: int
    results: int
    kept: int
    audit: int = 0


def prunable(database: Database, old: Old) -> Pruned:
    """Return what `prune` would erase."""
    gone = select(RUNS.c.id).where(old.condition())
    everything = Old(old.before_utc, marked=True).condition()
    with database.reading() as connection:
        runs = _count(connection, select(func.count()).select_from(RUNS).where(old.condition()))
        results = _count(connection, select(func.count()).select_from(RESULTS).where(RESULTS.c.run_id.in_(gone)))
        every = _count(connection, select(func.count()).select_from(RUNS).where(everything))
        lines = _count(connection, select(func.count()).select_from(AUDIT).where(AUDIT.c.at_utc < old.before_utc))
    return Pruned(runs, results, every - runs, lines)


def prune(database: Database, old: Old, owner: str, pause: Callable[[float], None] = time.sleep) -> Pruned:
    """Erase them with everything in them, and what the audit log says of that time; return what went.

    Args:
        database: where they are.
        old: which.
        owner: who asks, for the audit log.
        pause: waits so many seconds, in which others write.
    """
    paced = Paced(database, pause)
    with database.reading() as connection:
        left = list(connection.scalars(select(RUNS.c.id).where(old.condition()).order_by(RUNS.c.number)))
    kept, runs, results, lines = prunable(database, old).kept, 0, 0, 0
    while left:
        ids = paced.do(partial(_hide, (old, database.now()), left))
        for table in (RESULTS, OBSERVATIONS):
            while erased := paced.do(partial(_erase_parts, table, ids)):
                results += erased if table is RESULTS else 0
        runs += paced.do(partial(_erase_runs, ids))
    paced.do(_erase_uses)
    while erased := paced.do(partial(_erase_lines, old)):
        lines += erased
    with database.writing(durable=True) as connection:
        note(connection, database.now(), (Action.PRUNED, owner, f"{runs} runs before {old.before_utc[:19]}"))
    return Pruned(runs, results, kept, lines)


class Paced:
    """Does a little in each transaction, by what the ones before took."""

    def __init__(self, database: Database, pause: Callable[[float], None]) -> None:
        self._database, self._pause, self._rows = database, pause, ROWS

    def do(self, act: Callable[[Connection, int], Any]) -> Any:
        """Return what `act` does in one transaction to so many rows; then let others write."""
        with self._database.writing() as connection:
            start_s = time.perf_counter()
            done = act(connection, self._rows)
            took_s = time.perf_counter() - start_s
        if took_s > TRANSACTION_S:
            self._rows = max(FEWEST, self._rows // 2)
        elif took_s < TRANSACTION_S / 4:
            self._rows = min(MOST, 2 * self._rows)
        self._pause(PAUSE_S)
        return done


def _hide(how: tuple[Old, str], ids: list[str], connection: Connection, rows: int) -> list[str]:
    """Take the first of the runs off `ids`, and those of them that still are old off every list; return these."""
    old, now = how
    some = ids[:rows]
    del ids[:rows]
    found = list(connection.scalars(select(RUNS.c.id).where(RUNS.c.id.in_(some), old.condition())))
    hidden = update(RUNS).where(RUNS.c.id.in_(found), RUNS.c.deleted_utc.is_(None))
    connection.execute(hidden.values(deleted_utc=now))
    return found


def _erase_parts(table: Table, run_ids: Sequence[str], connection: Connection, rows: int) -> int:
    some = select(table.c.number).where(table.c.run_id.in_(run_ids)).limit(rows)
    return connection.execute(delete(table).where(table.c.number.in_(some))).rowcount


def _erase_runs(run_ids: Sequence[str], connection: Connection, _: int) -> int:
    return connection.execute(delete(RUNS).where(RUNS.c.id.in_(run_ids))).rowcount


def _erase_uses(connection: Connection, _: int) -> None:
    """Erase the device seconds that no turn depends on any more."""
    counted = int(seconds_since_1970(connection) // 60) - MINUTES
    connection.execute(delete(DEVICE_SECONDS).where(DEVICE_SECONDS.c.minute <= counted))


def _erase_lines(old: Old, connection: Connection, rows: int) -> int:
    some = select(AUDIT.c.number).where(AUDIT.c.at_utc < old.before_utc).limit(rows)
    return connection.execute(delete(AUDIT).where(AUDIT.c.number.in_(some))).rowcount


def _count(connection: Connection, query: Select[Any]) -> int:
    return connection.scalar(query) or 0
