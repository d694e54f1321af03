"""Runs as their owners see them: submit, look, cancel."""

import secrets
import string
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, func, insert, or_, select, update
from sqlalchemy import case as choose

from gpuexplore.devices.identity import same_device
from gpuexplore.errors import CANCELLED_BY_OWNER, InvalidInput, NotFound
from gpuexplore.model import Device, Experiment, Progress, Result, Run, RunState, Status
from gpuexplore.serialization import encode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import RESULTS, RUNS
from gpuexplore.store.tolerant_decode import decodable, experiment_of, result_of, warn

ID_LENGTH = 10  # 36**10: a link cannot be guessed
ALPHABET = string.ascii_lowercase + string.digits
ACTIVE = (RunState.QUEUED, RunState.RUNNING)


def submit(database: Database, experiment: Experiment, owner: str) -> str:
    """Queue `experiment` for `owner`; return the run's id."""
    with database.writing() as connection:
        return _insert_run(connection, _new_run(database, experiment, owner))


def record(database: Database, experiment: Experiment, owner: str, *, results: Sequence[Result]) -> str:
    """Store a run that was measured elsewhere, as the command line does; return its id.

    Raises:
        InvalidInput: a result is of no case of `experiment`, or two are of the same.
    """
    indexes = {case: index for index, case in enumerate(experiment.cases())}
    cases = [result.case for result in results]
    if len(set(cases)) != len(cases) or not indexes.keys() >= set(cases):
        raise InvalidInput("results and experiment differ: each result must be of a case of its own")
    now = database.now()
    row = _new_run(database, experiment, owner) | {"state": RunState.DONE, "started_utc": now, "finished_utc": now}
    with database.writing() as connection:
        run_id = _insert_run(connection, row)
        rows = [{"run_id": run_id, "case_index": indexes[result.case], "payload": encode(result)} for result in results]
        if rows:
            connection.execute(insert(RESULTS), rows)
    return run_id


def load(database: Database, run_id: str) -> Run:
    """Return a run with its results, in the order of its cases.

    Raises:
        NotFound: no run has this id.
    """
    wanted = select(RESULTS.c.payload).where(RESULTS.c.run_id == run_id).order_by(RESULTS.c.case_index)
    with database.reading() as connection:
        run = _one_run(connection, run_id)
        payloads = connection.scalars(wanted).all()
    return _to_run(run, tuple(result_of(run_id, payload) for payload in payloads))


def load_summary(database: Database, run_id: str) -> Run:
    """Return a run without its results: what a page asks for every second.

    Raises:
        NotFound: no run has this id.
    """
    with database.reading() as connection:
        return _to_run(_one_run(connection, run_id))


def results_after(database: Database, run_id: str, count: int) -> tuple[Result, ...]:
    """Return the results that arrived after the first `count`, in the order of arrival."""
    wanted = select(RESULTS.c.payload).where(RESULTS.c.run_id == run_id).order_by(RESULTS.c.number)
    with database.reading() as connection:
        return tuple(result_of(run_id, scalar) for scalar in connection.scalars(wanted.offset(count)))


def history(
    database: Database, owner: str | None = None, *, states: Sequence[RunState] = (), limit: int = 50, skip: int = 0
) -> tuple[Run, ...]:
    """Return runs without their results, newest first: of `owner` or of all, in `states` or in any."""
    wanted = _runs_with_counts().order_by(RUNS.c.number.desc()).limit(limit).offset(skip)
    if owner is not None:
        wanted = wanted.where(RUNS.c.owner == owner)
    if states:
        wanted = wanted.where(RUNS.c.state.in_(states))
    with database.reading() as connection:
        return tuple(_decodable_runs(connection.execute(wanted)))


def measured_results(
    database: Database, device: Device, *, owner: str | None = None, runs: int = 40, limit: int = 400
) -> tuple[tuple[str, Result], ...]:
    """Return results with a measurement on `device`, each with its run's id, newest first.

    Which devices count as this one is decided by `gpuexplore.devices.identity`.

    Args:
        owner: whose runs; None is everybody's.
        runs: only the newest so many are looked at, whatever they measured.
        limit: of results.
    """
    newest = select(RUNS.c.id).order_by(RUNS.c.number.desc()).limit(runs)
    if owner is not None:
        newest = newest.where(RUNS.c.owner == owner)
    named = RESULTS.c.payload[("environment", "device", "name")].as_string() == device.name
    if device.spec_key is not None:
        named = or_(named, RESULTS.c.payload[("environment", "device", "spec_key")].as_string() == device.spec_key)
    measured = RESULTS.c.payload["status"].as_string() == Status.OK.value
    looked_at = newest.subquery()
    wanted = select(RESULTS.c.run_id, RESULTS.c.payload).join(looked_at, looked_at.c.id == RESULTS.c.run_id)
    with database.reading() as connection:
        rows = connection.execute(wanted.where(measured, named).order_by(RESULTS.c.number.desc()))
        found = decodable((row.run_id, row.payload) for row in rows)
        on_device = ((run_id, result) for run_id, result in found if _measured_on(device, result))
        return tuple(islice(on_device, limit))


def _measured_on(device: Device, result: Result) -> bool:
    return result.environment is not None and same_device(result.environment.device, device)


def request_cancel(database: Database, run_id: str, owner: str) -> None:
    """Stop a run: at once while it waits, between two rounds while it is measured; a finished one stays as it is.

    Raises:
        NotFound: no run has this id.
        InvalidInput: the run is another user's.
    """
    waits = RUNS.c.state == RunState.QUEUED
    stop = update(RUNS).where(RUNS.c.id == run_id, RUNS.c.state.in_(ACTIVE))
    with database.writing() as connection:
        if _one_run(connection, run_id).owner != owner:
            raise InvalidInput(f"run {run_id} belongs to somebody else: only its owner can cancel it")
        connection.execute(
            stop.values(
                cancel_requested=True,
                state=choose((waits, RunState.CANCELLED), else_=RUNS.c.state),
                reason=choose((waits, CANCELLED_BY_OWNER), else_=RUNS.c.reason),
                finished_utc=choose((waits, database.now()), else_=RUNS.c.finished_utc),
            )
        )


def cancel_requested(database: Database, run_id: str) -> bool:
    """Return whether the owner asked to stop this run."""
    with database.reading() as connection:
        return bool(connection.scalar(select(RUNS.c.cancel_requested).where(RUNS.c.id == run_id)))


def _new_run(database: Database, experiment: Experiment, owner: str) -> dict[str, Any]:
    return {
        "id": "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH)),
        "owner": owner,
        "experiment": encode(experiment),
        "total": len(experiment.cases()),
        "state": RunState.QUEUED,
        "created_utc": database.now(),
    }


def _insert_run(connection: Connection, row: dict[str, Any]) -> str:
    connection.execute(insert(RUNS).values(**row))
    return str(row["id"])


def _runs_with_counts() -> Any:
    done = select(func.count()).where(RESULTS.c.run_id == RUNS.c.id).scalar_subquery()
    return select(RUNS, done.label("done"))


def _one_run(connection: Connection, run_id: str) -> Row[Any]:
    row = connection.execute(_runs_with_counts().where(RUNS.c.id == run_id)).one_or_none()
    if row is None:
        raise NotFound(f"no run {run_id[:60]!r}: check the link")
    return row


def _decodable_runs(rows: Iterable[Row[Any]]) -> Iterator[Run]:
    for row in rows:
        try:
            yield _to_run(row)
        except NotFound as error:
            warn(str(error))


def _to_run(row: Row[Any], results: tuple[Result, ...] = ()) -> Run:
    experiment = experiment_of(row.id, row.experiment)
    current = None if row.current is None else experiment.cases()[row.current]
    return Run(
        id=row.id,
        owner=row.owner,
        experiment=experiment,
        state=RunState(row.state),
        progress=Progress(row.done, row.total, current),
        results=results,
        reason=row.reason,
        created_utc=row.created_utc,
        started_utc=row.started_utc,
        finished_utc=row.finished_utc,
    )
