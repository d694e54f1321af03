"""Activities as their owners see them: submit, look. They are cancelled as runs are."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import Row, select

from gpuexplore.activity import Activity, ActivityRun, Payload
from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import RunState
from gpuexplore.store.audit import Action, note
from gpuexplore.store.database import Database, epoch_s, upsert
from gpuexplore.store.run_rows import check, insert_run, limits, new_row
from gpuexplore.store.tables import EXPERIMENT, OBSERVATIONS, OWNERS, RUNS
from gpuexplore.store.tolerant_decode import activity_of, warn
from gpuexplore.store.turns import order_runs_of

ACTIVITY = RUNS.c.kind != EXPERIMENT


def submit_activity(database: Database, activity: Activity, owner: str, *, address: str | None = None) -> str:
    """Queue `activity` for `owner`; return its run's id, on the disk when this returns.

    Raises:
        InvalidInput: a limit is reached; nothing was queued.
    """
    row = new_row(database, activity, owner) | {"address": address}
    with database.writing(durable=True) as connection:
        check(connection, row, limits())
        insert_run(connection, row)
        note(connection, row["created_utc"], (Action.SUBMITTED, owner, row["id"]), address)
        upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
        order_runs_of(connection, owner)
    return str(row["id"])


def load_activity(database: Database, run_id: str) -> ActivityRun:
    """Return an activity with what was observed so far.

    Raises:
        NotFound: no activity has this id.
    """
    with database.reading() as connection:
        row = connection.execute(select(RUNS).where(RUNS.c.id == run_id, ACTIVITY)).one_or_none()
        if row is None:
            raise NotFound(f"no activity {run_id[:60]!r}: check the link")
        wanted = select(OBSERVATIONS).where(OBSERVATIONS.c.run_id == run_id).order_by(OBSERVATIONS.c.number)
        seen = connection.execute(wanted).all()
    return replace(
        to_activity_run(row, tuple(report.payload for report in seen)), versions=seen[-1].versions if seen else None
    )


def running_activities(database: Database) -> tuple[ActivityRun, ...]:
    """Return the activities that are being done, without what they observed, the oldest first."""
    wanted = select(RUNS).where(RUNS.c.state == RunState.RUNNING, ACTIVITY).order_by(RUNS.c.number)
    with database.reading() as connection:
        return tuple(_decodable(connection.execute(wanted)))


def newest_activity(
    database: Database, activity: Activity, since_utc: str, *, device_keys: Collection[str] | None = None
) -> ActivityRun | None:
    """Return the newest one that was done as `activity` asks for it since then, whoever asked; None without one.

    Args:
        device_keys: only what was done on a device with one of these; None is on any device of that id.
    """
    wanted = select(RUNS).where(RUNS.c.kind == activity.kind, RUNS.c.state == RunState.DONE)
    wanted = wanted.where(RUNS.c.finished_utc >= since_utc).order_by(RUNS.c.number.desc())
    with database.reading() as connection:
        found = [run for run in _decodable(connection.execute(wanted)) if run.activity == activity]
    loaded = (load_activity(database, run.id) for run in found)
    return next((run for run in loaded if device_keys is None or run.device_key in device_keys), None)


def to_activity_run(row: Row[Any], payloads: tuple[Payload, ...] = ()) -> ActivityRun:
    """Return the activity of a row of `runs`.

    Raises:
        NotFound: it is of a kind this version does not know.
    """
    return ActivityRun(
        id=row.id,
        owner=row.owner,
        activity=activity_of(row.id, row.experiment),
        state=RunState(row.state),
        payloads=payloads,
        reason=row.reason,
        supervisor=row.supervisor,
        device_s=row.device_s,
        created_utc=row.created_utc,
        started_utc=row.started_utc,
        finished_utc=row.finished_utc,
    )


def _decodable(rows: Iterable[Row[Any]]) -> Iterator[ActivityRun]:
    for row in rows:
        try:
            yield to_activity_run(row)
        except NotFound as error:
            warn(str(error))
