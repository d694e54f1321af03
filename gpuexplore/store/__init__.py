"""Runs, results, own peaks and heartbeats as they are kept: SQLite by default, PostgreSQL by URL.

`Store` is the only interface; each of its bases is the part of it in one module. A run enters by `submission.py`; its
supervisor takes it and writes what comes of it by `claims.py`, in the order of `turns.py`, on devices that no
administrator restricts (`turns.py`); `positions.py` says when it starts. `runs.py` and `listing.py` are what
pages read, `run_states.py` says who may change a run's state and who shares it, `leases.py` what becomes of the runs
of a supervisor that died. `tables.py` has the tables, `migrations/` their history, `upgrade.py` runs it; `prune.py` and
`backup.py` are for those who keep a server.

It imports values, rooms and operations, and nothing that computes or draws. A column is a migration, its line in
`tables.py` and a test that an older database still opens; saved runs stay readable.
"""

import os
import sqlite3
from collections.abc import Callable
from datetime import datetime
from typing import Self

from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from gpuexplore.core.errors import InvalidInput
from gpuexplore.store.claims import Claims, WorkClaim
from gpuexplore.store.database import (
    ACCOUNT_PREFIX,
    URL_VARIABLE,
    Database,
    connect,
    database_url,
    size_of,
    unavailable,
    utc_now,
)
from gpuexplore.store.entries import Answer, Entries
from gpuexplore.store.leases import Leases, Supervisor, SupervisorState, leased, names_of
from gpuexplore.store.listing import MOST_LISTED, Description, ListedRun, RunLists, Wanted
from gpuexplore.store.positions import Positions, WaitingRun
from gpuexplore.store.room_tasks import AskedRun, RoomTasks
from gpuexplore.store.run_states import RunStates
from gpuexplore.store.runs import StoredRuns
from gpuexplore.store.submission import Submissions
from gpuexplore.store.turns import QUEUED, Restriction, RestrictionKind, Turns
from gpuexplore.store.upgrade import Plan, free_bytes, plan_upgrade, upgrade

__all__ = [
    "ACCOUNT_PREFIX",
    "MOST_LISTED",
    "QUEUED",
    "Answer",
    "AskedRun",
    "Database",
    "Description",
    "ListedRun",
    "Plan",
    "Restriction",
    "RestrictionKind",
    "Store",
    "Supervisor",
    "SupervisorState",
    "WaitingRun",
    "Wanted",
    "WorkClaim",
    "database_url",
    "free_bytes",
    "leased",
    "names_of",
    "open_store",
    "plan_upgrade",
    "size_of",
]


class Store(
    Submissions,
    StoredRuns,
    RunLists,
    RunStates,
    Entries,
    RoomTasks,
    Positions,
    Leases,
    Turns,
    Claims,
):
    """Everything that can be asked of the database; safe to use from several threads."""

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(url: str | None = None, *, clock: Callable[[], datetime] = utc_now) -> Store:
    """Return the store at `url`, its schema up to date.

    Args:
        url: SQLAlchemy's form, e.g. `sqlite:////data/gpuexplore.sqlite3`; without one the environment's
            GPUEXPLORE_DATABASE_URL counts, then the file in the data directory.
        clock: what dates the runs.

    Raises:
        InvalidInput: `url` names no database.
        StoreUnavailable: it cannot be used now; says why.
    """
    try:
        engine = connect(database_url(url))
    except (ArgumentError, NoSuchModuleError, ImportError, OSError) as error:
        raise _unusable(url, error) from error
    try:
        upgrade(engine)
    except BaseException as error:
        engine.dispose()
        if isinstance(error, DBAPIError | sqlite3.Error):
            raise unavailable(error) from error
        if isinstance(error, OSError):
            raise _unusable(url, error) from error
        raise
    return Store(engine, clock)


def _unusable(url: str | None, error: Exception) -> InvalidInput:
    accepted = f"one that can be opened and written ({str(error).splitlines()[0]}); see GPUEXPLORE_HOME"
    is_chosen = url or os.environ.get(URL_VARIABLE)  # its text may have a password in it, so no message shows it
    return InvalidInput.of("database", URL_VARIABLE if is_chosen else "file", accepted)
