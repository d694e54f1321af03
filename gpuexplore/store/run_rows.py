"""Rows of the table of runs, whatever they ask for: a new one, and one that asks for the same and has not ended."""

import secrets
import string
from typing import Any

from sqlalchemy import Connection, insert, select, update

from gpuexplore.activity import Activity
from gpuexplore.model import Experiment, RunState
from gpuexplore.serialization import encode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import EXPERIMENT, RESULTS, RUNS

ID_LENGTH = 10  # 36**10: a link cannot be guessed
ACTIVE = (RunState.QUEUED, RunState.RUNNING)
ALPHABET = string.ascii_lowercase + string.digits


def new_row(database: Database, work: Experiment | Activity, owner: str) -> dict[str, Any]:
    """Return the row of a run that is queued now, with the seconds of its sampling as estimate."""
    return {
        "id": "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH)),
        "owner": owner,
        "experiment": encode(work),
        "devices": ",".join(sorted(work.devices)),
        "state": RunState.QUEUED,
        "created_utc": database.now(),
        **_size(work),
    }


def unfinished_alike(database: Database, work: Experiment | Activity) -> str | None:
    """Return the id of the oldest run that asks for exactly `work` and waits or is being done; None without one."""
    wanted = select(RUNS.c.id, RUNS.c.experiment).where(RUNS.c.state.in_(ACTIVE), ~RUNS.c.cancel_requested)
    asked = encode(work)
    with database.reading() as connection:
        rows = connection.execute(wanted.order_by(RUNS.c.number))
        return next((row.id for row in rows if row.experiment == asked), None)


def insert_run(connection: Connection, row: dict[str, Any]) -> str:
    """Insert a row; return its id."""
    connection.execute(insert(RUNS).values(**row))
    return str(row["id"])


def settle(connection: Connection) -> None:
    """Let the provisional results of runs that have ended be final: no others will come."""
    ended = select(RUNS.c.id).where(RUNS.c.state.not_in(ACTIVE))
    kept = update(RESULTS).where(RESULTS.c.provisional, RESULTS.c.run_id.in_(ended))
    connection.execute(kept.values(provisional=False))


def _size(work: Experiment | Activity) -> dict[str, Any]:
    if isinstance(work, Activity):
        return {"kind": work.kind, "total": 1, "estimated_s": work.expected_s}
    cases = len(work.cases())
    return {"kind": EXPERIMENT, "total": cases, "estimated_s": cases * work.options.repeat * work.options.budget_s}
