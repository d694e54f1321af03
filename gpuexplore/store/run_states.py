"""The states of a run, who may change each into which, and how a run is cancelled.

=========  ============  ================================  ======  =============  ======
state      submitter     supervisor                        worker  user's cancel  prune
=========  ============  ================================  ======  =============  ======
none       queued, done  -                                 -       -              -
queued     -             running, cancelled                -       cancelled      -
running    -             queued, done, cancelled, failed   -       -              -
done       -             -                                 -       -              none
cancelled  -             -                                 -       -              none
failed     -             -                                 -       -              none
=========  ============  ================================  ======  =============  ======

A submitter queues a run (`submission`), or records one that was measured elsewhere, which is done. A
supervisor claims the run whose turn it is, ends it or gives it back (`claims`), queues again what a dead one left
running, or ends it where it was to be cancelled or killed supervisors too often (`leases`), and cancels what waits for
owners who have gone. A worker changes nothing: what it reports, its supervisor writes, results and end. A user's cancel
ends a run that waits; of a run that is measured it only says that its supervisor is to end it. What has ended stays as
it ended, until `prune` erases it.

`CHANGES` is the same table for the code: the updates of states are made with `changeable`, which refuses what it lacks.
"""

from collections.abc import Mapping
from typing import Literal

from sqlalchemy import ColumnElement, select, update
from sqlalchemy import case as choose

from gpuexplore.core.errors import CANCELLED_BY_ADMIN, CANCELLED_BY_OWNER, InvalidInput
from gpuexplore.core.model import RunState
from gpuexplore.core.units import format_seconds
from gpuexplore.store.askers import hand_over
from gpuexplore.store.audit import Action, note
from gpuexplore.store.database import Database, epoch_s
from gpuexplore.store.run_rows import ACTIVE, run_row, settle
from gpuexplore.store.tables import OWNERS, RUN_ASKERS, RUNS

Who = Literal["submitter", "supervisor", "worker", "user's cancel", "prune"]
# Into which states each may change a run, by the state that it is in; None: there is no run.
CHANGES: Mapping[tuple[Who, RunState | None], frozenset[RunState | None]] = {
    ("submitter", None): frozenset({RunState.QUEUED, RunState.DONE}),
    ("supervisor", RunState.QUEUED): frozenset({RunState.RUNNING, RunState.CANCELLED}),
    ("supervisor", RunState.RUNNING): frozenset({RunState.QUEUED, RunState.DONE, RunState.CANCELLED, RunState.FAILED}),
    ("user's cancel", RunState.QUEUED): frozenset({RunState.CANCELLED}),
    ("prune", RunState.DONE): frozenset({None}),
    ("prune", RunState.CANCELLED): frozenset({None}),
    ("prune", RunState.FAILED): frozenset({None}),
}
FINAL = tuple(state for who, state in CHANGES if who == "prune" and state is not None)
ABANDONED_AFTER_S = 600.0
ABANDONED = (
    f"it was still queued and its owner was away for {format_seconds(ABANDONED_AFTER_S)}: press Run to queue it again"
)


def changeable(who: Who, state: RunState, *into: RunState) -> ColumnElement[bool]:
    """Return the condition that a run is in `state`, out of which `who` may change it into each of the others."""
    assert CHANGES[who, state].issuperset(into), f"{who}: {state} into {into}"
    return RUNS.c.state == state


def request_cancel(
    database: Database, run_id: str, owner: str, *, admin: bool = False, address: str | None = None
) -> bool:
    """Stop a run: at once while it waits, between two rounds while it is measured; a finished one stays as it is.

    One that others asked for as well goes on when its owner cancels it, and is theirs from then on.

    Args:
        database: where it is.
        run_id: of the run.
        owner: who asks.
        admin: whether who asks may stop those of all.
        address: where they ask from.

    Returns:
        Whether it does not go on for others.

    Raises:
        NotFound: no run has this id.
        InvalidInput: the run is another user's.
    """
    waits = changeable("user's cancel", RunState.QUEUED, RunState.CANCELLED)
    stop = update(RUNS).where(RUNS.c.id == run_id, RUNS.c.state.in_(ACTIVE))
    with database.writing(durable=True) as connection:
        run = run_row(connection, run_id)
        if run.owner != owner and not admin:
            raise InvalidInput(f"run {run_id} belongs to another user: only its owner can cancel it")
        if run.owner == owner and run.state in ACTIVE and hand_over(connection, run_id, owner):
            return False
        stopped = connection.execute(
            stop.values(
                cancel_requested=True,
                state=choose((waits, RunState.CANCELLED), else_=RUNS.c.state),
                reason=CANCELLED_BY_OWNER if run.owner == owner else CANCELLED_BY_ADMIN,
                finished_utc=choose((waits, database.now()), else_=RUNS.c.finished_utc),
            )
        )
        if stopped.rowcount:
            note(connection, database.now(), (Action.CANCELLED, owner, run_id), address)
        settle(connection)
        return True


def cancel_requested(database: Database, run_id: str) -> bool:
    """Return whether the owner asked to stop this run."""
    with database.reading() as connection:
        return bool(connection.scalar(select(RUNS.c.cancel_requested).where(RUNS.c.id == run_id)))


def drop_abandoned(database: Database) -> int:
    """Cancel the waiting runs whose owner and askers were all unseen for ten minutes; return how many."""
    seen = select(OWNERS.c.owner).where(epoch_s() - OWNERS.c.seen_epoch_s < ABANDONED_AFTER_S)
    known = select(OWNERS.c.owner)
    asked = select(RUN_ASKERS.c.run_id).where(RUN_ASKERS.c.owner.in_(seen))
    waits = changeable("supervisor", RunState.QUEUED, RunState.CANCELLED)
    drop = update(RUNS).where(waits, RUNS.c.owner.not_in(seen), RUNS.c.owner.in_(known), RUNS.c.id.not_in(asked))
    with database.writing() as connection:
        dropped = drop.values(state=RunState.CANCELLED, reason=ABANDONED, finished_utc=database.now())
        count = connection.execute(dropped).rowcount
        settle(connection)
        return count
