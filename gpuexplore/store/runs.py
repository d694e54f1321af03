"""Runs and activities as they are read, one or many, with their results or without."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Row, Select, func, or_, select

from gpuexplore.activity import Activity, ActivityRun, Payload
from gpuexplore.core import Device, Experiment, NotFound, Progress, Result, Run, RunState, Status, decode
from gpuexplore.hardware.identity import same_device
from gpuexplore.store.database import Database
from gpuexplore.store.listing import summary_of_row, tags_of
from gpuexplore.store.run_states import LISTED, existing
from gpuexplore.store.tables import ENVIRONMENTS, EXPERIMENT, OBSERVATIONS, RESULTS, RUNS
from gpuexplore.store.tolerant_decode import (
    DECODE_ERRORS,
    activity_of,
    decodable,
    experiment_of,
    may_be_of,
    results_of,
    shared_environments,
    warn,
)

Found = TypeVar("Found", Run, ActivityRun)

ACTIVITY = RUNS.c.kind != EXPERIMENT
MAX_SEARCHED_RUNS = 40  # runs that are searched for results on a device
MEASURED_HERE = (*LISTED, RUNS.c.origin.is_(None))  # what is imported counts for no device of this server


class StoredRuns(Database):
    """Runs and activities as they are read."""

    def load(self, run_id: str) -> Run:
        """Return a run with its results, in the order of its cases.

        Raises:
            NotFound: no run has this id.
        """
        with self.reading() as connection:
            run = _one_run(connection, run_id)
            tags = tags_of(connection, run.number)
            found = _results(connection, run_id, _rows_of(run_id).order_by(RESULTS.c.case_index))
        return replace(_to_run(run, tuple(result for _, result in found)), tags=tags)

    def load_summary(self, run_id: str) -> Run:
        """Return a run without its results: what a page asks for every second.

        Raises:
            NotFound: no run has this id.
        """
        with self.reading() as connection:
            run = _one_run(connection, run_id)
            return replace(_to_run(run), tags=tags_of(connection, run.number))

    def results_after(self, run_id: str, number: int) -> tuple[tuple[int, Result], ...]:
        """Return the results that arrived after the one of `number`, each with its own, in the order of arrival.

        A result that replaced a provisional one has arrived after that.
        """
        wanted = _rows_of(run_id).where(RESULTS.c.number > number).order_by(RESULTS.c.number)
        with self.reading() as connection:
            return _results(connection, run_id, wanted)

    def devices_of_results(self, run_id: str) -> tuple[Device, ...]:
        """Return what the results of a run say they were measured on, each device as it was then."""
        here = select(RESULTS.c.environment).where(RESULTS.c.run_id == run_id).distinct()
        wanted = select(ENVIRONMENTS.c.payload).where(ENVIRONMENTS.c.digest.in_(here))
        with self.reading() as connection:
            payloads = connection.scalars(wanted).all()
        found = []
        for payload in payloads:
            with suppress(*DECODE_ERRORS):  # of another version: it cannot be compared
                found.append(decode(Device, payload["device"]))
        return tuple(dict.fromkeys(found))

    def newest_result(self) -> int:
        """Return a number that grows with every result stored: what was read before is current while it stays."""
        with self.reading() as connection:
            return connection.scalar(select(func.max(RESULTS.c.number))) or 0

    def history(
        self, owner: str | None = None, *, states: Sequence[RunState] = (), limit: int = 50, skip: int = 0
    ) -> tuple[Run, ...]:
        """Return runs without their results, newest first: of `owner` or of all, in `states` or in any."""
        wanted = _runs_with_counts().where(*LISTED).order_by(RUNS.c.number.desc()).limit(limit).offset(skip)
        if owner is not None:
            wanted = wanted.where(RUNS.c.owner == owner)
        if states:
            wanted = wanted.where(RUNS.c.state.in_(states))
        with self.reading() as connection:
            return tuple(_decodable(_to_run, connection.execute(wanted)))

    def measured_results(
        self, device: Device, *, owner: str | None = None, numbers: range | None = None, limit: int = 400
    ) -> tuple[tuple[str, Result], ...]:
        """Return final results with a measurement on `device`, each with its run's id, newest first.

        Which devices count as this one is decided by `gpuexplore.hardware.identity`; a simulated one measured nothing.

        Args:
            owner: whose runs; None is all users'.
            numbers: only results of these numbers, which grow as results come (see `newest_result`).
            limit: of results; only the newest MAX_SEARCHED_RUNS runs are looked at, whatever they measured.
        """
        if device.is_simulated:
            return ()
        newest = select(RUNS.c.id).where(*MEASURED_HERE).order_by(RUNS.c.number.desc()).limit(MAX_SEARCHED_RUNS)
        if owner is not None:
            newest = newest.where(RUNS.c.owner == owner)
        named = ENVIRONMENTS.c.device_name == device.name
        if device.spec_key is not None:
            named = or_(named, ENVIRONMENTS.c.spec_key == device.spec_key)
        measured = RESULTS.c.payload["status"].as_string() == Status.OK.value
        looked_at = newest.subquery()
        looked_in = RESULTS.join(looked_at, looked_at.c.id == RESULTS.c.run_id)
        digests = select(RESULTS.c.environment).select_from(looked_in).distinct()
        digests = digests.join(ENVIRONMENTS, ENVIRONMENTS.c.digest == RESULTS.c.environment).where(named)
        wanted = select(RESULTS.c.run_id, RESULTS.c.payload, RESULTS.c.environment).select_from(looked_in)
        if numbers is not None:
            # Many are not looked through one by one: those of the newest runs are, which an index finds.
            number = RESULTS.c.number if len(numbers) <= 2000 else RESULTS.c.number + 0
            of_numbers = number >= numbers.start, number < numbers.stop
            digests = digests.where(*of_numbers)
            wanted = wanted.where(*of_numbers)
        with self.reading() as connection:
            shared = shared_environments(connection, set(connection.scalars(digests)))
            here = {digest for digest, environment in shared.items() if may_be_of(device, environment)}
            final = wanted.where(RESULTS.c.environment.in_(here), measured, ~RESULTS.c.provisional)
            rows = connection.execute(final.order_by(RESULTS.c.number.desc()))
            found = decodable(((row.run_id, row.payload, row.environment) for row in rows), shared)
            on_device = (
                (run_id, result)
                for run_id, result in found
                if result.environment is not None and same_device(result.environment.device, device)
            )
            return tuple(islice(on_device, limit))

    def newest_alike(self, experiment: Experiment, since_utc: str) -> Run | None:
        """Return the newest run of exactly this experiment done since then, with its results; None without one."""
        done = RUNS.c.operation == experiment.operation, RUNS.c.state == RunState.DONE, RUNS.c.finished_utc >= since_utc
        wanted = _runs_with_counts().where(*done, *MEASURED_HERE)
        with self.reading() as connection:
            newest = wanted.order_by(RUNS.c.number.desc()).limit(400)
            found = _decodable(_to_run, connection.execute(newest))
            alike = next((run for run in found if run.experiment == experiment), None)
        return self.load(alike.id) if alike else None

    def running(self) -> tuple[Run, ...]:
        """Return the runs that are being measured, without their results, the oldest first."""
        wanted = _runs_with_counts().where(RUNS.c.state == RunState.RUNNING).order_by(RUNS.c.number)
        with self.reading() as connection:
            return tuple(_decodable(_to_run, connection.execute(wanted)))

    def load_activity(self, run_id: str) -> ActivityRun:
        """Return an activity with what was observed so far.

        Raises:
            NotFound: no activity has this id.
        """
        with self.reading() as connection:
            row = connection.execute(select(RUNS).where(RUNS.c.id == run_id, ACTIVITY)).one_or_none()
            if row is None:
                raise NotFound(f"no activity {run_id[:60]!r}: check the link")
            wanted = select(OBSERVATIONS).where(OBSERVATIONS.c.run_id == run_id).order_by(OBSERVATIONS.c.number)
            seen = connection.execute(wanted).all()
        return replace(
            _to_activity_run(row, tuple(report.payload for report in seen)),
            versions=seen[-1].versions if seen else None,
        )

    def running_activities(self) -> tuple[ActivityRun, ...]:
        """Return the activities that are being done, without what they observed, the oldest first."""
        wanted = select(RUNS).where(RUNS.c.state == RunState.RUNNING, ACTIVITY).order_by(RUNS.c.number)
        with self.reading() as connection:
            return tuple(_decodable(_to_activity_run, connection.execute(wanted)))

    def newest_activity(
        self, activity: Activity, since_utc: str, *, device_keys: Collection[str] | None = None
    ) -> ActivityRun | None:
        """Return the newest one that was done as `activity` asks for it since then, for any owner; None without one.

        Args:
            device_keys: only what was done on a device with one of these; None is on any device of that id.
        """
        wanted = select(RUNS).where(RUNS.c.kind == activity.kind, RUNS.c.state == RunState.DONE)
        wanted = wanted.where(RUNS.c.finished_utc >= since_utc).order_by(RUNS.c.number.desc())
        with self.reading() as connection:
            found = [
                run for run in _decodable(_to_activity_run, connection.execute(wanted)) if run.activity == activity
            ]
        loaded = (self.load_activity(run.id) for run in found)
        return next((run for run in loaded if device_keys is None or run.device_key in device_keys), None)


def _rows_of(run_id: str) -> Select[Any]:
    columns = RESULTS.c.number, RESULTS.c.payload, RESULTS.c.environment, RESULTS.c.provisional
    return select(*columns).where(RESULTS.c.run_id == run_id)


def _results(connection: Connection, run_id: str, wanted: Select[Any]) -> tuple[tuple[int, Result], ...]:
    """Return the results of rows of a run, each with its number."""
    rows = connection.execute(wanted).all()
    shared = shared_environments(connection, {row.environment for row in rows if row.environment})
    found = results_of(run_id, ((row.payload, row.environment, row.provisional) for row in rows), shared)
    return tuple((row.number, result) for row, result in zip(rows, found, strict=True))


def _runs_with_counts() -> Any:
    known = select(func.count()).where(RESULTS.c.run_id == RUNS.c.id)
    provisional = known.where(RESULTS.c.provisional).scalar_subquery().label("provisional")
    return select(RUNS, known.scalar_subquery().label("known"), provisional).where(RUNS.c.kind == EXPERIMENT)


def _one_run(connection: Connection, run_id: str) -> Row[Any]:
    return existing(connection.execute(_runs_with_counts().where(RUNS.c.id == run_id)).one_or_none(), run_id)


def _decodable(decode_row: Callable[[Row[Any]], Found], rows: Iterable[Row[Any]]) -> Iterator[Found]:
    """Yield what this version understands; the rest is logged, once a run."""
    for row in rows:
        try:
            yield decode_row(row)
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
        progress=Progress(row.known - row.provisional, row.total, current, row.provisional),
        results=results,
        reason=row.reason,
        supervisor=row.supervisor,
        device_s=row.device_s,
        created_utc=row.created_utc,
        started_utc=row.started_utc,
        finished_utc=row.finished_utc,
        title=row.title,
        note=row.note,
        origin=row.origin,
        summary=summary_of_row(row.summary),
    )


def _to_activity_run(row: Row[Any], payloads: tuple[Payload, ...] = ()) -> ActivityRun:
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
