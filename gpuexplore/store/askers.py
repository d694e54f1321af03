"""Who asks for what: the same request is measured once for all who ask for it while it waits or goes on.

Whoever submitted a run owns it; the others are its askers. One of them inherits it where its owner cancels it. It is
noted when each was last seen: a run that waits for somebody who has gone gives its place to others.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, delete, or_, select, text, update

from gpuexplore.activity import Activity
from gpuexplore.core.model import Experiment
from gpuexplore.operations.implementation import OF_USERS
from gpuexplore.store.audit import Action, note
from gpuexplore.store.database import SOON_S, Database, epoch_s, insertion, upsert
from gpuexplore.store.run_rows import ACTIVE, LISTED, check, insert_run, limits, new_row
from gpuexplore.store.tables import OWNERS, RUN_ASKERS, RUNS
from gpuexplore.store.turns import head_start_s, next_turn_s, order_runs_of

ADVISORY_LOCK = 0x6770_6173  # "gpas": any number that nobody else locks in this database


def ask(
    database: Database,
    work: Experiment | Activity,
    owner: str,
    *,
    estimated_s: float | None = None,
    address: str | None = None,
) -> str:
    """Return the id of the run that does `work`: what somebody else asked for and has not ended, else a new one.

    What names a function or a file of a user is theirs alone. For the arguments see `submit_all`.

    Raises:
        InvalidInput: a limit is reached; nothing was queued.
    """
    row = new_row(database, work, owner) | {"address": address}
    if estimated_s is not None:
        row["estimated_s"] = estimated_s
    with database.writing(durable=True) as connection:
        _one_at_a_time(connection)
        upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
        same = None if _is_private(work) else _of_another(connection, row)
        run_id = str(row["id"] if same is None else same.id)
        note(connection, row["created_utc"], (Action.SUBMITTED, owner, run_id), address)
        if same is not None:
            return _note_asker(connection, same, owner, asked_utc=row["created_utc"])
        check(connection, row, limits())
        insert_run(connection, row)
        order_runs_of(connection, owner)
    return run_id


def askers_of(database: Database, run_id: str) -> tuple[str, ...]:
    """Return who asked for a run beside its owner, the first one first."""
    with database.reading(snapshot=False) as connection:
        return askers_in(connection, run_id)


def askers_in(connection: Connection, run_id: str) -> tuple[str, ...]:
    """Return who asked for a run beside its owner, in the transaction of `connection`."""
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
    """Give a run of `owner` to the first who asked for the same; return whether anybody did."""
    heir = next(iter(askers_in(connection, run_id)), None)
    if heir is None:
        return False
    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(owner=heir))
    connection.execute(delete(RUN_ASKERS).where(RUN_ASKERS.c.run_id == run_id, RUN_ASKERS.c.owner == heir))
    for each in (owner, heir):
        order_runs_of(connection, each)
    return True


def _one_at_a_time(connection: Connection) -> None:
    """Let thirty who ask at once ask one after the other; on SQLite whoever writes is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": ADVISORY_LOCK})


def _is_private(work: Experiment | Activity) -> bool:
    return isinstance(work, Experiment) and any(OF_USERS in name for name in work.implementations)


def _of_another(connection: Connection, row: dict[str, object]) -> Row[Any] | None:
    """Return the oldest run of another owner that asks for exactly the same and waits or is being measured."""
    same = (RUNS.c[name] == row[name] for name in ("kind", "devices", "total"))
    wanted: Select[Any] = select(RUNS.c.id, RUNS.c.owner, RUNS.c.experiment).where(
        RUNS.c.state.in_(ACTIVE), RUNS.c.owner != row["owner"], ~RUNS.c.cancel_requested, *same
    )
    found = connection.execute(wanted.order_by(RUNS.c.number))
    return next((each for each in found if each.experiment == row["experiment"]), None)


def _note_asker(connection: Connection, run: Row[Any], owner: str, *, asked_utc: str) -> str:
    turn_s = next_turn_s(connection, owner) - head_start_s(connection, owner)
    asker = {"run_id": run.id, "owner": owner, "asked_utc": asked_utc, "turn_s": turn_s}
    connection.execute(insertion(connection, RUN_ASKERS).values(**asker).on_conflict_do_nothing())
    order_runs_of(connection, run.owner)
    return str(run.id)


def see(database: Database, owner: str) -> None:
    """Note that `owner` is here now.

    Raises:
        StoreUnavailable: the database cannot be written to now, or not soon.
    """
    with database.writing(patience_s=SOON_S) as connection:
        upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
