"""Runs as they enter the store: queued within the limits, shared with who asked for the same, or recorded as done.

A visitor may add to the queue within limits, which are checked in the transaction that inserts. The same request is
measured once for all who ask for it while it waits or goes on: who submitted the run owns it, the others are its
askers (`askers`).
"""

import os
import secrets
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, Select, func, insert, select, text

from gpuexplore.activity import Activity
from gpuexplore.core import Experiment, InvalidInput, Result, RunState, default_title, encode, format_seconds
from gpuexplore.operations.implementation import OF_USERS
from gpuexplore.store.claims import add_row
from gpuexplore.store.database import Action, Database, epoch_s, insertion, note, upsert
from gpuexplore.store.run_states import ACTIVE, searched
from gpuexplore.store.tables import EXPERIMENT, OWNERS, RUN_ASKERS, RUNS
from gpuexplore.store.turns import QUEUED, head_start_s, next_turn_s, order_runs_of


class Submissions(Database):
    """Runs as they are queued or recorded."""

    def submit(
        self,
        work: Experiment | Activity,
        owner: str,
        *,
        estimated_s: float | None = None,
        address: str | None = None,
    ) -> str:
        """Queue `work` for `owner`; return the run's id. See `submit_all`."""
        (run_id,) = self.submit_all({work: estimated_s}, owner, address=address)
        return run_id

    def submit_all(
        self,
        works: Mapping[Experiment, float | None] | Mapping[Experiment | Activity, float | None],
        owner: str,
        *,
        address: str | None = None,
    ) -> list[str]:
        """Queue all of `works` or none; return the ids of the runs. They are on the disk when this returns.

        Args:
            works: each with the device seconds it will take; None counts the sampling alone.
            owner: whose they are.
            address: where they come from on the network.

        Raises:
            InvalidInput: a limit is reached; nothing was queued.
        """
        rows = [
            self._new_row(work, owner, estimated_s=estimated_s, address=address) for work, estimated_s in works.items()
        ]
        with self.writing(durable=True) as connection:
            _queue(connection, rows, owner)
        return [row["id"] for row in rows]

    def ask(
        self,
        work: Experiment | Activity,
        owner: str,
        *,
        estimated_s: float | None = None,
        address: str | None = None,
    ) -> str:
        """Return the id of the run that does `work`: what another user asked for and has not ended, else a new one.

        What names a function or a file of a user is theirs alone. For the arguments see `submit_all`.

        Raises:
            InvalidInput: a limit is reached; nothing was queued.
        """
        row = self._new_row(work, owner, estimated_s=estimated_s, address=address)
        with self.writing(durable=True) as connection:
            # Let thirty who ask at once ask one after the other; on SQLite there is one writer at a time anyway.
            if connection.dialect.name == "postgresql":
                # "gpas": any number that no other program locks in this database
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": 0x6770_6173})
            is_private = isinstance(work, Experiment) and any(OF_USERS in name for name in work.implementations)
            same = None if is_private else _of_another(connection, row)
            if same is None:
                _queue(connection, [row], owner)
                return str(row["id"])
            turn_s = next_turn_s(connection, owner) - head_start_s(connection, owner)
            asker = {"run_id": same.id, "owner": owner, "asked_utc": row["created_utc"], "turn_s": turn_s}
            connection.execute(insertion(connection, RUN_ASKERS).values(**asker).on_conflict_do_nothing())
            note(connection, row["created_utc"], (Action.SUBMITTED, owner, same.id), address)
            upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
            order_runs_of(connection, same.owner)
            return str(same.id)

    def record(
        self, experiment: Experiment, owner: str, *, results: Sequence[Result], origin: str | None = None
    ) -> str:
        """Store a run that was measured elsewhere, as the command line does; return its id.

        Args:
            experiment: what was asked for.
            owner: whose it is.
            results: at most one of each case.
            origin: where it was measured, when not on this machine: it then counts for no device of this server.

        Raises:
            InvalidInput: a result is of no case of `experiment`, or two are of the same.
        """
        indexes = {case: index for index, case in enumerate(experiment.cases())}
        cases = [result.case for result in results]
        if len(set(cases)) != len(cases) or not indexes.keys() >= set(cases):
            raise InvalidInput("results and experiment do not match: there must be one result per case")
        now = self.now()
        row = self._new_row(experiment, owner)
        row |= {"state": RunState.DONE, "started_utc": now, "finished_utc": now, "origin": origin}
        with self.writing() as connection:
            connection.execute(insert(RUNS).values(**row))
            note(connection, now, (Action.SAVED, owner, row["id"]))
            for result in results:
                add_row(connection, row["id"], indexes[result.case], result)
        return str(row["id"])

    def _new_row(
        self,
        work: Experiment | Activity,
        owner: str,
        *,
        estimated_s: float | None = None,
        address: str | None = None,
    ) -> dict[str, Any]:
        """Return the row of a run that is queued now; without an estimate, that of its sampling."""
        alphabet = string.ascii_lowercase + string.digits
        run_id = "".join(secrets.choice(alphabet) for _ in range(10))  # 36**10: a link cannot be guessed
        row = {
            "id": run_id,
            "owner": owner,
            "experiment": encode(work),
            "devices": ",".join(sorted(work.devices)),
            "state": RunState.QUEUED,
            "created_utc": self.now(),
            "address": address,
        }
        if isinstance(work, Activity):
            row |= {"kind": work.kind, "total": 1, "estimated_s": work.expected_s}
        else:
            cases = len(work.cases())
            title = default_title(work)
            row |= {"kind": EXPERIMENT, "total": cases, "operation": work.operation}
            row |= {"title": title, "words": searched(title, run_id)}
            row |= {"estimated_s": cases * work.options.repeat * work.options.budget_s}
        return row if estimated_s is None else row | {"estimated_s": estimated_s}


def _queue(connection: Connection, rows: Iterable[Mapping[str, Any]], owner: str) -> None:
    """Insert the rows of runs that an owner queues, and order the owner's runs anew."""
    for row in rows:
        _check(connection, row, limits())
        connection.execute(insert(RUNS).values(**row))
        note(connection, row["created_utc"], (Action.SUBMITTED, owner, row["id"]), row["address"])
    upsert(connection, OWNERS, {"owner": owner, "seen_epoch_s": epoch_s()})
    order_runs_of(connection, owner)


def _of_another(connection: Connection, row: dict[str, object]) -> Row[Any] | None:
    """Return the oldest run of another owner that asks for exactly the same and waits or is being measured."""
    same = (RUNS.c[name] == row[name] for name in ("kind", "devices", "total"))
    wanted: Select[Any] = select(RUNS.c.id, RUNS.c.owner, RUNS.c.experiment).where(
        RUNS.c.state.in_(ACTIVE), RUNS.c.owner != row["owner"], ~RUNS.c.cancel_requested, *same
    )
    found = connection.execute(wanted.order_by(RUNS.c.number))
    return next((each for each in found if each.experiment == row["experiment"]), None)


@dataclass(frozen=True, slots=True)
class _QueueLimits:
    """The limits of a server; each is set by GPUEXPLORE_LIMIT_ and its name in capitals.

    Attributes:
        waiting_per_owner: runs of one visitor that may wait.
        waiting_per_address: runs from one network address that may wait.
        waiting: runs that may wait; twice as many for addresses of which hardly any do, so that no others fill it.
        device_seconds_per_hour: seconds of devices one visitor may use in an hour.
    """

    waiting_per_owner: int = 20
    waiting_per_address: int = 200
    waiting: int = 2000
    device_seconds_per_hour: int = 3600


def limits(environment: Mapping[str, str] = os.environ) -> _QueueLimits:
    """Return this server's limits.

    Raises:
        InvalidInput: a setting is no whole number from 1.
    """
    named = {field.name: f"GPUEXPLORE_LIMIT_{field.name.upper()}" for field in fields(_QueueLimits)}
    return _QueueLimits(**{name: _whole(key, environment[key]) for name, key in named.items() if key in environment})


def _check(connection: Connection, row: Mapping[str, object], allowed: _QueueLimits) -> None:
    """Return when the run of `row` may be queued.

    Raises:
        InvalidInput: a limit is reached; names it, and when it will not be.
    """
    owner = str(row["owner"])
    address = row["address"]
    near = None if address is None else _waiting(connection, RUNS.c.address == address)
    total = _waiting(connection)
    # An address with few waiting runs may queue one until twice the limit of all wait.
    is_filled_by_others = near is not None and near < 5 and 2 * near < total
    _check_count(total, allowed.waiting, "on this server", times=2 if is_filled_by_others else 1)
    _check_count(_waiting(connection, RUNS.c.owner == owner), allowed.waiting_per_owner, "of yours")
    if near is not None:
        _check_count(near, allowed.waiting_per_address, "from your network address")
    most_s = allowed.device_seconds_per_hour
    used_s = next_turn_s(connection, owner)
    asked_s = float(str(row["estimated_s"]))
    if used_s + asked_s > most_s:
        raise InvalidInput(
            f"this run may take {format_seconds(asked_s)}, and you have used {format_seconds(used_s)} of device time "
            f"in this hour: the limit per visitor is {format_seconds(most_s)}. Nothing was queued. "
            "Ask for less, or try again later"
        )


def _waiting(connection: Connection, *conditions: object) -> int:
    return connection.scalar(select(func.count()).select_from(RUNS).where(QUEUED, *conditions)) or 0  # type: ignore[arg-type]


def _check_count(count: int, most: int, whose: str, *, times: int = 1) -> None:
    if count >= most * times:
        raise InvalidInput(
            f"{count:,} runs {whose} are queued, the limit is {most:,}: nothing was added. Try again when one has ended"
        )


def _whole(key: str, value: str) -> int:
    if not value.strip().isdecimal() or int(value) < 1:
        raise InvalidInput.of(key, value, "whole numbers from 1")
    return int(value)
