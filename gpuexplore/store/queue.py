"""Whose turn it is: one order, used by the claim and by the position that is shown.

Owners take turns, whoever started least recently first (never comes before ever); an owner's own
runs keep their order. The claim is one statement, so that two supervisors never take the same run:
`FOR UPDATE SKIP LOCKED` on PostgreSQL, the single writer on SQLite.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, func, or_, select, update
from sqlalchemy import case as choose

from gpuexplore.errors import CANCELLED_BY_OWNER, NotFound
from gpuexplore.model import Case, Experiment, RunState
from gpuexplore.store.database import Database
from gpuexplore.store.tables import RESULTS, RUNS, SUPERVISORS
from gpuexplore.store.tolerant_decode import experiment_of

ORPHAN_AFTER_S = 60.0  # a supervisor that is silent for so long is dead
LARGEST_ATTEMPT = 3
GAVE_UP = f"the measuring process ended {LARGEST_ATTEMPT} times while it worked on this run"


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A run that one supervisor may measure.

    Attributes:
        attempt: number that fences its writes: an older one writes nothing.
        done: indexes of the cases that an earlier attempt finished.
    """

    run_id: str
    attempt: int
    experiment: Experiment
    done: frozenset[int] = frozenset()

    @property
    def remaining(self) -> tuple[Case, ...]:
        """The cases without a result, in the experiment's order."""
        return tuple(case for index, case in enumerate(self.experiment.cases()) if index not in self.done)

    def index(self, case: Case) -> int:
        """Return where `case` stands in the experiment."""
        return self.experiment.cases().index(case)


def claim(database: Database, supervisor: str) -> RunClaim | None:
    """Take the run whose turn it is; None when nothing waits."""
    if queue_length(database) == 0:  # only reads: an empty queue is asked many times a second
        return None
    take = (
        update(RUNS)
        .where(RUNS.c.number == _next_number().scalar_subquery(), RUNS.c.state == RunState.QUEUED)
        .values(
            state=RunState.RUNNING,
            attempt=RUNS.c.attempt + 1,
            supervisor=supervisor,
            current=None,
            started_utc=database.now(),
        )
        .returning(RUNS.c.id, RUNS.c.attempt, RUNS.c.experiment)
    )
    with database.writing() as connection:
        row = connection.execute(take).one_or_none()
        if row is None:
            return None
        done = connection.scalars(select(RESULTS.c.case_index).where(RESULTS.c.run_id == row.id)).all()
    try:
        experiment = experiment_of(row.id, row.experiment)
    except NotFound as error:  # another version queued it: its owner is told, and the queue goes on
        _fail(database, row.id, str(error))
        return None
    return RunClaim(row.id, row.attempt, experiment, frozenset(done))


def _fail(database: Database, run_id: str, reason: str) -> None:
    ended = update(RUNS).where(RUNS.c.id == run_id)
    with database.writing() as connection:
        connection.execute(ended.values(state=RunState.FAILED, reason=reason, finished_utc=database.now()))


def position(database: Database, run_id: str) -> int | None:
    """Return how many claims from now a run's turn comes, 1 for next; None when it does not wait."""
    turns = _turns()
    places = select(turns.c.id, func.row_number().over(order_by=_order(turns)).label("place")).subquery()
    with database.reading() as connection:
        return connection.scalar(select(places.c.place).where(places.c.id == run_id))


def queue_length(database: Database) -> int:
    """Return how many runs wait."""
    waiting = select(func.count()).select_from(RUNS).where(RUNS.c.state == RunState.QUEUED)
    with database.reading() as connection:
        return connection.scalar(waiting) or 0


def requeue_orphans(database: Database, supervisor: str) -> int:
    """Queue again what a dead supervisor left running; return how many runs that were.

    Dead is the predecessor of `supervisor`, the caller, and whoever has not been heard of for a
    minute. A run that was to be cancelled is cancelled, and one that ended its supervisor too often
    fails. The lost start does not count as its owner's turn.
    """
    alive = select(SUPERVISORS.c.name).where(SUPERVISORS.c.beat_utc >= database.now(back_s=ORPHAN_AFTER_S))
    orphaned = or_(RUNS.c.supervisor == supervisor, RUNS.c.supervisor.not_in(alive))
    give_up = RUNS.c.attempt >= LARGEST_ATTEMPT
    ends = or_(RUNS.c.cancel_requested, give_up)
    again = (
        update(RUNS)
        .where(RUNS.c.state == RunState.RUNNING, orphaned)
        .values(
            state=choose(
                (RUNS.c.cancel_requested, RunState.CANCELLED), (give_up, RunState.FAILED), else_=RunState.QUEUED
            ),
            reason=choose((RUNS.c.cancel_requested, CANCELLED_BY_OWNER), (give_up, GAVE_UP)),
            finished_utc=choose((ends, database.now())),
            started_utc=choose((ends, RUNS.c.started_utc)),
            current=None,
        )
    )
    with database.writing() as connection:
        return connection.execute(again).rowcount


def _next_number() -> Select[Any]:
    # A lock cannot be asked of a query with window functions, hence the join.
    turns = _turns()
    return (
        select(RUNS.c.number)
        .join(turns, turns.c.number == RUNS.c.number)
        .where(RUNS.c.state == RunState.QUEUED)
        .order_by(*_order(turns))
        .limit(1)
        .with_for_update(skip_locked=True, of=RUNS)
    )


def _turns() -> Subquery:
    """Return the waiting runs with what decides their turn."""
    runs, earlier = RUNS.alias("waiting"), RUNS.alias("earlier")
    last_start = select(func.max(earlier.c.started_utc)).where(earlier.c.owner == runs.c.owner).scalar_subquery()
    turn = func.row_number().over(partition_by=runs.c.owner, order_by=runs.c.number)
    return (
        select(
            runs.c.id,
            runs.c.number,
            turn.label("turn"),
            func.coalesce(last_start, "").label("last_start"),
            func.min(runs.c.number).over(partition_by=runs.c.owner).label("owner_first"),
        )
        .where(runs.c.state == RunState.QUEUED)
        .subquery("turns")
    )


def _order(turns: Subquery) -> tuple[ColumnElement[Any], ...]:
    return (turns.c.turn, turns.c.last_start, turns.c.owner_first)
