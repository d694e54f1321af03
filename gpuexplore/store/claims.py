"""A claim: the right of one supervisor to measure one run, from when it takes the run until it gives the claim up.

Claiming is one statement, so that two supervisors never take the same run: `FOR UPDATE SKIP LOCKED` on PostgreSQL, the
single writer on SQLite. It takes the run whose turn it is (`turns`) among those whose devices are free and not
restricted (`restrictions`), makes it running, and counts its attempt up. An earlier attempt's results stay, so that
only the cases that are left are measured; what an activity had observed goes, as it begins anew.

The attempt fences what is written under the claim: the case at work, results, observations, and the end. Each write
tells whether the claim is still valid; where another supervisor took the run over (`leases`), a write does nothing.
Device seconds are booked all the same, as they were used. The claim ends by `finish`, with a final state, or by
`release`, which lets the run wait again with the results it has. Which state may follow which is in `run_states`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Update, bindparam, delete, func, insert, select, update
from sqlalchemy import case as choose
from sqlalchemy.sql.dml import ReturningUpdate

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core import Case, Experiment, NotFound, Result, RunState, check_known, encode
from gpuexplore.store.database import Database, insertion, upsert
from gpuexplore.store.run_states import FINAL, changeable, note_device, settle
from gpuexplore.store.tables import DEVICE_USE, EXPERIMENT, OBSERVATIONS, RESULTS, RUNS
from gpuexplore.store.tolerant_decode import activity_of, experiment_of, keep, take_out
from gpuexplore.store.turns import ORDER, QUEUED, Restriction, book, claimable, free_of, order_runs_of, restrictions_now

NEXT = (
    select(RUNS.c.number)
    .where(QUEUED, RUNS.c.devices.in_(bindparam("claimable", expanding=True)))
    .order_by(*ORDER)
    .limit(1)
    .with_for_update(skip_locked=True)
)


def _claim_of(first: Select[int]) -> ReturningUpdate[Any]:
    return (
        update(RUNS)
        .where(RUNS.c.number == first.scalar_subquery(), changeable("supervisor", RunState.QUEUED, RunState.RUNNING))
        .values(
            state=RunState.RUNNING,
            attempt=RUNS.c.attempt + 1,
            supervisor=bindparam("by"),
            current=None,
            started_utc=func.coalesce(RUNS.c.started_utc, bindparam("now")),
        )
        .returning(RUNS.c.id, RUNS.c.attempt, RUNS.c.owner, RUNS.c.kind, RUNS.c.experiment)
    )


CLAIM = _claim_of(NEXT)
CLAIM_RESERVED = _claim_of(NEXT.where(RUNS.c.owner == bindparam("whose")))


@dataclass(frozen=True, slots=True)
class WorkClaim:
    """A run that one supervisor may measure, or an activity that it may do.

    Attributes:
        attempt: number that fences its writes: an older one writes nothing.
        done: indexes of the cases that an earlier attempt finished.
        passed: indexes of those of which it left a provisional result.
    """

    run_id: str
    attempt: int
    owner: str
    work: Experiment | Activity
    done: frozenset[int] = frozenset()
    passed: frozenset[int] = frozenset()

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices it needs, by the names it asked for."""
        return self.work.devices

    @property
    def cases(self) -> tuple[Case, ...]:
        """The cases of the experiment; an activity has none."""
        return () if isinstance(self.work, Activity) else self.work.cases()

    @property
    def remaining(self) -> tuple[Case, ...]:
        """The cases without a final result, in the experiment's order."""
        return tuple(case for index, case in enumerate(self.cases) if index not in self.done)

    def index(self, case: Case) -> int:
        """Return the index of `case` in the experiment."""
        return self.cases.index(case)


class Claims(Database):
    """Claims of runs, and what is written under them."""

    def claim(self, supervisor: str, device_ids: Collection[str]) -> WorkClaim | None:
        """Take the run whose turn it is on these devices; None when none waits for them.

        Args:
            supervisor: who will measure it.
            device_ids: what it has.
        """
        now = self.now()
        with self.reading() as connection:  # an empty queue is asked many times a second
            devices = claimable(connection, device_ids)
            if not devices:
                return None
            offers = _offers(connection, device_ids, restrictions_now(connection, now)) or [
                (CLAIM, {"claimable": devices})
            ]
        with self.writing() as connection:
            by = {"by": supervisor, "now": now}
            rows = (connection.execute(offer, by | asked).one_or_none() for offer, asked in offers)
            row = next(filter(None, rows), None)
            if row is None:
                return None
            done: Sequence[int] = ()
            passed: Sequence[int] = ()
            if row.attempt > 1:
                known = select(RESULTS.c.case_index).where(RESULTS.c.run_id == row.id)
                done = connection.scalars(known.where(~RESULTS.c.provisional)).all()
                passed = connection.scalars(known.where(RESULTS.c.provisional)).all()
                connection.execute(delete(OBSERVATIONS).where(OBSERVATIONS.c.run_id == row.id))  # it begins anew
        try:
            if row.kind != EXPERIMENT:
                return WorkClaim(row.id, row.attempt, row.owner, activity_of(row.id, row.experiment))
            experiment = experiment_of(row.id, row.experiment)
        except NotFound as error:  # another version queued it: it fails with that reason, and the queue goes on
            ended = update(RUNS).where(RUNS.c.id == row.id, changeable("supervisor", RunState.RUNNING, RunState.FAILED))
            with self.writing() as connection:
                values = {"state": RunState.FAILED, "reason": str(error), "finished_utc": self.now()}
                connection.execute(ended.values(**values))
                settle(connection)
            return None
        return WorkClaim(row.id, row.attempt, row.owner, experiment, frozenset(done), frozenset(passed))

    def set_current(self, claim: WorkClaim, case: Case | None) -> bool:
        """Note which case is being measured; return False when the claim is no longer valid."""
        current = None if case is None else claim.index(case)
        with self.writing() as connection:
            return connection.execute(_changed(claim).values(current=current)).rowcount == 1

    def add_result(self, claim: WorkClaim, result: Result) -> bool:
        """Store the result of a case in place of its provisional one; return False when the claim is not valid."""
        with self.writing() as connection:
            valid = connection.scalar(_locked(claim)) is not None
            if valid:
                add_row(connection, claim.run_id, claim.index(result.case), result)
            return valid

    def add_observation(self, claim: WorkClaim, observation: ActivityReport) -> bool:
        """Store what an activity reports; return False when the claim is no longer valid."""
        with self.writing() as connection:
            valid = connection.scalar(_locked(claim)) is not None
            if valid:
                row = {"run_id": claim.run_id, "payload": observation.payload, "versions": dict(observation.versions)}
                connection.execute(insert(OBSERVATIONS).values(**row))
            return valid

    def add_device_seconds(self, claim: WorkClaim, device_s: float) -> bool:
        """Book what a device has worked for this run; return False when the claim is no longer valid."""
        with self.writing() as connection:
            valid = connection.execute(_changed(claim).values(device_s=RUNS.c.device_s + device_s)).rowcount == 1
            used = {"devices": ",".join(sorted(claim.devices)), "device_s": device_s}
            upsert(connection, DEVICE_USE, used, add=("device_s",))
            address = connection.scalar(select(RUNS.c.address).where(RUNS.c.id == claim.run_id))
            book(
                connection, claim.owner, device_s, address=address
            )  # it was used up even if the claim was lost meanwhile
            return valid

    def finish(self, claim: WorkClaim, state: RunState, *, reason: str | None = None) -> bool:
        """End a run as done, cancelled or failed; return False when the claim is no longer valid.

        Raises:
            InvalidInput: `state` does not end a run.
        """
        check_known("final state", state, FINAL)
        # Who asked for the end of a run wrote down who they are.
        why = func.coalesce(RUNS.c.reason, reason) if state is RunState.CANCELLED else reason
        ended = _changed(claim, state).values(state=state, reason=why, current=None, finished_utc=self.now())
        with self.writing(durable=True) as connection:
            valid = connection.execute(ended).rowcount == 1
            settle(connection)
            order_runs_of(connection, claim.owner)  # the next of theirs is the first now
            return valid

    def release(self, claim: WorkClaim) -> bool:
        """Give a run back to the queue with the results it has; return False when the claim is no longer valid.

        One that was to be cancelled ends instead.
        """
        state = choose((RUNS.c.cancel_requested, RunState.CANCELLED), else_=RunState.QUEUED)
        finished_utc = choose((RUNS.c.cancel_requested, self.now()))
        with self.writing() as connection:
            given_back = _changed(claim, RunState.QUEUED, RunState.CANCELLED).values(
                state=state, finished_utc=finished_utc, current=None
            )
            valid = connection.execute(given_back).rowcount == 1
            settle(connection)
            order_runs_of(connection, claim.owner)
            return valid


def _offers(
    connection: Connection, device_ids: Collection[str], restrictions: Sequence[Restriction]
) -> list[tuple[ReturningUpdate[Any], dict[str, Any]]]:
    """Return the claims to try one after the other where devices are restricted; none where no device is.

    Runs of owners that a device is reserved for come first.
    """
    owners = sorted({each.owner for each in restrictions if each.owner is not None})
    theirs = [(CLAIM_RESERVED, owner, {"whose": owner}) for owner in owners]
    of_all: list[tuple[ReturningUpdate[Any], str | None, dict[str, str]]] = [(CLAIM, None, {})] if restrictions else []
    found = (
        (offer, whose, claimable(connection, free_of(device_ids, restrictions, owner)))
        for offer, owner, whose in [*theirs, *of_all]
    )
    return [(offer, {**whose, "claimable": devices}) for offer, whose, devices in found]


def add_row(connection: Connection, run_id: str, case_index: int, result: Result) -> None:
    """Store a result in the transaction of `connection`, its environment apart.

    It replaces a provisional one under a number of its own, as one that arrives now; a final one stays.
    """
    payload, environment = take_out(encode(replace(result, provisional=False)))
    digest = None if environment is None else keep(connection, environment)
    row = {"payload": payload, "environment": digest, "provisional": result.provisional}
    add = insertion(connection, RESULTS).values(run_id=run_id, case_index=case_index, **row)
    changes = {name: add.excluded[name] for name in ("number", *row)}
    key = ("run_id", "case_index")
    connection.execute(add.on_conflict_do_update(index_elements=key, set_=changes, where=RESULTS.c.provisional))
    if result.environment:
        note_device(connection, run_id, result.environment.device.title)


def _changed(claim: WorkClaim, *into: RunState) -> Update:
    """Return the update of the run while the claim is valid, which may change it into each of these states."""
    return update(RUNS).where(*_is_valid(claim, *into))


def _locked(claim: WorkClaim) -> Select[tuple[int]]:
    """Return the query that locks the run's row until the result is in."""
    return select(RUNS.c.number).where(*_is_valid(claim)).with_for_update()


def _is_valid(claim: WorkClaim, *into: RunState) -> tuple[ColumnElement[bool], ...]:
    running = changeable("supervisor", RunState.RUNNING, *into)
    return RUNS.c.id == claim.run_id, RUNS.c.attempt == claim.attempt, running
