"""A new row of the table of runs, whatever is asked for."""

import secrets
import string
from typing import Any

from sqlalchemy import Connection, insert

from gpuexplore.activity import Activity
from gpuexplore.model import Experiment, RunState
from gpuexplore.serialization import encode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import EXPERIMENT, RUNS

ID_LENGTH = 10  # 36**10: a link cannot be guessed
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


def insert_run(connection: Connection, row: dict[str, Any]) -> str:
    """Insert a row; return its id."""
    connection.execute(insert(RUNS).values(**row))
    return str(row["id"])


def _size(work: Experiment | Activity) -> dict[str, Any]:
    if isinstance(work, Activity):
        return {"kind": work.kind, "total": 1, "estimated_s": work.expected_s}
    cases = len(work.cases())
    return {"kind": EXPERIMENT, "total": cases, "estimated_s": cases * work.options.budget_s}
