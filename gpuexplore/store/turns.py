"""Whose turn it is, in one order: used by the claim, by the position and by the expected start that are shown.

Runs are ordered by `turn_s`: the device seconds their owner used in the last hour, plus what the owner's runs before
them will take. So whoever used a device least comes first, an owner's own runs keep their order, and a hundred
short runs of one wait behind the first of everybody else. The column is written whenever one of its terms changes;
an index then answers whose turn it is without looking at every run that waits.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, func, or_, select, text, update
from sqlalchemy import case as choose

from gpuexplore.model import RunState
from gpuexplore.store.database import Database, seconds_since_1970, upsert
from gpuexplore.store.leases import is_alive, names_of
from gpuexplore.store.tables import DEVICE_SECONDS, RUNS, SUPERVISORS, WAITS_FOR_SEVERAL

MINUTES = 60  # the window in which device seconds count
QUEUED = RUNS.c.state == RunState.QUEUED
LEFT_S = choose((RUNS.c.estimated_s > RUNS.c.device_s, RUNS.c.estimated_s - RUNS.c.device_s), else_=0.0)
ORDER = (RUNS.c.turn_s, RUNS.c.number)
WAITING_COLUMNS = (*ORDER, RUNS.c.id, RUNS.c.owner, RUNS.c.devices, RUNS.c.estimated_s, LEFT_S.label("left_s"))
# Built once: to build a statement takes longer than most of them run.
LEFT_OF_RUNNING_S = (
    select(func.coalesce(func.sum(LEFT_S), 0.0))
    .where(
        RUNS.c.state == RunState.RUNNING,
        RUNS.c.supervisor.in_(bindparam("able", expanding=True)),
        or_(RUNS.c.devices.in_(bindparam("competitors", expanding=True)), RUNS.c.devices.like("%,%")),
    )
    .scalar_subquery()
)
WAITING_BY_ID = select(*WAITING_COLUMNS).where(RUNS.c.id == bindparam("id"), QUEUED)
AHEAD = select(
    func.count().label("runs"),
    func.coalesce(func.sum(LEFT_S), 0.0).label("wait_s"),
    LEFT_OF_RUNNING_S.label("busy_s"),
).where(
    QUEUED,
    RUNS.c.devices.in_(bindparam("competitors", expanding=True)),
    or_(
        RUNS.c.turn_s < bindparam("turn"),
        and_(RUNS.c.turn_s == bindparam("turn"), RUNS.c.number < bindparam("place")),
    ),
)
ASKED = select(RUNS.c.number).where(QUEUED, RUNS.c.devices.in_(bindparam("claimable", expanding=True))).limit(1)
COMBINATIONS = select(RUNS.c.devices).where(text(WAITS_FOR_SEVERAL)).distinct()
ALIVE = select(SUPERVISORS.c.name, SUPERVISORS.c.host, SUPERVISORS.c.devices, SUPERVISORS.c.side_by_side).where(
    is_alive()
)


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits.

    Attributes:
        id: of the run.
        owner: whose it is.
        devices: what it asks for.
        position: how many runs from now its turn comes, 1 for next, among those that compete for its devices.
        expected_start_s: seconds until then, by the estimates of those before it; None when no supervisor that is
            alive has its devices.
        estimated_s: device seconds it will probably take.
    """

    id: str
    owner: str
    devices: tuple[str, ...]
    position: int
    expected_start_s: float | None
    estimated_s: float


def position(database: Database, run_id: str) -> WaitingRun | None:
    """Return where a run stands; None when it does not wait."""
    with database.reading() as connection:
        found = connection.execute(WAITING_BY_ID, {"id": run_id}).one_or_none()
        if found is None:
            return None
        able = _able(connection.execute(ALIVE).all(), found.devices)
        place = {"competitors": _competitors(connection, found.devices, able), "able": _names(able)}
        ahead = connection.execute(AHEAD, place | {"turn": found.turn_s, "place": found.number}).one()
        return WaitingRun(
            id=found.id,
            owner=found.owner,
            devices=tuple(found.devices.split(",")),
            position=ahead.runs + 1,
            expected_start_s=(ahead.wait_s + ahead.busy_s) / len(able) if able else None,
            estimated_s=found.estimated_s,
        )


def waiting(database: Database, limit: int = 100) -> tuple[WaitingRun, ...]:
    """Return the runs that wait, the next first, each as `position` tells."""
    with database.reading() as connection:
        rows = connection.execute(select(*WAITING_COLUMNS).where(QUEUED).order_by(*ORDER).limit(limit)).all()
        servers = connection.execute(ALIVE).all()
        asked = {row.devices for row in rows}
        able = {devices: _able(servers, devices) for devices in asked}
        busy_s = {devices: _busy_s(connection, devices, able[devices]) for devices in asked}
    found = []
    before = dict.fromkeys(asked, (0, 0.0))
    for row in rows:
        count, wait_s = before[row.devices]
        lanes = len(able[row.devices])
        start_s = (busy_s[row.devices] + wait_s) / lanes if lanes else None
        found.append(WaitingRun(row.id, row.owner, tuple(row.devices.split(",")), count + 1, start_s, row.estimated_s))
        for devices, (others, others_s) in before.items():
            if devices == row.devices or any(lane.serves(row.devices) for lane in able[devices]):
                before[devices] = (others + 1, others_s + row.left_s)
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


def device_seconds(connection: Connection, owner: str) -> float:
    """Return the device seconds an owner used in the last hour."""
    since = int(seconds_since_1970(connection) // 60) - MINUTES
    used = select(func.coalesce(func.sum(DEVICE_SECONDS.c.device_s), 0.0))
    return float(connection.scalar(used.where(DEVICE_SECONDS.c.owner == owner, DEVICE_SECONDS.c.minute > since)) or 0.0)


def book(connection: Connection, owner: str, device_s: float) -> None:
    """Note that a device worked `device_s` seconds for `owner`, whose runs then wait longer."""
    minute = int(seconds_since_1970(connection) // 60)
    upsert(connection, DEVICE_SECONDS, {"owner": owner, "minute": minute, "device_s": device_s}, add=("device_s",))
    order_runs_of(connection, owner)


def order_runs_of(connection: Connection, owner: str) -> None:
    """Write the turns of an owner's waiting runs anew."""
    turn_s = device_seconds(connection, owner)
    active = select(RUNS.c.number, RUNS.c.state, RUNS.c.turn_s, LEFT_S.label("left_s")).where(
        RUNS.c.owner == owner, RUNS.c.state.in_((RunState.RUNNING, RunState.QUEUED))
    )
    # Those that are being measured come first, and count with what is left of them.
    changed = []
    for run in connection.execute(active.order_by(RUNS.c.state == RunState.QUEUED, RUNS.c.number)):
        if run.state is RunState.QUEUED and run.turn_s != turn_s:
            changed.append({"waiting": run.number, "turn": turn_s})
        turn_s += run.left_s
    if changed:
        move = update(RUNS).where(RUNS.c.number == bindparam("waiting")).values(turn_s=bindparam("turn"))
        connection.execute(move, changed)


def order_all(database: Database) -> None:
    """Write all turns anew: what was used more than an hour ago no longer counts."""
    with database.reading() as connection:
        owners = connection.scalars(select(RUNS.c.owner).where(QUEUED).distinct()).all()
    for owner in owners:
        with database.writing() as connection:
            order_runs_of(connection, owner)


def somebody_waits(database: Database, owner: str, device_ids: Collection[str]) -> bool:
    """Return whether a run of somebody else than `owner` waits for one of these devices."""
    with database.reading() as connection:
        devices = claimable(connection, device_ids)
        other = select(RUNS.c.number).where(QUEUED, RUNS.c.devices.in_(devices), RUNS.c.owner != owner)
        return connection.scalar(other.limit(1)) is not None


@dataclass(frozen=True, slots=True)
class _Lane:
    """Devices on which a supervisor that is alive measures one run at a time, by the names that runs ask for."""

    supervisor: str
    device_ids: frozenset[str]

    def serves(self, devices: str) -> bool:
        return self.device_ids.issuperset(devices.split(","))


def _able(supervisors: Iterable[Row[Any, Any, Any, Any]], devices: str) -> list[_Lane]:
    """Return the lanes that serve `devices`: one a supervisor, or one a device where those are side by side."""
    lanes = []
    for row in supervisors:
        ids = [device["id"] for device in row.devices]
        apart = row.side_by_side and "," not in devices
        lanes += [_Lane(row.name, names_of(row.host, part)) for part in ([[id] for id in ids] if apart else [ids])]
    return [lane for lane in lanes if lane.serves(devices)]


def _names(lanes: Iterable[_Lane]) -> list[str]:
    return list({lane.supervisor for lane in lanes})


def _competitors(connection: Connection, devices: str, able: Sequence[_Lane]) -> list[str]:
    """Return what waiting runs may ask for that may be measured where `devices` may be."""
    single = frozenset[str]().union(*(lane.device_ids for lane in able))
    several = [other for other in connection.scalars(COMBINATIONS) if any(lane.serves(other) for lane in able)]
    return [*({devices} | single).difference(several), *several]


def _busy_s(connection: Connection, devices: str, able: Sequence[_Lane]) -> float:
    """Return the device seconds that are left of the runs which are measured where `devices` may be."""
    place = {"competitors": _competitors(connection, devices, able), "able": _names(able)}
    return float(connection.scalar(select(LEFT_OF_RUNNING_S), place) or 0.0)
