"""What a supervisor writes while it measures a claimed run; an attempt that was given up writes nothing."""

from sqlalchemy import Select, Update, insert, select, update

from gpuexplore.errors import InvalidInput
from gpuexplore.model import Case, Result, RunState
from gpuexplore.serialization import encode
from gpuexplore.store.database import Database
from gpuexplore.store.queue import RunClaim
from gpuexplore.store.tables import RESULTS, RUNS

FINAL = (RunState.DONE, RunState.CANCELLED, RunState.FAILED)


def set_current(database: Database, claim: RunClaim, case: Case | None) -> bool:
    """Note which case is being measured; return False when the claim no longer holds."""
    return _write(database, _held(claim).values(current=None if case is None else claim.index(case)))


def add_result(database: Database, claim: RunClaim, result: Result) -> bool:
    """Store what became of one case; return False when the claim no longer holds."""
    row = {"run_id": claim.run_id, "case_index": claim.index(result.case), "payload": encode(result)}
    with database.writing() as connection:
        held = connection.scalar(_locked(claim)) is not None
        if held:
            connection.execute(insert(RESULTS).values(**row))
        return held


def finish(database: Database, claim: RunClaim, state: RunState, *, reason: str | None = None) -> bool:
    """End a run as done, cancelled or failed; return False when the claim no longer holds.

    Raises:
        InvalidInput: `state` does not end a run.
    """
    if state not in FINAL:
        raise InvalidInput.of("final state", state, FINAL)
    ended = _held(claim).values(state=state, reason=reason, current=None, finished_utc=database.now())
    return _write(database, ended)


def release(database: Database, claim: RunClaim) -> bool:
    """Give a run back to the queue with the results it has; return False when the claim no longer holds.

    The start that came to nothing does not count as its owner's turn.
    """
    return _write(database, _held(claim).values(state=RunState.QUEUED, current=None, started_utc=None))


def _held(claim: RunClaim) -> Update:
    return update(RUNS).where(
        RUNS.c.id == claim.run_id, RUNS.c.attempt == claim.attempt, RUNS.c.state == RunState.RUNNING
    )


def _locked(claim: RunClaim) -> Select[tuple[int]]:
    """Return the query that holds the run's row until the result is in."""
    return (
        select(RUNS.c.number)
        .where(RUNS.c.id == claim.run_id, RUNS.c.attempt == claim.attempt, RUNS.c.state == RunState.RUNNING)
        .with_for_update()
    )


def _write(database: Database, statement: Update) -> bool:
    with database.writing() as connection:
        return connection.execute(statement).rowcount == 1
