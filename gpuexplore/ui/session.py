"""The services every page uses, for its visitor."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, Lock

import streamlit as st

from gpuexplore.analysis.model import CustomPeaks
from gpuexplore.core import Device, InvalidInput, Result, StoreUnavailable, once
from gpuexplore.hardware import discover
from gpuexplore.store import Store, Supervisor, open_store
from gpuexplore.ui.identity import owner
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import shared_values

__all__ = [
    "MOST_RESULTS",
    "NOTHING",
    "PAGE_ERRORS",
    "SUPERVISOR_DUE",
    "DeviceResults",
    "draw_once_back",
    "draw_once_writable",
    "is_silent",
    "known_devices",
    "live_supervisor",
    "measured_results",
    "newest_result",
    "note_visit",
    "own_peaks",
    "owner",
    "store",
    "stored_peaks",
    "why_silent",
]

MOST_RESULTS = 400  # of the newest runs: as many as a chart can show and a page can read at once
SUPERVISOR_DUE = Event()  # set once the start page is drawn, or another one or readiness is asked for
RETRY_S = 2.0  # a page without a database looks for it again
_VISITS: dict[str, float] = {}
PAGE_ERRORS: list[str] = []  # references of unexpected errors since the server started
_TROUBLES: list[tuple[float, StoreUnavailable]] = []  # the last one, and until when it is taken to last


@once  # not st.cache_resource: any visitor can clear that
def store() -> Store:
    """Return this process's connection to the store.

    Raises:
        StoreUnavailable: there is no directory for it that can be written.
    """
    try:
        return open_store()
    except InvalidInput as error:  # not a visitor's: pages that need none are drawn all the same
        raise StoreUnavailable(str(error)) from error


def live_supervisor() -> Supervisor | None:
    """Return the process that measures, or None when it was not heard of in the last seconds."""
    return next((supervisor for supervisor in _supervisors() if supervisor.alive), None)


def is_silent() -> bool:
    """Return whether there was a process that measures, and it was not heard of in the last seconds."""
    return bool(_supervisors()) and live_supervisor() is None


def why_silent() -> StoreUnavailable | None:
    """Return why the process that measures cannot report itself: the database; None where that is not the reason."""
    return _trouble_with(lambda: store().check())


def _trouble_with(attempt: Callable[[], None]) -> StoreUnavailable | None:
    """Return why an attempt to write fails, as it did a moment ago for all: each waits for a lock for a while."""
    for until_s, error in _TROUBLES:
        if time.monotonic() < until_s:
            return error
    _TROUBLES.clear()
    try:
        attempt()
    except StoreUnavailable as error:
        _TROUBLES[:] = [(time.monotonic() + 3.0, error)]
        return error
    return None


def known_devices() -> tuple[Device, ...]:
    """Return the devices that can be measured: as the supervisors see them, else as this process finds them.

    Where more than one host measures, each device is named with its host: `lab1/cuda:0`.
    """
    alive = [supervisor for supervisor in _supervisors() if supervisor.alive and supervisor.devices]
    if not alive:
        return _devices_here()
    several = len({supervisor.host for supervisor in alive}) > 1
    found = {
        named.id: named
        for supervisor in sorted(alive, key=lambda supervisor: supervisor.host)
        for named in (
            replace(device, id=f"{supervisor.host}/{device.id}") if several and "/" not in device.id else device
            for device in supervisor.devices
        )
    }
    return tuple(found.values())


@shared_values(1, looks=1)
def _devices_here() -> tuple[Device, ...]:
    return discover()


@shared_values(1, looks=1)
def _supervisors() -> tuple[Supervisor, ...]:
    """Return those heard of, the one heard of last first."""
    return store().supervisors()


def note_visit() -> StoreUnavailable | None:
    """Note that the visitor is here: the waiting runs of owners who have gone are dropped after a while.

    Returns why nothing can be written now, None where it can: reading may do all the same.
    """
    visitor = owner()
    now_s = time.monotonic()
    if now_s < _VISITS.get(visitor, 0.0) + 60.0:  # it is written down once a minute
        return None
    if len(_VISITS) >= 10_000:
        _VISITS.clear()
    trouble = _trouble_with(lambda: store().see(visitor))
    if trouble is None:
        _VISITS[visitor] = now_s
    return trouble


def draw_once_back(failed_s: float) -> None:
    """Draw the whole page again after a while, once the database can be read; where it is away, nothing.

    Args:
        failed_s: when the page could not be drawn, by the monotonic clock: what is damaged is read in part, again and
            again.
    """
    with suppress(StoreUnavailable):
        if time.monotonic() - failed_s >= RETRY_S:
            _supervisors()
            st.rerun()


def draw_once_writable() -> None:
    """Draw the whole page as soon as the database can be written to again; until then say why it cannot."""
    problem = note_visit()
    if problem is None:
        st.rerun()
    st.warning(plain(str(problem)), icon=":material/lock:")


@shared_values(1, looks=1)
def newest_result() -> int:
    """Return a number that grows with every result: what is known of devices follows from it."""
    return store().newest_result()


def own_peaks(device: Device) -> CustomPeaks:
    """Return the peaks this browser's owner entered for a device."""
    return stored_peaks(owner(), device)


@shared_values(1000, looks=10)
def stored_peaks(name: str, device: Device) -> CustomPeaks:
    """Return the peaks that an owner entered for a device."""
    return CustomPeaks(store().own_peaks(name, device), store().own_bandwidth(name, device))


@dataclass(frozen=True, slots=True, eq=False)
class DeviceResults:
    """Results on one device, each with its run's id, newest first; another object as soon as one came."""

    found: tuple[tuple[str, Result], ...] = ()


NOTHING = DeviceResults()


@shared_values(500)
def _reader(database: Store, device: Device, whose: str | None) -> Callable[[int], DeviceResults]:
    """Return a function that reads the results on one device, of all owners or one, up to the one of a number.

    It is safe to ask from several threads.
    """
    lock = Lock()
    known = NOTHING
    read_to = 0

    def up_to(newest: int) -> DeviceResults:
        nonlocal known, read_to
        with lock:
            if newest > read_to:
                numbers = range(read_to + 1, newest + 1)
                new = database.measured_results(device, owner=whose, limit=MOST_RESULTS, numbers=numbers)
                if new:
                    known = DeviceResults((*new, *known.found)[:MOST_RESULTS])
                read_to = newest
            return known

    return up_to


def measured_results(device: Device, whose: str | None = None) -> DeviceResults:
    """Return the newest results with a measurement on `device`: those of an owner, or all."""
    return _reader(store(), device, whose)(newest_result())
