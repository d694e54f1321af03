"""The order in which runs have their turns: of the claim, and of the positions and expected starts that are shown.

Runs are ordered by `turn_s`: the device seconds their owner used in the last hour, plus what the owner's runs before
them will take. So who used a device least comes first, an owner's own runs keep their order, and a hundred
short runs of one wait behind the first of everyone else. Visitors without an account who come from one network
address count as one among other addresses, and take turns among themselves. Seconds of those in a room of some weight
count that many times less, and so do those of their address: they get that many times as much while others wait too.

The first of an owner's runs, while nothing of it was measured, counts as FIRST_PASS_S earlier, and all runs of who
leads an open room as LEADER_S: so every owner's first pass comes before any second one, and a leader's before those of
others; who used the device that much more waits all the same. A run that several asked for has the earliest of their
turns.

The column is written whenever one of its terms changes; an index then answers whose turn it is without looking at every
run that waits.

Devices that an administrator restricts: in the database, so that every supervisor obeys, after a restart too.

On a paused device nothing is measured: what is, stops and waits. On a drained one, what is measured ends, and nothing
new starts. A reserved one measures the runs of one account only, until a moment.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy import case as choose

from gpuexplore.core.model import RunState
from gpuexplore.store.database import ACCOUNT_PREFIX, Action, Database, note, seconds_since_1970, upsert, utc_now
from gpuexplore.store.tables import (
    DEVICE_HOLDS,
    DEVICE_SECONDS,
    PARTICIPANTS,
    ROOM_LEADERS,
    ROOMS,
    RUN_ASKERS,
    RUNS,
    WAITS_FOR_SEVERAL,
)


class RestrictionKind(StrEnum):
    """Kinds of restriction of a device."""

    PAUSED = "paused"
    DRAINED = "drained"
    RESERVED = "reserved"


@dataclass(frozen=True, slots=True)
class Restriction:
    """A device that an administrator restricts.

    Attributes:
        device: as runs ask for it: `cuda:0` on every host, `lab1/cuda:0` on that one.
        kind: how.
        reason: of the administrator; may be empty.
        owner: whose runs a reserved device measures; None otherwise.
        until_utc: when a reservation ends; None otherwise.
    """

    device: str
    kind: RestrictionKind
    reason: str = ""
    owner: str | None = None
    until_utc: str | None = None

    def __str__(self) -> str:
        until = f" until {self.until_utc[:16].replace('T', ' ')} UTC" if self.until_utc else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.device} is {self.kind}{until}{why}"


def restrictions_now(connection: Connection, now: str) -> tuple[Restriction, ...]:
    """Return what is restricted at this moment, by device; reservations end by themselves."""
    lasts = or_(DEVICE_HOLDS.c.until_utc.is_(None), DEVICE_HOLDS.c.until_utc > now)
    rows = connection.execute(select(DEVICE_HOLDS).where(lasts).order_by(DEVICE_HOLDS.c.device))
    return tuple(
        Restriction(row.device, RestrictionKind(row.kind), row.reason, row.owner, row.until_utc) for row in rows
    )


def applies(restriction: Restriction, device: str, names: Collection[str]) -> bool:
    """Return whether a device is restricted, for a supervisor that has all of `names`, with and without its host.

    A name without a host is that device of every host, and on one host both names are one device.
    """
    if restriction.device == device:
        return True
    if "/" in restriction.device:
        return "/" not in device and restriction.device.endswith(f"/{device}") and restriction.device in names
    return device.endswith(f"/{restriction.device}")


def free_of(names: Collection[str], restrictions: Sequence[Restriction], owner: str | None = None) -> frozenset[str]:
    """Return those of a supervisor's devices on which runs of `owner` may start; None is those of others."""
    against = [each for each in restrictions if each.kind is not RestrictionKind.RESERVED or each.owner != owner]
    return frozenset(name for name in names if not any(applies(each, name, names) for each in against))


MINUTES = 60  # the window in which device seconds count
FIRST_PASS_S = 60.0  # of device time by which who has seen nothing yet may have used more than who has
LEADER_S = 600.0  # the same of who leads an open room, over everyone else
QUEUED = RUNS.c.state == RunState.QUEUED
IS_ACTIVE = RUNS.c.state.in_((RunState.RUNNING, RunState.QUEUED))


def left_s(runs: FromClause) -> ColumnElement[float]:
    """Return the device seconds that are probably left of each of `runs`."""
    left = runs.c.estimated_s - runs.c.device_s
    return choose((left > 0.0, left), else_=0.0)


LEFT_S = left_s(RUNS)
ORDER = (RUNS.c.turn_s, RUNS.c.number)
# Built once: to build a statement takes longer than most of them run.
ASKED = select(RUNS.c.number).where(QUEUED, RUNS.c.devices.in_(bindparam("claimable", expanding=True))).limit(1)
COMBINATIONS = select(RUNS.c.devices).where(text(WAITS_FOR_SEVERAL)).distinct()


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


def _device_seconds(connection: Connection, owner: str) -> float:
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
    return _device_seconds(connection, owner) + float(connection.scalar(active) or 0.0)


def _group_of(owner: str, address: str | None) -> str | None:
    """Return the group that an owner shares turns with: all visitors without an account of one address do.

    Cookies are free, and addresses are not. None: no group; where the address is unknown, or the owner has an account.
    No cookie has a colon, so that no browser can call itself an address.
    """
    return None if address is None or owner.startswith(ACCOUNT_PREFIX) else f"address:{address}"


def book(connection: Connection, owner: str, device_s: float, *, address: str | None = None) -> None:
    """Note that a device worked `device_s` seconds for `owner`, whose runs then wait longer.

    So do those of others that came from the same `address`.
    """
    minute = int(seconds_since_1970(connection) // 60)
    for name in filter(None, (owner, _group_of(owner, address))):
        upsert(connection, DEVICE_SECONDS, {"owner": name, "minute": minute, "device_s": device_s}, add=("device_s",))
    order_runs_of(connection, owner)


def order_runs_of(connection: Connection, owner: str) -> None:
    """Write the turns of an owner's waiting runs anew, and of those of others from the same addresses."""
    own = _active(connection, RUNS.c.owner == owner)
    addresses = {run.address for run in own if _group_of(owner, run.address)}
    neighbours = _active(connection, RUNS.c.address.in_(addresses)) if addresses else []
    others = {run.owner for run in neighbours} - {owner}
    runs = own + (_active(connection, RUNS.c.owner.in_(others)) if others else [])
    groups = {run.number: _group_of(run.owner, run.address) for run in runs}
    used = _used(connection, {run.owner for run in runs} | set(filter(None, groups.values())))
    now = utc_now().isoformat(timespec="microseconds")
    weighed = select(PARTICIPANTS.c.owner, func.max(ROOMS.c.weight)).join(ROOMS, ROOMS.c.number == PARTICIPANTS.c.room)
    weighed = weighed.where(
        PARTICIPANTS.c.owner.in_({run.owner for run in runs}),
        PARTICIPANTS.c.removed_utc.is_(None),
        ROOMS.c.weight > 1,
        ROOMS.c.closed_utc.is_(None),
        ROOMS.c.ends_utc > now,
    )
    found = {owner: float(weight) for owner, weight in connection.execute(weighed.group_by(PARTICIPANTS.c.owner))}
    for run in runs if found else ():
        group = groups[run.number]
        if group is not None and run.owner in found:
            found[group] = max(found[run.owner], found.get(group, 1.0))
    weights = found
    rewritten = [run for run in runs if run.owner == owner or run.address in addresses]
    turns = _turns_of(runs, {run.number: groups[run.number] for run in rewritten}, used, weights=weights)
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
    runs: Sequence[Row[Any]],
    groups: Mapping[int, str | None],
    used: Mapping[str, float],
    *,
    weights: Mapping[str, float],
) -> dict[int, float]:
    """Return the turn of each run: the later one of its owner's and its group's, in which owners take turns."""
    used = {whose: used_s / weights.get(whose, 1.0) for whose, used_s in used.items()}
    turns = _in_turns([(run.number, run.owner, run.left_s / weights.get(run.owner, 1.0)) for run in runs], used)
    for group in set(filter(None, groups.values())):
        theirs = sorted(
            (run for run in runs if groups.get(run.number) == group),
            key=lambda run: (run.state is RunState.QUEUED, turns[run.number], run.number),
        )
        of_group = _in_turns([(run.number, group, run.left_s / weights.get(group, 1.0)) for run in theirs], used)
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
    due = dict[int, float]()
    begun = set[str]()
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
    before = dict(used)
    turns = {}
    for number, whose, run_s in runs:
        turns[number] = before.get(whose, 0.0)
        before[whose] = turns[number] + run_s
    return turns


class Turns(Database):
    """The order of the queue, and the devices that are restricted."""

    def order_all(self) -> None:
        """Write all turns anew: what was used more than an hour ago no longer counts."""
        with self.reading() as connection:
            owners = connection.scalars(select(RUNS.c.owner).where(QUEUED).distinct()).all()
        for owner in owners:
            with self.writing() as connection:
                order_runs_of(connection, owner)

    def another_owner_waits(self, owner: str, device_ids: Collection[str]) -> bool:
        """Return whether a run of another owner waits for one of these devices, but those that are restricted.

        A leader need not let it go first.
        """
        with self.reading() as connection:
            devices = claimable(connection, device_ids)
            if devices and (restrictions := restrictions_now(connection, self.now())):
                devices = claimable(connection, free_of(device_ids, restrictions))
            other = select(RUNS.c.number).where(QUEUED, RUNS.c.devices.in_(devices), RUNS.c.owner != owner)
            if start_s := head_start_s(connection, owner):
                other = other.where(RUNS.c.turn_s < _device_seconds(connection, owner) - start_s)
            return connection.scalar(other.limit(1)) is not None

    def first_pass_waits(self, owner: str, device_ids: Collection[str]) -> bool:
        """Return whether a run of another owner, of which nothing was measured, goes before what `owner` has begun."""
        with self.reading() as connection:
            devices = claimable(connection, device_ids)
            new = select(RUNS.c.number).where(
                QUEUED, RUNS.c.devices.in_(devices), RUNS.c.owner != owner, RUNS.c.attempt == 0
            )
            due_s = _device_seconds(connection, owner) - head_start_s(connection, owner)
            return connection.scalar(new.where(RUNS.c.turn_s < due_s).limit(1)) is not None

    def restrict(self, restriction: Restriction, owner: str) -> None:
        """Restrict a device from now on, in place of what restricted it before.

        Args:
            restriction: how.
            owner: who asks, for the audit log.
        """
        with self.writing(durable=True) as connection:
            upsert(connection, DEVICE_HOLDS, {**asdict(restriction), "kind": restriction.kind.value})
            note(connection, self.now(), (Action[restriction.kind.name], owner, restriction.device))

    def resume(self, device: str, owner: str) -> bool:
        """Let a device measure again; return whether it was restricted."""
        with self.writing(durable=True) as connection:
            was_restricted = (
                connection.execute(delete(DEVICE_HOLDS).where(DEVICE_HOLDS.c.device == device)).rowcount > 0
            )
            if was_restricted:
                note(connection, self.now(), (Action.RESUMED, owner, device))
            return was_restricted

    def current_restrictions(self) -> tuple[Restriction, ...]:
        """Return what is restricted now, by device."""
        with self.reading(snapshot=False) as connection:
            return restrictions_now(connection, self.now())

    def is_paused(self, devices: Iterable[str], names: Collection[str]) -> bool:
        """Return whether what runs on one of `devices` is to stop, of a supervisor that has all of `names`."""
        paused = [each for each in self.current_restrictions() if each.kind is RestrictionKind.PAUSED]
        return any(applies(each, device, names) for each in paused for device in devices)
