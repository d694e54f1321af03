"""The pace at which pages redraw what they show of a run: the more of them there are, the more rarely each.

Drawing takes a core, which may be the one that is being measured. So all pages together may take SHARE of one, and they
redraw one after the other, between two rounds of a measurement.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, RLock
from zlib import crc32

from gpuexplore.core import InvalidInput, once
from gpuexplore.jobs.quiet import Rounds

_REDRAWING = RLock()

SHARE = 0.15  # of a core, for all redraws together
SHORTEST_S = 1.0
MISSED = 2.5  # a page that did not redraw itself for so many intervals is gone
SENDING = 2.0  # times the CPU of the script: the loop that sends what it drew takes as much again
PAGE_S = 0.2  # between two whole pages that are redrawn because their run went on: a quarter of a core
BURST = 3  # so many are redrawn at once


class _Pace:
    """Redrawing pages, and the cost of a redraw; thread-safe."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._lock = Lock()
        self._gone_s: dict[str, float] = {}
        self._cost_s = 0.005  # of the script of a redraw, until some were timed
        self._page_due_s = float("-inf")

    def interval_s(self, page: str, current_s: float | None = None) -> float:
        """Return how often `page` is to redraw itself, and count it among those that do.

        Args:
            page: a name of its own.
            current_s: how often it does. A little less to do does not change that, and pages do not all change at once.
        """
        with self._lock:
            now_s = self._clock()
            self._gone_s = {name: gone_s for name, gone_s in self._gone_s.items() if gone_s > now_s}
            needed_s = len(self._gone_s.keys() | {page}) * SENDING * self._cost_s / SHARE
            # Pages that changed to an interval at once do not redraw at once for ever: each has a factor of its own
            factor = 1 + 0.8 * (crc32(page.encode()) / 2**32 - 0.5)
            steps_s = [SHORTEST_S, *(step_s * factor for step_s in (3.0, 5.0, 10.0, 20.0))]
            fitting_s = next((step_s for step_s in steps_s if step_s >= needed_s), steps_s[-1])
            if current_s is not None:
                is_little_less = fitting_s < current_s and needed_s > fitting_s / 2
                if self._chance() > 0.05 or is_little_less:  # each change redraws a whole page
                    fitting_s = current_s
            self._gone_s[page] = now_s + MISSED * fitting_s
            return fitting_s

    def admits_page(self) -> bool:
        """Return whether a whole page may be redrawn now: a few at once, more of them one after the other."""
        with self._lock:
            now_s = self._clock()
            due_s = max(self._page_due_s, now_s)
            if due_s - now_s >= BURST * PAGE_S:
                return False
            self._page_due_s = due_s + PAGE_S
            return True

    def note(self, cost_s: float) -> None:
        """Note the CPU seconds that the script of a redraw took.

        Their median counts: a few redraws make what all others share, however many there are.
        """
        with self._lock:
            self._cost_s *= 1.02 if cost_s > self._cost_s else 1 / 1.02


PACE = _Pace()


@contextmanager
def in_turn() -> Iterator[None]:
    """Inside, no other page redraws itself, and no round of samples was on when it began; or the wait was too long."""
    has_turn = _REDRAWING.acquire(timeout=0.25)  # a redraw may wait for the database: the others go on then
    try:
        wait_for_samples()
        yield
    finally:
        if has_turn:
            _REDRAWING.release()


def wait_for_samples() -> None:
    """Wait a moment while a round of samples is on."""
    with suppress(InvalidInput, OSError):  # no directory for locks: measuring reports that
        _rounds().wait_for_end()


@once
def _rounds() -> Rounds:
    return Rounds()
