"""Where a run that waits stands, and when it is expected to start: by the order of `turns`, for pages and programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Float, Integer, Row, String, and_, bindparam, cast, exists, func, select, tuple_

from gpuexplore.core.model import RunState
from gpuexplore.store.database import Database
from gpuexplore.store.holds import Hold, HoldKind, applies, free_of, holds_now
from gpuexplore.store.leases import is_alive, names_of
from gpuexplore.store.tables import DEVICE_HOLDS, RUNS, SUPERVISORS
from gpuexplore.store.turns import COMBINATIONS, LEFT_S, ORDER, QUEUED, head_start_s, leaders_among, left_s

WAITING_COLUMNS = (
    *ORDER,
    RUNS.c.id,
    RUNS.c.owner,
    RUNS.c.kind,
    RUNS.c.devices,
    RUNS.c.estimated_s,
    LEFT_S.label("left_s"),
)
# Built once: to build a statement takes longer than most of them run.
AHEAD = select(func.count().label("runs"), func.coalesce(func.sum(LEFT_S), 0.0).label("wait_s")).where(
    QUEUED,
    RUNS.c.devices.in_(bindparam("competitors", expanding=True)),
    tuple_(*ORDER) < tuple_(bindparam("turn", type_=Float()), bindparam("place", type_=Integer())),
)
MEASURED = RUNS.alias("measured")
# A row for each run that a supervisor measures, at least one; only those that are alive, where this is joined so.
SERVERS = SUPERVISORS.outerjoin(
    MEASURED, and_(MEASURED.c.state == RunState.RUNNING, MEASURED.c.supervisor == SUPERVISORS.c.name)
)
SERVER_COLUMNS = (
    SUPERVISORS.c.name.label("supervisor"),
    SUPERVISORS.c.host,
    cast(SUPERVISORS.c.devices, String).label("offered"),  # as text, by which `_lanes` remembers what it says
    SUPERVISORS.c.side_by_side,
    MEASURED.c.devices.label("in_use"),
    left_s(MEASURED).label("busy_s"),
)
ALIVE = select(*SERVER_COLUMNS).select_from(SERVERS).where(is_alive())
# Whatever a position needs before it counts, in one round trip; a row for each of SERVERS, at least one.
PLACE = (
    select(
        *WAITING_COLUMNS,
        *SERVER_COLUMNS,
        select(func.aggregate_strings(COMBINATIONS.subquery().c.devices, ";")).scalar_subquery().label("combinations"),
        exists(select(DEVICE_HOLDS.c.device)).label("any_held"),
    )
    .select_from(RUNS.outerjoin(SERVERS, is_alive()))
    .where(RUNS.c.id == bindparam("id"), QUEUED)
)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits.

    Attributes:
        id: of the run.
        owner: whose it is.
        kind: of work: `experiment`, or the kind of an activity.
        devices: what it asks for.
        position: how many runs from now its turn comes, 1 for next, among those that compete for its devices.
        expected_start_s: seconds until then, by the estimates of those before it; None when no supervisor that is
            alive has its devices.
        estimated_s: device seconds it will probably take.
        held: why none of its devices measures it now, where an administrator holds them back.
        of_leader: whether who leads an open room asked for it.
    """

    id: str
    owner: str
    kind: str
    devices: tuple[str, ...]
    position: int
    expected_start_s: float | None
    estimated_s: float
    held: str | None = None
    of_leader: bool = False


def position(database: Database, run_id: str) -> WaitingRun | None:
    """Return where a run stands; None when it does not wait."""
    with database.reading(snapshot=False) as connection:
        rows = connection.execute(PLACE, {"id": run_id}).all()
        if not rows:
            return None
        run = rows[0]
        servers = [row for row in rows if row.supervisor is not None]
        held = _against(run.owner, holds_now(connection, database.now()) if run.any_held else ())
        room = _room(run.devices, servers, run.combinations.split(";") if run.combinations else (), held)
        asked = {"competitors": room.competitors, "turn": run.turn_s, "place": run.number}
        ahead = connection.execute(AHEAD, asked).one()
        found = _waiting(run, room, ahead.runs, ahead.wait_s)
        return replace(found, of_leader=head_start_s(connection, run.owner) > 0)


def waiting(database: Database, limit: int = 100) -> tuple[WaitingRun, ...]:
    """Return the runs that wait, the next first, each as `position` tells."""
    with database.reading() as connection:
        rows = connection.execute(select(*WAITING_COLUMNS).where(QUEUED).order_by(*ORDER).limit(limit)).all()
        servers = connection.execute(ALIVE).all()
        combinations = connection.scalars(COMBINATIONS).all()
        held = holds_now(connection, database.now())
        leaders = leaders_among(connection, {row.owner for row in rows})
    reserved = {each.owner for each in held}
    # What decides where a run may be measured: the devices, and the owner where some are reserved for them.
    keys = [(row.devices, row.owner if row.owner in reserved else "") for row in rows]
    rooms = {
        (devices, owner): _room(devices, servers, combinations, _against(owner, held)) for devices, owner in set(keys)
    }
    found = []
    before = dict.fromkeys(rooms, (0, 0.0))
    for row, key in zip(rows, keys, strict=True):
        found.append(replace(_waiting(row, rooms[key], *before[key]), of_leader=row.owner in leaders))
        for each, (others, others_s) in before.items():
            if row.devices in rooms[each].competitors:
                before[each] = (others + 1, others_s + row.left_s)
    return tuple(found)


def queue_length(database: Database) -> int:
    """Return how many runs wait."""
    with database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(RUNS).where(QUEUED)) or 0


@dataclass(frozen=True, slots=True)
class _Capacity:
    """Where a run may be measured: on how many lanes, what other runs ask for that may be, and what is measured now.

    `held` says why it is on none, where an administrator holds its devices back.
    """

    lanes: int
    competitors: frozenset[str]
    busy_s: float
    held: str | None = None


def _against(owner: str, held: Sequence[Hold]) -> Sequence[Hold]:
    """Return those of what is held back that hold back the runs of `owner`."""
    return [each for each in held if each.kind is not HoldKind.RESERVED or each.owner != owner]


def _room(
    devices: str, servers: Sequence[Row[*tuple[Any, ...]]], combinations: Iterable[str], held: Sequence[Hold] = ()
) -> _Capacity:
    """Return where a run that asks for `devices` may be measured.

    Args:
        devices: the names it asks by, joined by commas.
        servers: rows of SERVERS.
        combinations: of several devices, that runs which wait ask for.
        held: what is held back from this run.
    """
    offers = {(row.supervisor, row.host, row.offered, row.side_by_side and "," not in devices) for row in servers}
    serving = [
        (name, lane) for name, *offer in offers for lane in _lanes(*offer) if lane.issuperset(devices.split(","))
    ]
    left = [(name, free_of(lane, held) if held else lane) for name, lane in serving]
    lanes = [(name, lane) for name, lane in left if lane.issuperset(devices.split(","))]
    names = {name for name, _ in lanes}
    competitors = frozenset([devices]).union(
        *(lane for _, lane in lanes),
        (several for several in combinations if any(lane.issuperset(several.split(",")) for _, lane in lanes)),
    )
    busy_s = sum(
        row.busy_s
        for row in servers
        if row.in_use is not None and row.supervisor in names and (row.in_use in competitors or "," in row.in_use)
    )
    why = _why(devices, [lane for _, lane in serving], held) if not lanes else None
    return _Capacity(len(lanes), competitors, busy_s, why)


def _why(devices: str, serving: Sequence[frozenset[str]], held: Sequence[Hold]) -> str | None:
    """Return what holds a run back that asks for `devices`; None where nothing of that does."""
    names = frozenset().union(*serving)
    found = [each for each in held if any(applies(each, device, names) for device in devices.split(","))]
    return "; ".join(map(str, found)) or None


@lru_cache(maxsize=1000)
def _lanes(host: str, offered: str, apart: bool) -> list[frozenset[str]]:
    """Return the lanes of a supervisor that is alive: devices on which it measures one run at a time.

    By the names that runs ask for; it is one lane, or one a device where those are measured on side by side.
    """
    ids = [device["id"] for device in json.loads(offered)]
    return [names_of(host, part) for part in ([[id] for id in ids] if apart else [ids])]


def _waiting(run: Row[*tuple[Any, ...]], room: _Capacity, runs_ahead: int, wait_s: float) -> WaitingRun:
    return WaitingRun(
        id=run.id,
        owner=run.owner,
        kind=run.kind,
        devices=tuple(run.devices.split(",")),
        position=runs_ahead + 1,
        expected_start_s=(room.busy_s + wait_s) / room.lanes if room.lanes else None,
        estimated_s=run.estimated_s,
        held=room.held,
    )
