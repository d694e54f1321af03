"""Whose turn it is, in one order: used by the claim, by the position and by the expected start that are shown.

Runs are ordered by `turn_s`: the device seconds their owner used in the last hour, plus what the owner's runs before
them will take. So whoever used a device least comes first, an owner's own runs keep their order, and a hundred
short runs of one wait behind the first of everybody else. Visitors without an account who come from one network
address count as one beside other addresses, and take turns among themselves.

The first of an owner's runs, while nothing of it was measured, counts as FIRST_PASS_S earlier, and all runs of who
leads an open room as LEADER_S: so everybody's first pass comes before anybody's second, and a leader's before those of
others; who used the device that much more waits all the same. A run that several asked for has the earliest of their
turns.

The column is written whenever one of its terms changes; an index then answers whose turn it is without looking at every
run that waits.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Integer,
    Row,
    String,
    and_,
    bindparam,
    cast,
    exists,
    func,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy import case as choose

from gpuexplore.model import RunState
from gpuexplore.store.database import Database, seconds_since_1970, upsert, utc_now
from gpuexplore.store.holds import Hold, HoldKind, applies, free_of, holds_now
from gpuexplore.store.leases import is_alive, names_of
from gpuexplore.store.tables import (
    DEVICE_HOLDS,
    DEVICE_SECONDS,
    ROOM_LEADERS,
    ROOMS,
    RUN_ASKERS,
    RUNS,
    SUPERVISORS,
    WAITS_FOR_SEVERAL,
)

MINUTES = 60  # the window in which device seconds count
FIRST_PASS_S = 60.0  # of device time by which who has seen nothing yet may have used more than who has
LEADER_S = 600.0  # the same of who leads an open room, and everybody else
ACCOUNT_PREFIX = "user:"  # of the owners whom a login or a proxy vouches for
ADDRESS_PREFIX = "address:"  # no cookie has a colon: no browser can call itself an address
QUEUED = RUNS.c.state == RunState.QUEUED
IS_ACTIVE = RUNS.c.state.in_((RunState.RUNNING, RunState.QUEUED))


def left_s(runs: FromClause) -> ColumnElement[float]:
    """Return the device seconds that are probably left of each of `runs`."""
    left = runs.c.estimated_s - runs.c.device_s
    return choose((left > 0.0, left), else_=0.0)


LEFT_S = left_s(RUNS)
ORDER = (RUNS.c.turn_s, RUNS.c.number)
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
ASKED = select(RUNS.c.number).where(QUEUED, RUNS.c.devices.in_(bindparam("claimable", expanding=True))).limit(1)
COMBINATIONS = select(RUNS.c.devices).where(text(WAITS_FOR_SEVERAL)).distinct()
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
    asked = {_Asked(row.devices, row.owner if row.owner in reserved else "") for row in rows}
    rooms = {each: _room(each.devices, servers, combinations, _against(each.owner, held)) for each in asked}
    found = []
    before = dict.fromkeys(rooms, (0, 0.0))
    for row in rows:
        key = _Asked(row.devices, row.owner if row.owner in reserved else "")
        found.append(replace(_waiting(row, rooms[key], *before[key]), of_leader=row.owner in leaders))
        for each, (others, others_s) in before.items():
            if row.devices in rooms[each].competitors:
                before[each] = (others + 1, others_s + row.left_s)
    return tuple(found)


def queue_length(database: Database) -> int:
    """Return how many runs wait."""
    with database.reading() as connection:
        return connection.scalar(select(func.count()).select_from(RUNS).where(QUEUED)) or 0


def claimable(connection: Connection, device_ids: Collection[str]) -> list[str]:
    """Return what `device_ids` can serve of what waiting runs may ask for; nothing when none of that is asked for."""
    several = [devices for devices in connection.scalars(COMBINATIONS) if set(devices.split(",")) <= set(device_ids)]
    devices = [*device_ids, *several]
    return devices if connection.scalar(ASKED, {"claimable": devices}) is not None else []


def head_start_s(connection: Connection, owner: str) -> float:
    """Return by how many seconds an owner's runs come earlier, as those of who leads an open room do."""
    return LEADER_S if leaders_among(connection, {owner}) else 0.0


def leaders_among(connection: Connection, owners: Collection[str]) -> set[str]:
    """Return who of `owners` leads an open room."""
    now = utc_now().isoformat(timespec="microseconds")
    opened = (ROOMS.c.number == ROOM_LEADERS.c.room, ROOMS.c.closed_utc.is_(None), ROOMS.c.ends_utc > now)
    led = select(ROOM_LEADERS.c.owner).where(ROOM_LEADERS.c.owner.in_(owners), exists().where(*opened))
    return set(connection.scalars(led)) if owners else set()


def device_seconds(connection: Connection, owner: str) -> float:
    """Return the device seconds an owner used in the last hour."""
    return _used(connection, [owner]).get(owner, 0.0)


def _used(connection: Connection, names: Collection[str]) -> dict[str, float]:
    """Return the device seconds that each of these owners and groups used in the last hour, where they used any."""
    since = int(seconds_since_1970(connection) // 60) - MINUTES
    used = select(DEVICE_SECONDS.c.owner, func.sum(DEVICE_SECONDS.c.device_s)).group_by(DEVICE_SECONDS.c.owner)
    rows = connection.execute(used.where(DEVICE_SECONDS.c.owner.in_(names), DEVICE_SECONDS.c.minute > since))
    return {owner: float(device_s) for owner, device_s in rows}


def next_turn_s(connection: Connection, owner: str) -> float:
    """Return the turn of what an owner queues now."""
    active = select(func.coalesce(func.sum(LEFT_S), 0.0)).where(RUNS.c.owner == owner, IS_ACTIVE)
    return device_seconds(connection, owner) + float(connection.scalar(active) or 0.0)


def group_of(owner: str, address: str | None) -> str | None:
    """Return with whom an owner shares turns: all visitors without an account of one address do.

    Cookies are free, and addresses are not. None: nobody; where the address is unknown, or the owner has an account.
    """
    return None if address is None or owner.startswith(ACCOUNT_PREFIX) else f"{ADDRESS_PREFIX}{address}"


def book(connection: Connection, owner: str, device_s: float, *, address: str | None = None) -> None:
    """Note that a device worked `device_s` seconds for `owner`, whose runs then wait longer.

    So do those of others that came from the same `address`.
    """
    minute = int(seconds_since_1970(connection) // 60)
    for name in filter(None, (owner, group_of(owner, address))):
        upsert(connection, DEVICE_SECONDS, {"owner": name, "minute": minute, "device_s": device_s}, add=("device_s",))
    order_runs_of(connection, owner)


def order_runs_of(connection: Connection, owner: str) -> None:
    """Write the turns of an owner's waiting runs anew, and of those of others from the same addresses."""
    own = _active(connection, RUNS.c.owner == owner)
    addresses = {run.address for run in own if group_of(owner, run.address)}
    beside = _active(connection, RUNS.c.address.in_(addresses)) if addresses else []
    others = {run.owner for run in beside} - {owner}
    runs = own + (_active(connection, RUNS.c.owner.in_(others)) if others else [])
    groups = {run.number: group_of(run.owner, run.address) for run in runs}
    used = _used(connection, {run.owner for run in runs} | set(filter(None, groups.values())))
    rewritten = [run for run in runs if run.owner == owner or run.address in addresses]
    turns = _turns_of(runs, {run.number: groups[run.number] for run in rewritten}, used)
    due = _with_head_starts(runs, turns, leaders_among(connection, {run.owner for run in rewritten}))
    changed = [
        {"waiting": run.number, "turn": due[run.number]}
        for run in rewritten
        if run.state is RunState.QUEUED and run.turn_s != due[run.number]
    ]
    if changed:
        move = update(RUNS).where(RUNS.c.number == bindparam("waiting")).values(turn_s=bindparam("turn"))
        connection.execute(move, changed)


def _turns_of(
    runs: Sequence[Row[Any]], groups: Mapping[int, str | None], used: Mapping[str, float]
) -> dict[int, float]:
    """Return the turn of each run: the later one of its owner's and its group's, in which owners take turns."""
    turns = _in_turns([(run.number, run.owner, run.left_s) for run in runs], used)
    for group in set(filter(None, groups.values())):
        theirs = sorted(
            (run for run in runs if groups.get(run.number) == group),
            key=lambda run: (run.state is RunState.QUEUED, turns[run.number], run.number),
        )
        of_group = _in_turns([(run.number, group, run.left_s) for run in theirs], used)
        turns |= {number: max(turns[number], turn_s) for number, turn_s in of_group.items()}
    return turns


def _with_head_starts(
    runs: Sequence[Row[Any]], turns: Mapping[int, float], leaders: Collection[str]
) -> dict[int, float]:
    """Return the turn of each run, earlier where its owner leads a room, others asked for it, or nothing is measured.

    Args:
        runs: those that are measured first.
        turns: of each without that.
        leaders: who of the owners leads an open room.
    """
    due, begun = dict[int, float](), set[str]()
    for run in runs:
        due_s = turns[run.number] - (LEADER_S if run.owner in leaders else 0.0)
        due_s = due_s if run.asked_s is None else min(due_s, run.asked_s)
        is_first = run.attempt == 0 and (run.owner not in begun or run.asked_s is not None)
        due[run.number] = due_s - (FIRST_PASS_S if is_first else 0.0)
        begun.add(run.owner)
    return due


def _active(connection: Connection, whose: ColumnElement[bool]) -> list[Row[Any]]:
    """Return the runs that wait or are measured, each with what is left of it; those that are measured come first."""
    asked_s = select(func.min(RUN_ASKERS.c.turn_s)).where(RUN_ASKERS.c.run_id == RUNS.c.id).scalar_subquery()
    known = RUNS.c.number, RUNS.c.owner, RUNS.c.address, RUNS.c.state, RUNS.c.attempt, RUNS.c.turn_s
    active = select(*known, LEFT_S.label("left_s"), asked_s.label("asked_s")).where(IS_ACTIVE, whose)
    return list(connection.execute(active.order_by(RUNS.c.state == RunState.QUEUED, RUNS.c.number)))


def _in_turns(runs: Iterable[tuple[int, str, float]], used: Mapping[str, float]) -> dict[int, float]:
    """Return the turn of each run, of (number, whose, seconds left): what its owner used and what goes before it."""
    before, turns = dict(used), {}
    for number, whose, run_s in runs:
        turns[number] = before.get(whose, 0.0)
        before[whose] = turns[number] + run_s
    return turns


def order_all(database: Database) -> None:
    """Write all turns anew: what was used more than an hour ago no longer counts."""
    with database.reading() as connection:
        owners = connection.scalars(select(RUNS.c.owner).where(QUEUED).distinct()).all()
    for owner in owners:
        with database.writing() as connection:
            order_runs_of(connection, owner)


def somebody_waits(database: Database, owner: str, device_ids: Collection[str]) -> bool:
    """Return whether a run of somebody else waits for one of these devices, but those that are held back.

    A leader need not let it go first.
    """
    with database.reading() as connection:
        devices = claimable(connection, device_ids)
        if devices and (held := holds_now(connection, database.now())):
            devices = claimable(connection, free_of(device_ids, held))
        other = select(RUNS.c.number).where(QUEUED, RUNS.c.devices.in_(devices), RUNS.c.owner != owner)
        if start_s := head_start_s(connection, owner):
            other = other.where(RUNS.c.turn_s < device_seconds(connection, owner) - start_s)
        return connection.scalar(other.limit(1)) is not None


def first_pass_waits(database: Database, owner: str, device_ids: Collection[str]) -> bool:
    """Return whether a run of somebody else, of which nothing was measured, goes before what `owner` has begun."""
    with database.reading() as connection:
        devices = claimable(connection, device_ids)
        new = select(RUNS.c.number).where(
            QUEUED, RUNS.c.devices.in_(devices), RUNS.c.owner != owner, RUNS.c.attempt == 0
        )
        due_s = device_seconds(connection, owner) - head_start_s(connection, owner)
        return connection.scalar(new.where(RUNS.c.turn_s < due_s).limit(1)) is not None


@dataclass(frozen=True, slots=True)
class _Lane:
    """Devices on which a supervisor that is alive measures one run at a time, by the names that runs ask for."""

    supervisor: str
    device_ids: frozenset[str]

    def serves(self, devices: str) -> bool:
        return self.device_ids.issuperset(devices.split(","))

    def without(self, held: Sequence[Hold]) -> "_Lane":
        return _Lane(self.supervisor, free_of(self.device_ids, held)) if held else self


@dataclass(frozen=True, slots=True)
class _Room:
    """Where a run may be measured: on how many lanes, what other runs ask for that may be, and what is measured now.

    `held` says why it is on none, where an administrator holds its devices back.
    """

    lanes: int
    competitors: frozenset[str]
    busy_s: float
    held: str | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What decides where a run may be measured: the devices, and the owner where some are reserved for them."""

    devices: str
    owner: str


def _against(owner: str, held: Sequence[Hold]) -> Sequence[Hold]:
    """Return those of what is held back that hold back the runs of `owner`."""
    return [each for each in held if each.kind is not HoldKind.RESERVED or each.owner != owner]


def _room(
    devices: str, servers: Sequence[Row[*tuple[Any, ...]]], combinations: Iterable[str], held: Sequence[Hold] = ()
) -> _Room:
    """Return where a run that asks for `devices` may be measured.

    Args:
        devices: the names it asks by, joined by commas.
        servers: rows of SERVERS.
        combinations: of several devices, that runs which wait ask for.
        held: what is held back from this run.
    """
    offers = {(row.supervisor, row.host, row.offered, row.side_by_side and "," not in devices) for row in servers}
    serving = [lane for lane in chain.from_iterable(_lanes(*offer) for offer in offers) if lane.serves(devices)]
    lanes = [lane for lane in (each.without(held) for each in serving) if lane.serves(devices)]
    names = {lane.supervisor for lane in lanes}
    competitors = frozenset([devices]).union(
        *(lane.device_ids for lane in lanes),
        (several for several in combinations if any(lane.serves(several) for lane in lanes)),
    )
    busy_s = sum(
        row.busy_s
        for row in servers
        if row.in_use is not None and row.supervisor in names and (row.in_use in competitors or "," in row.in_use)
    )
    why = _why(devices, serving, held) if not lanes else None
    return _Room(len(lanes), competitors, busy_s, why)


def _why(devices: str, serving: Sequence[_Lane], held: Sequence[Hold]) -> str | None:
    """Return what holds a run back that asks for `devices`; None where nothing of that does."""
    names = frozenset().union(*(lane.device_ids for lane in serving))
    found = [each for each in held if any(applies(each, device, names) for device in devices.split(","))]
    return "; ".join(map(str, found)) or None


@lru_cache(maxsize=1000)
def _lanes(supervisor: str, host: str, offered: str, apart: bool) -> list[_Lane]:
    """Return the lanes of a supervisor: one, or one a device where those are measured on side by side."""
    ids = [device["id"] for device in json.loads(offered)]
    return [_Lane(supervisor, names_of(host, part)) for part in ([[id] for id in ids] if apart else [ids])]


def _waiting(run: Row[*tuple[Any, ...]], room: _Room, runs_ahead: int, wait_s: float) -> WaitingRun:
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
