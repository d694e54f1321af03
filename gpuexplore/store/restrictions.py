"""Devices that an administrator restricts: in the database, so that every supervisor obeys, after a restart too.

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


class Restrictions(Database):
    """Restrictions of devices."""

    def restrict(self, restriction: Restriction, owner: str) -> None:
        """Restrict a device from now on, in place of what restricted it before.

        Args:
            restriction: how.
            owner: who asks, for the audit log.
        """
        row = {
            "device": restriction.device,
            "kind": restriction.kind.value,
            "reason": restriction.reason,
            "owner": restriction.owner,
            "until_utc": restriction.until_utc,
        }
        actions = {
            RestrictionKind.PAUSED: Action.PAUSED,
            RestrictionKind.DRAINED: Action.DRAINED,
            RestrictionKind.RESERVED: Action.RESERVED,
        }
        with self.writing(durable=True) as connection:
            upsert(connection, DEVICE_HOLDS, row)
            note(connection, self.now(), (actions[restriction.kind], owner, restriction.device))

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
