"""Earlier results of each device: every result is read once, for all visitors and all pages."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from gpuexplore.core.model import Device, Result
from gpuexplore.store import Store
from gpuexplore.ui.session import newest_result, store
from gpuexplore.ui.shared import shared_values

MOST_RESULTS = 400  # of the newest runs: as many as a chart can show and a page can read at once


@dataclass(frozen=True, slots=True, eq=False)
class DeviceResults:
    """Results on one device, each with its run's id, newest first; another object as soon as one came."""

    found: tuple[tuple[str, Result], ...] = ()


NOTHING = DeviceResults()


@shared_values(500)
def _reader(store: Store, device: Device, owner: str | None) -> Callable[[int], DeviceResults]:
    """Return what reads the results on one device, of all owners or one, up to the one of a number.

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
                new = store.measured_results(device, owner=owner, limit=MOST_RESULTS, numbers=numbers)
                if new:
                    known = DeviceResults((*new, *known.found)[:MOST_RESULTS])
                read_to = newest
            return known

    return up_to


def measured_results(device: Device, owner: str | None = None) -> DeviceResults:
    """Return the newest results with a measurement on `device`: those of `owner`, or all."""
    return _reader(store(), device, owner)(newest_result())
