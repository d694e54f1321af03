"""How much of the queue one visitor may take: checked where a run is submitted, in the same transaction."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

from sqlalchemy import Connection, func, select

from gpuexplore.errors import InvalidInput
from gpuexplore.store.tables import RUNS
from gpuexplore.store.turns import QUEUED, next_turn_s
from gpuexplore.units import format_seconds

PREFIX = "GPUEXPLORE_LIMIT_"
FEW, ROOM = 5, 2  # an address with fewer waiting runs may queue one until so many times the limit of all wait


@dataclass(frozen=True, slots=True)
class Limits:
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


def limits(environment: Mapping[str, str] = os.environ) -> Limits:
    """Return this server's limits.

    Raises:
        InvalidInput: a setting is no whole number from 1.
    """
    named = {field.name: PREFIX + field.name.upper() for field in fields(Limits)}
    return Limits(**{name: _whole(key, environment[key]) for name, key in named.items() if key in environment})


def check(connection: Connection, row: Mapping[str, object], allowed: Limits) -> None:
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
