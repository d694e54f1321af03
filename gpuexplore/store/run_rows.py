"""Rows of the table of runs, whatever they ask for."""

import secrets
import string
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, text, update
from sqlalchemy import case as choose

from gpuexplore.activity import Activity
from gpuexplore.errors import NotFound
from gpuexplore.model import Experiment, RunState
from gpuexplore.naming import default_title
from gpuexplore.serialization import encode
from gpuexplore.store.database import Database
from gpuexplore.store.storable_text import storable
from gpuexplore.store.tables import EXPERIMENT, PROVISIONAL, RESULTS, RUNS

ID_LENGTH = 10  # 36**10: a link cannot be guessed
ACTIVE = (RunState.QUEUED, RunState.RUNNING)
LISTED = (RUNS.c.kind == EXPERIMENT, RUNS.c.deleted_utc.is_(None))
ALPHABET = string.ascii_lowercase + string.digits
LONGEST_WORDS = 500  # characters that a search looks through: an index of PostgreSQL holds 2,700 bytes


def new_row(database: Database, work: Experiment | Activity, owner: str) -> dict[str, Any]:
    """Return the row of a run that is queued now, with the seconds of its sampling as estimate."""
    run_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH))
    return {
        "id": run_id,
        "owner": owner,
        "experiment": encode(work),
        "devices": ",".join(sorted(work.devices)),
        "state": RunState.QUEUED,
        "created_utc": database.now(),
        **_size(work),
        **_named(work, run_id),
    }


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


def insert_run(connection: Connection, row: dict[str, Any]) -> str:
    """Insert a row; return its id."""
    connection.execute(insert(RUNS).values(**row))
    return str(row["id"])


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


def _named(work: Experiment | Activity, run_id: str) -> dict[str, Any]:
    if isinstance(work, Activity):
        return {}
    title = default_title(work)
    return {"operation": work.operation, "title": title, "words": searched(title, run_id)}


def _size(work: Experiment | Activity) -> dict[str, Any]:
    if isinstance(work, Activity):
        return {"kind": work.kind, "total": 1, "estimated_s": work.expected_s}
    cases = len(work.cases())
    return {"kind": EXPERIMENT, "total": cases, "estimated_s": cases * work.options.repeat * work.options.budget_s}
