"""Limits how often a costly question is asked."""

import time
from collections.abc import Callable


class Throttled:
    """A question whose answer is reused for `every_s` seconds."""

    def __init__(self, ask: Callable[[], bool], every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._every_s, self._clock = ask, every_s, clock
        self._due_s = clock()
        self._answer = False

    def __call__(self) -> bool:
        """Return the answer, at most `every_s` seconds old."""
        if self._clock() >= self._due_s:
            self._answer = self._ask()
            self._due_s = self._clock() + self._every_s
        return self._answer
