"""Leases: who measures, on what, and when it was last heard of, by the database's own clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, delete, select

from gpuexplore.errors import StoreUnavailable
from gpuexplore.model import Device
from gpuexplore.serialization import decode, encode
from gpuexplore.store.database import Database, epoch_s, upsert
from gpuexplore.store.tables import SUPERVISORS

SupervisorState = Literal["warming", "ready", "measuring"]
FRESH_S = 5.0  # five beats: who reported itself since is alive
LEASE_S = 30.0  # a run of who is silent for longer may be taken over
FORGOTTEN_S = 3600.0


@dataclass(frozen=True, slots=True)
class Instance:
    """One supervisor process.

    Attributes:
        name: unique: no other process, before or after, has it.
        host: of the machine, as its devices are named by.
        scope: processes with the same share the locks of one operating system.
        side_by_side: whether each of its devices is measured on by itself; otherwise all in turns.
    """

    name: str
    host: str
    scope: str
    pid: int
    version: str
    side_by_side: bool = False


@dataclass(frozen=True, slots=True)
class Supervisor:
    """A process that measures, as it last reported itself; `age_s` is the seconds since then."""

    name: str
    host: str
    pid: int
    version: str
    state: SupervisorState
    devices: tuple[Device, ...]
    age_s: float

    @property
    def alive(self) -> bool:
        """Whether it reported itself in the last seconds."""
        return abs(self.age_s) < FRESH_S

    @property
    def device_ids(self) -> frozenset[str]:
        """The names by which runs ask for its devices: `cuda:0` on any host, `lab1/cuda:0` on this one."""
        return names_of(self.host, (device.id for device in self.devices))


def heartbeat(database: Database, instance: Instance, *, state: SupervisorState, devices: Sequence[Device]) -> None:
    """Renew the lease of `instance`."""
    row = {
        "name": instance.name,
        "host": instance.host,
        "scope": instance.scope,
        "pid": instance.pid,
        "version": instance.version,
        "side_by_side": instance.side_by_side,
        "state": state,
        "devices": encode(devices),
        "beat_epoch_s": epoch_s(),
    }
    with database.writing() as connection:
        upsert(connection, SUPERVISORS, row)


def end_lease(database: Database, instance: Instance) -> None:
    """Forget `instance`, which ends in good order, and whoever has been silent for an hour."""
    silent = epoch_s() - SUPERVISORS.c.beat_epoch_s > FORGOTTEN_S
    with database.writing() as connection:
        connection.execute(delete(SUPERVISORS).where((SUPERVISORS.c.name == instance.name) | silent))


def supervisors(database: Database) -> tuple[Supervisor, ...]:
    """Return the supervisors heard of within a lease, the one heard of last first."""
    with database.reading() as connection:
        return leased(connection)


def supervisor(database: Database) -> Supervisor | None:
    """Return the supervisor heard of last; None when there is none within a lease."""
    return next(iter(supervisors(database)), None)


def ready(database: Database) -> None:
    """Return when runs that are submitted now will be measured.

    Raises:
        StoreUnavailable: the database cannot be read or written, or no supervisor is alive; says which.
    """
    is_alive = any(supervisor.alive for supervisor in supervisors(database))
    database.check(writing=not is_alive)  # a supervisor that cannot write is silent, too
    if not is_alive:
        raise StoreUnavailable(f"No supervisor has reported itself in the last {FRESH_S:g} seconds")


def leased(connection: Connection) -> tuple[Supervisor, ...]:
    """Return the supervisors heard of within a lease, the one heard of last first."""
    age_s = (epoch_s() - SUPERVISORS.c.beat_epoch_s).label("age_s")
    rows = connection.execute(select(SUPERVISORS, age_s).where(is_leased()).order_by(age_s))
    return tuple(
        Supervisor(
            name=row.name,
            host=row.host,
            pid=row.pid,
            version=row.version,
            state=row.state,
            devices=tuple(decode(Device, device) for device in row.devices),
            age_s=row.age_s,
        )
        for row in rows
    )


def names_of(host: str, device_ids: Iterable[str]) -> frozenset[str]:
    """Return the names by which runs ask for the devices of a host: `cuda:0` on any host, `lab1/cuda:0` on this one."""
    ids = frozenset(device_ids)
    return ids | {f"{host}/{device_id}" for device_id in ids}


def is_leased() -> ColumnElement[bool]:
    """Return the condition that a supervisor was heard of within a lease, on whichever side of now."""
    return _heard_of_within(LEASE_S)


def is_alive() -> ColumnElement[bool]:
    """Return the condition that a supervisor was heard of in the last seconds, on whichever side of now."""
    return _heard_of_within(FRESH_S)


def _heard_of_within(seconds: float) -> ColumnElement[bool]:
    return epoch_s().between(SUPERVISORS.c.beat_epoch_s - seconds, SUPERVISORS.c.beat_epoch_s + seconds)
