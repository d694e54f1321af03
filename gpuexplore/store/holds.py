"""Devices that an administrator holds back: in the database, so that every supervisor obeys, after a restart too.

On a paused device nothing is measured: what is, stops and waits. On a drained one, what is measured ends, and nothing
new starts. A reserved one measures the runs of one account only, until a moment.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, delete, or_, select

from gpuexplore.store.audit import Action, note
from gpuexplore.store.database import Database, upsert
from gpuexplore.store.tables import DEVICE_HOLDS


class HoldKind(StrEnum):
    """How a device is held back."""

    PAUSED = "paused"
    DRAINED = "drained"
    RESERVED = "reserved"


ACTIONS = {
    HoldKind.PAUSED: Action.PAUSED,
    HoldKind.DRAINED: Action.DRAINED,
    HoldKind.RESERVED: Action.RESERVED,
}


@dataclass(frozen=True, slots=True)
class Hold:
    """A device that is held back.

    Attributes:
        device: as runs ask for it: `cuda:0` on every host, `lab1/cuda:0` on that one.
        kind: how.
        reason: of the administrator; may be empty.
        owner: whose runs a reserved device measures; None otherwise.
        until_utc: when a reservation ends; None otherwise.
    """

    device: str
    kind: HoldKind
    reason: str = ""
    owner: str | None = None
    until_utc: str | None = None

    def __str__(self) -> str:
        until = f" until {self.until_utc[:16].replace('T', ' ')} UTC" if self.until_utc else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{self.device} is {self.kind}{until}{why}"


def hold(database: Database, held: Hold, owner: str) -> None:
    """Hold a device back from now on, in place of what held it before.

    Args:
        database: that its supervisors work with.
        held: how.
        owner: who asks, for the audit log.
    """
    row = {
        "device": held.device,
        "kind": held.kind.value,
        "reason": held.reason,
        "owner": held.owner,
        "until_utc": held.until_utc,
    }
    with database.writing(durable=True) as connection:
        upsert(connection, DEVICE_HOLDS, row)
        note(connection, database.now(), (ACTIONS[held.kind], owner, held.device))


def resume(database: Database, device: str, owner: str) -> bool:
    """Let a device measure again; return whether it was held back."""
    with database.writing(durable=True) as connection:
        was_held = connection.execute(delete(DEVICE_HOLDS).where(DEVICE_HOLDS.c.device == device)).rowcount > 0
        if was_held:
            note(connection, database.now(), (Action.RESUMED, owner, device))
        return was_held


def held_back(database: Database) -> tuple[Hold, ...]:
    """Return what is held back now, by device."""
    with database.reading(snapshot=False) as connection:
        return holds_now(connection, database.now())


def is_paused(database: Database, devices: Iterable[str], names: Collection[str]) -> bool:
    """Return whether what runs on one of `devices` is to stop, of a supervisor that has all of `names`."""
    paused = [held for held in held_back(database) if held.kind is HoldKind.PAUSED]
    return any(applies(held, device, names) for held in paused for device in devices)


def holds_now(connection: Connection, now: str) -> tuple[Hold, ...]:
    """Return what is held back at this moment, by device; reservations end by themselves."""
    lasts = or_(DEVICE_HOLDS.c.until_utc.is_(None), DEVICE_HOLDS.c.until_utc > now)
    rows = connection.execute(select(DEVICE_HOLDS).where(lasts).order_by(DEVICE_HOLDS.c.device))
    return tuple(Hold(row.device, HoldKind(row.kind), row.reason, row.owner, row.until_utc) for row in rows)


def applies(held: Hold, device: str, names: Collection[str]) -> bool:
    """Return whether a device is held back, for a supervisor that has all of `names`, with and without its host.

    A name without a host is that device of every host, and on one host both names are one device.
    """
    if held.device == device:
        return True
    if "/" in held.device:
        return "/" not in device and held.device.endswith(f"/{device}") and held.device in names
    return device.endswith(f"/{held.device}")


def free_of(names: Collection[str], held: Sequence[Hold], owner: str | None = None) -> frozenset[str]:
    """Return those of a supervisor's devices on which runs of `owner` may start; None is anybody else's."""
    against = [each for each in held if each.kind is not HoldKind.RESERVED or each.owner != owner]
    return frozenset(name for name in names if not any(applies(each, name, names) for each in against))
