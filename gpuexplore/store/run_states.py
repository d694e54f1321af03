"""Rows of runs: found by id, shared with those who ask for the same, cancelled; and who may change which state.

`CHANGES` is the table of states: each update of one is made with `changeable`, which refuses what the table lacks. A
submitter queues a run (`submission`), or records one that was measured elsewhere, which is done. A supervisor claims
the run whose turn it is, ends it or gives it back (`claims`), queues again what a dead one left running, or ends it
where it was to be cancelled or killed supervisors too often (`leases`), and cancels what waits for owners who have
gone. A worker changes nothing: what it reports, its supervisor writes, results and end. A user's cancel ends a run
that waits; of a run that is measured it only says that its supervisor is to end it. What has ended stays as it ended,
until `prune` erases it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, text, update
from sqlalchemy import case as choose

from gpuexplore.core import CANCELLED_BY_ADMIN, CANCELLED_BY_OWNER, InvalidInput, NotFound, RunState, format_seconds
from gpuexplore.store.database import SOON_S, Action, Database, epoch_s, note, upsert
from gpuexplore.store.tables import EXPERIMENT, OWNERS, PROVISIONAL, RESULTS, RUN_ASKERS, RUNS, storable
from gpuexplore.store.turns import order_runs_of

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


class RunStates(Database):
    """Changes of the states of runs, and who asked for them."""

    def askers_of(self, run_id: str) -> tuple[str, ...]:
        """Return who asked for a run besides its owner, the first one first."""
        with self.reading(snapshot=False) as connection:
            return askers_in(connection, run_id)

    def see(self, owner: str) -> None:
        """Note that `owner` is here now.

        Raises:
            StoreUnavailable: the database cannot be written to now, or not soon.
        """
        with self.writing(patience_s=SOON_S) as connection:
            upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})

    def request_cancel(self, run_id: str, owner: str, *, admin: bool = False, address: str | None = None) -> bool:
        """Stop a run: at once while it waits, between two rounds while it is measured; a finished one stays as it is.

        One that others asked for as well goes on when its owner cancels it, and is theirs from then on.

        Args:
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
        with self.writing(durable=True) as connection:
            run = run_row(connection, run_id)
            if run.owner != owner and not admin:
                raise InvalidInput(f"run {run_id} belongs to another user: only its owner can cancel it")
            if run.owner == owner and run.state in ACTIVE and _hand_over(connection, run_id, owner):
                return False
            stopped = connection.execute(
                stop.values(
                    cancel_requested=True,
                    state=choose((waits, RunState.CANCELLED), else_=RUNS.c.state),
                    reason=CANCELLED_BY_OWNER if run.owner == owner else CANCELLED_BY_ADMIN,
                    finished_utc=choose((waits, self.now()), else_=RUNS.c.finished_utc),
                )
            )
            if stopped.rowcount:
                note(connection, self.now(), (Action.CANCELLED, owner, run_id), address)
            settle(connection)
            return True

    def cancel_requested(self, run_id: str) -> bool:
        """Return whether the owner asked to stop this run."""
        with self.reading() as connection:
            return bool(connection.scalar(select(RUNS.c.cancel_requested).where(RUNS.c.id == run_id)))

    def drop_abandoned(self) -> int:
        """Cancel the waiting runs whose owner and askers were all unseen for ten minutes; return how many."""
        seen = select(OWNERS.c.owner).where(epoch_s() - OWNERS.c.seen_epoch_s < ABANDONED_AFTER_S)
        known = select(OWNERS.c.owner)
        asked = select(RUN_ASKERS.c.run_id).where(RUN_ASKERS.c.owner.in_(seen))
        waits = changeable("supervisor", RunState.QUEUED, RunState.CANCELLED)
        drop = update(RUNS).where(waits, RUNS.c.owner.not_in(seen), RUNS.c.owner.in_(known), RUNS.c.id.not_in(asked))
        with self.writing() as connection:
            away = f"it was still queued and its owner was away for {format_seconds(ABANDONED_AFTER_S)}"
            reason = f"{away}: press Run to queue it again"
            dropped = drop.values(state=RunState.CANCELLED, reason=reason, finished_utc=self.now())
            count = connection.execute(dropped).rowcount
            settle(connection)
            return count


def askers_in(connection: Connection, run_id: str) -> tuple[str, ...]:
    """Return who asked for a run besides its owner, in the transaction of `connection`."""
    wanted = select(RUN_ASKERS.c.owner).where(RUN_ASKERS.c.run_id == run_id)
    return tuple(connection.scalars(wanted.order_by(RUN_ASKERS.c.asked_utc, RUN_ASKERS.c.owner)))


def was_asked_for_by(owner: str) -> ColumnElement[bool]:
    """Return the condition on a run that `owner` asked for it, then or later, while another owned it."""
    return RUNS.c.id.in_(select(RUN_ASKERS.c.run_id).where(RUN_ASKERS.c.owner == owner))


def _hand_over(connection: Connection, run_id: str, owner: str) -> bool:
    """Give a run of `owner` to the first who asked for the same; return whether there is one."""
    heir = next(iter(askers_in(connection, run_id)), None)
    if heir is None:
        return False
    connection.execute(update(RUNS).where(RUNS.c.id == run_id).values(owner=heir))
    connection.execute(delete(RUN_ASKERS).where(RUN_ASKERS.c.run_id == run_id, RUN_ASKERS.c.owner == heir))
    for each in (owner, heir):
        order_runs_of(connection, each)
    return True


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


def changeable(who: Who, state: RunState, *into: RunState) -> ColumnElement[bool]:
    """Return the condition that a run is in `state`, out of which `who` may change it into each of the others."""
    assert CHANGES[who, state].issuperset(into), f"{who}: {state} into {into}"
    return RUNS.c.state == state
