"""The position of a run that waits, and its expected start: by the order of `turns`, for pages and programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Float, Integer, Row, String, and_, bindparam, cast, exists, func, select, tuple_

from gpuexplore.core.model import RunState
from gpuexplore.store.database import Database
from gpuexplore.store.leases import FRESH_S, names_of, reported_within
from gpuexplore.store.tables import DEVICE_HOLDS, RUNS, SUPERVISORS
from gpuexplore.store.turns import (
    COMBINATIONS,
    LEFT_S,
    ORDER,
    QUEUED,
    Restriction,
    RestrictionKind,
    applies,
    free_of,
    head_start_s,
    leaders_among,
    left_s,
    restrictions_now,
)

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
    tuple_(*ORDER) < tuple_(bindparam("turn", type_=Float()), bindparam("number", type_=Integer())),
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
ALIVE = select(*SERVER_COLUMNS).select_from(SERVERS).where(reported_within(FRESH_S))
# Whatever a position needs before it is counted, in one round trip; a row for each of SERVERS, at least one.
POSITION = (
    select(
        *WAITING_COLUMNS,
        *SERVER_COLUMNS,
        select(func.aggregate_strings(COMBINATIONS.subquery().c.devices, ";")).scalar_subquery().label("combinations"),
        exists(select(DEVICE_HOLDS.c.device)).label("any_restricted"),
    )
    .select_from(RUNS.outerjoin(SERVERS, reported_within(FRESH_S)))
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
        restriction: why none of its devices measures it now, where an administrator restricts them.
        of_leader: whether who leads an open room asked for it.
    """

    id: str
    owner: str
    kind: str
    devices: tuple[str, ...]
    position: int
    expected_start_s: float | None
    estimated_s: float
    restriction: str | None = None
    of_leader: bool = False


class Positions(Database):
    """Positions of the runs that wait."""

    def position(self, run_id: str) -> WaitingRun | None:
        """Return the position of a run; None when it does not wait."""
        with self.reading(snapshot=False) as connection:
            rows = connection.execute(POSITION, {"id": run_id}).all()
            if not rows:
                return None
            run = rows[0]
            servers = [row for row in rows if row.supervisor is not None]
            restrictions = _against(run.owner, restrictions_now(connection, self.now()) if run.any_restricted else ())
            combinations = run.combinations.split(";") if run.combinations else ()
            eligibility = _eligibility(run.devices, servers, combinations, restrictions)
            asked = {"competitors": eligibility.competitors, "turn": run.turn_s, "number": run.number}
            ahead = connection.execute(AHEAD, asked).one()
            found = _waiting(run, eligibility, ahead.runs, ahead.wait_s)
            return replace(found, of_leader=head_start_s(connection, run.owner) > 0)

    def waiting(self, limit: int = 100) -> tuple[WaitingRun, ...]:
        """Return the queued runs, the next first, each as `position` returns it."""
        with self.reading() as connection:
            rows = connection.execute(select(*WAITING_COLUMNS).where(QUEUED).order_by(*ORDER).limit(limit)).all()
            servers = connection.execute(ALIVE).all()
            combinations = connection.scalars(COMBINATIONS).all()
            restrictions = restrictions_now(connection, self.now())
            leaders = leaders_among(connection, {row.owner for row in rows})
        reserved = {each.owner for each in restrictions}
        # What decides where a run may be measured: the devices, and the owner where some are reserved for them.
        keys = [(row.devices, row.owner if row.owner in reserved else "") for row in rows]
        eligible = {
            (devices, owner): _eligibility(devices, servers, combinations, _against(owner, restrictions))
            for devices, owner in set(keys)
        }
        found = []
        before = dict.fromkeys(eligible, (0, 0.0))
        for row, key in zip(rows, keys, strict=True):
            found.append(replace(_waiting(row, eligible[key], *before[key]), of_leader=row.owner in leaders))
            for each, (others, others_s) in before.items():
                if row.devices in eligible[each].competitors:
                    before[each] = (others + 1, others_s + row.left_s)
        return tuple(found)

    def queue_length(self) -> int:
        """Return how many runs wait."""
        with self.reading() as connection:
            return connection.scalar(select(func.count()).select_from(RUNS).where(QUEUED)) or 0


@dataclass(frozen=True, slots=True)
class _Eligibility:
    """The lanes on which a run may be measured, and what competes with it for them.

    Attributes:
        lanes: how many there are.
        competitors: what other runs ask for that may be measured on them.
        busy_s: seconds until what is measured on them now ends.
        restriction: why there are none, where an administrator restricts its devices.
    """

    lanes: int
    competitors: frozenset[str]
    busy_s: float
    restriction: str | None = None


def _against(owner: str, restrictions: Sequence[Restriction]) -> Sequence[Restriction]:
    """Return those restrictions that concern the runs of `owner`."""
    return [each for each in restrictions if each.kind is not RestrictionKind.RESERVED or each.owner != owner]


def _eligibility(
    devices: str,
    servers: Sequence[Row[*tuple[Any, ...]]],
    combinations: Iterable[str],
    restrictions: Sequence[Restriction],
) -> _Eligibility:
    """Return on which lanes a run that asks for `devices` may be measured.

    Args:
        devices: the names it asks by, joined by commas.
        servers: rows of SERVERS.
        combinations: of several devices, that runs which wait ask for.
        restrictions: those that concern this run.
    """
    offers = {(row.supervisor, row.host, row.offered, row.side_by_side and "," not in devices) for row in servers}
    serving = [
        (name, lane) for name, *offer in offers for lane in _lanes(*offer) if lane.issuperset(devices.split(","))
    ]
    left = [(name, free_of(lane, restrictions) if restrictions else lane) for name, lane in serving]
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
    why = _why(devices, [lane for _, lane in serving], restrictions) if not lanes else None
    return _Eligibility(len(lanes), competitors, busy_s, why)


def _why(devices: str, serving: Sequence[frozenset[str]], restrictions: Sequence[Restriction]) -> str | None:
    """Return which restrictions keep a run waiting that asks for `devices`; None where none does."""
    names = frozenset().union(*serving)
    found = [each for each in restrictions if any(applies(each, device, names) for device in devices.split(","))]
    return "; ".join(map(str, found)) or None


@lru_cache(maxsize=1000)
def _lanes(host: str, offered: str, apart: bool) -> list[frozenset[str]]:
    """Return the lanes of a supervisor that is alive: devices on which it measures one run at a time.

    By the names that runs ask for; it is one lane, or one a device where those are measured on concurrently.
    """
    ids = [device["id"] for device in json.loads(offered)]
    return [names_of(host, part) for part in ([[id] for id in ids] if apart else [ids])]


def _waiting(run: Row[*tuple[Any, ...]], eligibility: _Eligibility, runs_ahead: int, wait_s: float) -> WaitingRun:
    return WaitingRun(
        id=run.id,
        owner=run.owner,
        kind=run.kind,
        devices=tuple(run.devices.split(",")),
        position=runs_ahead + 1,
        expected_start_s=(eligibility.busy_s + wait_s) / eligibility.lanes if eligibility.lanes else None,
        estimated_s=run.estimated_s,
        restriction=eligibility.restriction,
    )
