"""Rows of the table of runs, whatever they ask for, and the limits within which a visitor may add to the queue.

The limits are checked where a run is submitted, in the same transaction.
"""

import os
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, text, update
from sqlalchemy import case as choose

from gpuexplore.activity import Activity
from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.core.model import Experiment, RunState
from gpuexplore.core.naming import default_title
from gpuexplore.core.serialization import encode
from gpuexplore.core.units import format_seconds
from gpuexplore.store.database import Database
from gpuexplore.store.tables import EXPERIMENT, PROVISIONAL, RESULTS, RUNS, storable
from gpuexplore.store.turns import QUEUED, next_turn_s

PREFIX = "GPUEXPLORE_LIMIT_"
FEW, ROOM = 5, 2  # an address with fewer waiting runs may queue one until so many times the limit of all wait


@dataclass(frozen=True, slots=True)
class QueueLimits:
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


def limits(environment: Mapping[str, str] = os.environ) -> QueueLimits:
    """Return this server's limits.

    Raises:
        InvalidInput: a setting is no whole number from 1.
    """
    named = {field.name: PREFIX + field.name.upper() for field in fields(QueueLimits)}
    return QueueLimits(**{name: _whole(key, environment[key]) for name, key in named.items() if key in environment})


def check(connection: Connection, row: Mapping[str, object], allowed: QueueLimits) -> None:
    """Return when the run of `row` may be queued.

    Raises:
        InvalidInput: a limit is reached; names it, and when it will not be.
    """
    owner, address = str(row["owner"]), row["address"]
    near = None if address is None else _waiting(connection, RUNS.c.address == address)
    total = _waiting(connection)
    is_filled_by_others = near is not None and near < FEW and 2 * near < total
    _check_count(total, allowed.waiting, "on this server", room=ROOM if is_filled_by_others else 1)
    _check_count(_waiting(connection, RUNS.c.owner == owner), allowed.waiting_per_owner, "of yours")
    if near is not None:
        _check_count(near, allowed.waiting_per_address, "from your network address")
    _check_seconds(connection, owner, row, allowed.device_seconds_per_hour)


def _waiting(connection: Connection, *conditions: object) -> int:
    return connection.scalar(select(func.count()).select_from(RUNS).where(QUEUED, *conditions)) or 0  # type: ignore[arg-type]


def _check_count(count: int, most: int, whose: str, *, room: int = 1) -> None:
    if count >= most * room:
        raise InvalidInput(
            f"{count:,} runs {whose} wait, and {most:,} may: nothing was queued. Try again when one has ended"
        )


def _check_seconds(connection: Connection, owner: str, row: Mapping[str, object], most_s: int) -> None:
    used_s = next_turn_s(connection, owner)
    asked_s = float(str(row["estimated_s"]))
    if used_s + asked_s > most_s:
        raise InvalidInput(
            f"this run may take {format_seconds(asked_s)}, and {format_seconds(used_s)} of the devices are yours in "
            f"this hour already: one visitor may use {format_seconds(most_s)}. Nothing was queued. "
            "Ask for less, or try again later"
        )


def _whole(key: str, value: str) -> int:
    if not value.strip().isdecimal() or int(value) < 1:
        raise InvalidInput.of(key, value, "whole numbers from 1")
    return int(value)


ID_LENGTH = 10  # 36**10: a link cannot be guessed
ACTIVE = (RunState.QUEUED, RunState.RUNNING)
LISTED = (RUNS.c.kind == EXPERIMENT, RUNS.c.deleted_utc.is_(None))
ALPHABET = string.ascii_lowercase + string.digits
LONGEST_WORDS = 500  # characters that a search looks through: an index of PostgreSQL holds 2,700 bytes


def new_row(database: Database, work: Experiment | Activity, owner: str) -> dict[str, Any]:
    """Return the row of a run that is queued now, with the seconds of its sampling as estimate."""
    run_id = "".join(secrets.choice(ALPHABET) for _ in range(ID_LENGTH))
    return {
        "id": run_id,
        "owner": owner,
        "experiment": encode(work),
        "devices": ",".join(sorted(work.devices)),
        "state": RunState.QUEUED,
        "created_utc": database.now(),
        **_size(work),
        **_named(work, run_id),
    }


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


def insert_run(connection: Connection, row: dict[str, Any]) -> str:
    """Insert a row; return its id."""
    connection.execute(insert(RUNS).values(**row))
    return str(row["id"])


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


def _named(work: Experiment | Activity, run_id: str) -> dict[str, Any]:
    if isinstance(work, Activity):
        return {}
    title = default_title(work)
    return {"operation": work.operation, "title": title, "words": searched(title, run_id)}


def _size(work: Experiment | Activity) -> dict[str, Any]:
    if isinstance(work, Activity):
        return {"kind": work.kind, "total": 1, "estimated_s": work.expected_s}
    cases = len(work.cases())
    return {"kind": EXPERIMENT, "total": cases, "estimated_s": cases * work.options.repeat * work.options.budget_s}
