"""Rows of the table of runs, whatever they ask for: found by id, named after their devices, settled at their end."""

from typing import Any

from sqlalchemy import Connection, Row, func, select, text, update
from sqlalchemy import case as choose

from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import RunState
from gpuexplore.store.tables import EXPERIMENT, PROVISIONAL, RESULTS, RUNS, storable

ACTIVE = (RunState.QUEUED, RunState.RUNNING)
LISTED = (RUNS.c.kind == EXPERIMENT, RUNS.c.deleted_utc.is_(None))
LONGEST_WORDS = 500  # characters that a search looks through: an index of PostgreSQL holds 2,700 bytes


def searched(*texts: str) -> str:
    """Return the words of a run that a search looks through."""
    return " ".join(" ".join(texts).lower().split())[:LONGEST_WORDS]


def run_row(connection: Connection, run_id: str, *, deleted: bool = False) -> Row[Any]:
    """Return the row of a run or an activity.

    Args:
        connection: to the database.
        run_id: what a link carries.
        deleted: whether one that was deleted counts.

    Raises:
        NotFound: no run has this id, or it was deleted.
    """
    row = connection.execute(select(RUNS).where(RUNS.c.id == run_id)).one_or_none()
    return existing(row, run_id, deleted=deleted)


def existing(row: Row[Any] | None, run_id: str, *, deleted: bool = False) -> Row[Any]:
    """Return `row`, which was looked for by `run_id`.

    Raises:
        NotFound: there is none, or its run was deleted.
    """
    if row is None:
        raise NotFound(f"no run {run_id[:60]!r}: check the link")
    if row.deleted_utc and not deleted:
        raise NotFound(f"run {run_id!r} was deleted by its owner")
    return row


def note_device(connection: Connection, run_id: str, name: str) -> None:
    """Note that a run was measured on the device of this name, unless that is known."""
    given = storable(name)
    names = choose((RUNS.c.device_names == "", given), else_=RUNS.c.device_names + f", {given}")
    words = func.substr(RUNS.c.words + f" {given.lower()}", 1, LONGEST_WORDS)
    unknown = ~RUNS.c.device_names.contains(given, autoescape=True)
    connection.execute(update(RUNS).where(RUNS.c.id == run_id, unknown).values(device_names=names, words=words))


def settle(connection: Connection) -> None:
    """Let the provisional results of runs that have ended be final: no others will come."""
    state = select(RUNS.c.state).where(RUNS.c.id == RESULTS.c.run_id).scalar_subquery()
    kept = update(RESULTS).where(text(PROVISIONAL), state.not_in(ACTIVE))  # as the index says it, however many ended
    connection.execute(kept.values(provisional=False))
