"""What was measured on each device before: every result is read once, for all visitors and all pages."""

from dataclasses import dataclass
from threading import Lock

from gpuexplore.model import Device, Result
from gpuexplore.ui.session import newest_result, store
from gpuexplore.ui.shared import Shared

MOST_RESULTS = 400  # of the newest runs: as many as a chart can show and a page can read at once


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Results on one device, each with its run's id, newest first; another object as soon as one came."""

    found: tuple[tuple[str, Result], ...] = ()


NOTHING = Measured()


class _Reader:
    """Reads what is measured on one device, everybody's or one owner's; safe to ask from several threads."""

    def __init__(self, device: Device, owner: str | None) -> None:
        self._device, self._owner = device, owner
        self._lock, self._known, self._as_of = Lock(), NOTHING, 0

    def as_of(self, newest: int) -> Measured:
        """Return the results up to the one of number `newest`."""
        with self._lock:
            if newest > self._as_of:
                numbers = range(self._as_of + 1, newest + 1)
                new = store().measured_results(self._device, owner=self._owner, limit=MOST_RESULTS, numbers=numbers)
                if new:
                    self._known = Measured((*new, *self._known.found)[:MOST_RESULTS])
                self._as_of = newest
            return self._known


READERS: Shared[_Reader] = Shared(500)


def measured_results(device: Device, owner: str | None = None) -> Measured:
    """Return the newest results with a measurement on `device`: those of `owner`, or everybody's."""
    return READERS.get((store(), device, owner), lambda: _Reader(device, owner)).as_of(newest_result())
