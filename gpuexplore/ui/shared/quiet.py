"""Pages draw between two rounds of a measurement, and redraw one after the other: never on all cores at once."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock

from gpuexplore.errors import InvalidInput
from gpuexplore.jobs.quiet import Rounds
from gpuexplore.once import once

PATIENCE_S = 0.25  # whoever redraws may wait for the database: the others go on then
_REDRAWING = RLock()


@contextmanager
def in_turn() -> Iterator[None]:
    """Inside, no other page redraws itself, and no round of samples was on when it began; or the wait was too long."""
    has_turn = _REDRAWING.acquire(timeout=PATIENCE_S)
    try:
        hold_back()
        yield
    finally:
        if has_turn:
            _REDRAWING.release()


def hold_back() -> None:
    """Wait a moment while a round of samples is on."""
    with suppress(InvalidInput, OSError):  # no directory for locks: whoever measures says so
        _rounds().wait_for_end()


@once
def _rounds() -> Rounds:
    return Rounds()
