"""What a supervisor writes while it measures a claimed run; an attempt that was given up writes nothing."""

from dataclasses import replace

from sqlalchemy import Connection, Select, Update, func, insert, select, update
from sqlalchemy import case as choose

from gpuexplore.activity import ActivityReport
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Case, Result, RunState
from gpuexplore.serialization import encode
from gpuexplore.store.database import Database, insertion, upsert
from gpuexplore.store.environments import keep, take_out
from gpuexplore.store.queue import Claim, RunClaim
from gpuexplore.store.run_rows import note_device, settle
from gpuexplore.store.tables import DEVICE_USE, OBSERVATIONS, RESULTS, RUNS
from gpuexplore.store.turns import book, order_runs_of

FINAL = (RunState.DONE, RunState.CANCELLED, RunState.FAILED)


def set_current(database: Database, claim: RunClaim, case: Case | None) -> bool:
    """Note which case is being measured; return False when the claim no longer holds."""
    current = None if case is None else claim.index(case)
    with database.writing() as connection:
        return connection.execute(_held(claim).values(current=current)).rowcount == 1


def add_result(database: Database, claim: RunClaim, result: Result) -> bool:
    """Store what became of a case, in place of its provisional result; return False when the claim no longer holds."""
    with database.writing() as connection:
        held = connection.scalar(_locked(claim)) is not None
        if held:
            add_row(connection, claim.run_id, claim.index(result.case), result)
        return held


def add_observation(database: Database, claim: Claim, observation: ActivityReport) -> bool:
    """Store what an activity reports; return False when the claim no longer holds."""
    with database.writing() as connection:
        held = connection.scalar(_locked(claim)) is not None
        if held:
            row = {"run_id": claim.run_id, "payload": observation.payload, "versions": dict(observation.versions)}
            connection.execute(insert(OBSERVATIONS).values(**row))
        return held


def add_row(connection: Connection, run_id: str, case_index: int, result: Result) -> None:
    """Store a result in the transaction of `connection`, its environment apart.

    It replaces a provisional one under a number of its own, as one that arrives now; a final one stays.
    """
    payload, environment = take_out(encode(replace(result, provisional=False)))
    digest = None if environment is None else keep(connection, environment)
    row = {"payload": payload, "environment": digest, "provisional": result.provisional}
    add = insertion(connection, RESULTS).values(run_id=run_id, case_index=case_index, **row)
    changes = {name: add.excluded[name] for name in ("number", *row)}
    place = ("run_id", "case_index")
    connection.execute(add.on_conflict_do_update(index_elements=place, set_=changes, where=RESULTS.c.provisional))
    if result.environment:
        note_device(connection, run_id, result.environment.device.title)


def add_device_seconds(database: Database, claim: Claim, device_s: float) -> bool:
    """Book what a device has worked for this run; return False when the claim no longer holds."""
    with database.writing() as connection:
        held = connection.execute(_held(claim).values(device_s=RUNS.c.device_s + device_s)).rowcount == 1
        used = {"devices": ",".join(sorted(claim.devices)), "device_s": device_s}
        upsert(connection, DEVICE_USE, used, add=("device_s",))
        address = connection.scalar(select(RUNS.c.address).where(RUNS.c.id == claim.run_id))
        book(connection, claim.owner, device_s, address=address)  # it was used up even if the claim was lost meanwhile
        return held


def finish(database: Database, claim: Claim, state: RunState, *, reason: str | None = None) -> bool:
    """End a run as done, cancelled or failed; return False when the claim no longer holds.

    Raises:
        InvalidInput: `state` does not end a run.
    """
    if state not in FINAL:
        raise InvalidInput.of("final state", state, FINAL)
    # Who asked for the end of a run wrote down who they are.
    why = func.coalesce(RUNS.c.reason, reason) if state is RunState.CANCELLED else reason
    ended = _held(claim).values(state=state, reason=why, current=None, finished_utc=database.now())
    with database.writing(durable=True) as connection:
        held = connection.execute(ended).rowcount == 1
        settle(connection)
        order_runs_of(connection, claim.owner)  # the next of theirs is the first now
        return held


def release(database: Database, claim: Claim) -> bool:
    """Give a run back to the queue with the results it has; return False when the claim no longer holds.

    One that was to be cancelled ends instead.
    """
    state = choose((RUNS.c.cancel_requested, RunState.CANCELLED), else_=RunState.QUEUED)
    finished_utc = choose((RUNS.c.cancel_requested, database.now()))
    with database.writing() as connection:
        given_back = _held(claim).values(state=state, finished_utc=finished_utc, current=None)
        held = connection.execute(given_back).rowcount == 1
        settle(connection)
        order_runs_of(connection, claim.owner)
        return held


def _held(claim: Claim) -> Update:
    return update(RUNS).where(
        RUNS.c.id == claim.run_id, RUNS.c.attempt == claim.attempt, RUNS.c.state == RunState.RUNNING
    )


def _locked(claim: Claim) -> Select[tuple[int]]:
    """Return the query that holds the run's row until the result is in."""
    return (
        select(RUNS.c.number)
        .where(RUNS.c.id == claim.run_id, RUNS.c.attempt == claim.attempt, RUNS.c.state == RunState.RUNNING)
        .with_for_update()
    )
