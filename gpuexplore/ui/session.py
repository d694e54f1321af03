"""The services every page uses, for whoever is asking."""

import time
from dataclasses import replace
from functools import cache

from gpuexplore.devices import discover
from gpuexplore.model import Bandwidth, Device, Peak
from gpuexplore.store import Store, Supervisor, open_store
from gpuexplore.ui.identity import owner

__all__ = ["known_devices", "live_supervisor", "note_visit", "own_bandwidth", "own_peaks", "owner", "store"]

NOTED_S = 60.0  # a visit is written down again after so long
MOST_NOTED = 10_000
_VISITS: dict[str, float] = {}


@cache  # not st.cache_resource: any visitor can clear that
def store() -> Store:
    """Return this process's connection to the store."""
    return open_store()


def live_supervisor() -> Supervisor | None:
    """Return the process that measures, or None when it was not heard of in the last seconds."""
    found = store().supervisor()
    return found if found is not None and found.alive else None


def known_devices() -> tuple[Device, ...]:
    """Return the devices that can be measured: as the supervisors see them, else as far as a look tells.

    Where more than one host measures, each device is named with its host: `lab1/cuda:0`.
    """
    alive = [supervisor for supervisor in store().supervisors() if supervisor.alive and supervisor.devices]
    if not alive:
        return discover()
    several = len({supervisor.host for supervisor in alive}) > 1
    found = {
        named.id: named
        for supervisor in sorted(alive, key=lambda supervisor: supervisor.host)
        for named in (_with_host(supervisor.host, device) if several else device for device in supervisor.devices)
    }
    return tuple(found.values())


def _with_host(host: str, device: Device) -> Device:
    return device if "/" in device.id else replace(device, id=f"{host}/{device.id}")


def note_visit() -> None:
    """Note that the visitor is here: the waiting runs of owners who have gone are dropped after a while."""
    visitor, now_s = owner(), time.monotonic()
    if now_s - _VISITS.get(visitor, -NOTED_S) < NOTED_S:
        return
    if len(_VISITS) >= MOST_NOTED:
        _VISITS.clear()
    _VISITS[visitor] = now_s
    store().see(visitor)


def own_peaks(device: Device) -> tuple[Peak, ...]:
    """Return the peaks this browser's owner entered for a device."""
    return store().own_peaks(owner(), device)


def own_bandwidth(device: Device) -> Bandwidth | None:
    """Return the memory bandwidth this browser's owner entered for a device."""
    return store().own_bandwidth(owner(), device)
