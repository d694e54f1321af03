"""The figures that an administrator watches, by a few cheap queries."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, func, select, text

from gpuexplore.store.database import Database
from gpuexplore.store.leases import Supervisor, leased
from gpuexplore.store.sqlite_connection import size_of
from gpuexplore.store.tables import DEVICE_USE, RUNS
from gpuexplore.store.turns import QUEUED
from gpuexplore.store.upgrade import free_bytes


@dataclass(frozen=True, slots=True)
class Figures:
    """What one look at the database found.

    Attributes:
        waiting: how many runs wait, by the devices that they ask for.
        oldest_s: how long the first of these has waited.
        runs: how many there are, by state; those that were pruned are not.
        used_s: seconds that devices worked, by the devices that runs asked for.
        supervisors: those heard of within a lease.
        database_bytes: of the database.
        free_bytes: of its disk; None on a server, whose disk is its own.
    """

    waiting: dict[str, int]
    oldest_s: dict[str, float]
    runs: dict[str, int]
    used_s: dict[str, float]
    supervisors: tuple[Supervisor, ...]
    database_bytes: int
    free_bytes: int | None


def figures(database: Database) -> Figures:
    """Return what is to be watched.

    Raises:
        StoreUnavailable: the database cannot be used now.
    """
    file = Path(str(database.engine.url.database)) if database.engine.dialect.name == "sqlite" else None
    waiting = select(RUNS.c.devices, func.count().label("runs"), func.min(RUNS.c.created_utc).label("first"))
    by_state = select(RUNS.c.state, func.count().label("runs")).group_by(RUNS.c.state)
    now = datetime.fromisoformat(database.now())
    with database.reading() as connection:
        queues = connection.execute(waiting.where(QUEUED).group_by(RUNS.c.devices).order_by(RUNS.c.devices)).all()
        return Figures(
            waiting={row.devices: row.runs for row in queues},
            oldest_s={row.devices: _since_s(row.first, now) for row in queues},
            runs={row.state.value: row.runs for row in connection.execute(by_state)},
            used_s={row.devices: row.device_s for row in connection.execute(select(DEVICE_USE))},
            supervisors=leased(connection),
            database_bytes=size_of(file) if file else _server_bytes(connection),
            free_bytes=free_bytes(file) if file else None,
        )


def _since_s(created_utc: str, now: datetime) -> float:
    """Return the seconds since then, none where a clock was set back meanwhile."""
    return max(0.0, (now - datetime.fromisoformat(created_utc)).total_seconds())


def _server_bytes(connection: Connection) -> int:
    return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
