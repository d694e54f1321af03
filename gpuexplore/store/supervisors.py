"""Heartbeats: who measures, on what, and when it was last heard of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import insert, select, update

from gpuexplore.model import Device
from gpuexplore.serialization import decode, encode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import SUPERVISORS

SupervisorState = Literal["warming", "ready", "measuring"]


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The process that measures, as it last reported itself; `age_s` is the seconds since then."""

    name: str
    pid: int
    state: SupervisorState
    devices: tuple[Device, ...]
    age_s: float


def heartbeat(database: Database, name: str, pid: int, *, state: SupervisorState, devices: Sequence[Device]) -> None:
    """Report that supervisor `name` is alive."""
    beat = {"pid": pid, "state": state, "devices": encode(devices), "beat_utc": database.now()}
    with database.writing() as connection:
        if connection.execute(update(SUPERVISORS).where(SUPERVISORS.c.name == name).values(**beat)).rowcount == 0:
            connection.execute(insert(SUPERVISORS).values(name=name, **beat))


def supervisor(database: Database) -> Supervisor | None:
    """Return the supervisor heard of last; None when there never was one."""
    with database.reading() as connection:
        row = connection.execute(select(SUPERVISORS).order_by(SUPERVISORS.c.beat_utc.desc()).limit(1)).one_or_none()
    if row is None:
        return None
    devices = tuple(decode(Device, device) for device in row.devices)
    return Supervisor(row.name, row.pid, row.state, devices, database.age_s(row.beat_utc))
