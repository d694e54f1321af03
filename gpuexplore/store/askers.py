"""Users who share a run with its owner: who inherits it, and when each was last seen.

One of a run's askers inherits it where its owner cancels it. A run of which everyone who asked for it has gone gives
way to others.
"""

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select, update

from gpuexplore.store.database import SOON_S, Database, epoch_s, upsert
from gpuexplore.store.run_rows import LISTED
from gpuexplore.store.tables import OWNERS, RUN_ASKERS, RUNS
from gpuexplore.store.turns import order_runs_of


def askers_of(database: Database, run_id: str) -> tuple[str, ...]:
    """Return who asked for a run besides its owner, the first one first."""
    with database.reading(snapshot=False) as connection:
        return askers_in(connection, run_id)


def askers_in(connection: Connection, run_id: str) -> tuple[str, ...]:
    """Return who asked for a run besides its owner, in the transaction of `connection`."""
    wanted = select(RUN_ASKERS.c.owner).where(RUN_ASKERS.c.run_id == run_id)
    return tuple(connection.scalars(wanted.order_by(RUN_ASKERS.c.asked_utc, RUN_ASKERS.c.owner)))


def runs_asked_by(database: Database, owner: str, since_utc: str = "") -> tuple[str, ...]:
    """Return the ids of the runs that `owner` submitted or asked for since then, by when they were submitted.

    Activities, and runs that were deleted, are none of them.
    """
    own = and_(RUNS.c.owner == owner, RUNS.c.created_utc >= since_utc)
    wanted = select(RUNS.c.id).where(or_(own, was_asked_for_by(owner, since_utc)), *LISTED).order_by(RUNS.c.number)
    with database.reading(snapshot=False) as connection:
        return tuple(connection.scalars(wanted))


def was_asked_for_by(owner: str, since_utc: str = "") -> ColumnElement[bool]:
    """Return the condition on a run that `owner` asked for it, then or later, while another owned it."""
    asked = select(RUN_ASKERS.c.run_id).where(RUN_ASKERS.c.owner == owner, RUN_ASKERS.c.asked_utc >= since_utc)
    return RUNS.c.id.in_(asked)


def hand_over(connection: Connection, run_id: str, owner: str) -> bool:
    """Give a run of `owner` to the first who asked for the same; return whether there is one."""
    heir = next(iter(askers_in(connection, run_id)), None)
    if heir is None:
        return False
    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(owner=heir))
    connection.execute(delete(RUN_ASKERS).where(RUN_ASKERS.c.run_id == run_id, RUN_ASKERS.c.owner == heir))
    for each in (owner, heir):
        order_runs_of(connection, each)
    return True


def see(database: Database, owner: str) -> None:
    """Note that `owner` is here now.

    Raises:
        StoreUnavailable: the database cannot be written to now, or not soon.
    """
    with database.writing(patience_s=SOON_S) as connection:
        upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
