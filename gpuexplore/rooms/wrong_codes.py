"""Rate limit of wrong room codes by network address, which spares those who come to a room that others there are in."""

import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from gpuexplore.errors import InvalidInput
from gpuexplore.units import format_whole_seconds

HERE = "this machine"  # in place of an address where none is known
WITHIN_S = 600.0
MOST_OF_ONE = 60  # wrong codes from one address: a class behind one mistypes, a program tries
MOST_OF_ALL = 600  # from all together; above it, MOST_WHEN_TRIED
MOST_WHEN_TRIED = 3  # so that somebody who tries from many addresses keeps no class out
MOST_KNOWN = 10_000  # addresses: the one heard of first is forgotten


class WrongCodes:
    """How many wrong codes came from where in the last ten minutes; safe to use from several threads.

    Of 7.5 million codes, 600 in ten minutes find a room that is open for eight hours with a chance of 0.4 %.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._all: deque[float] = deque()
        self._of: dict[str, deque[float]] = {}
        self._entered: dict[tuple[str, str], None] = {}

    def note_entered(self, whence: str, code: str) -> None:
        """Exempt the room with this code at this address: the rest of a class behind it is let in."""
        with self._lock:
            self._entered[whence, code] = None
            if len(self._entered) > MOST_KNOWN:
                del self._entered[next(iter(self._entered))]

    def check(self, whence: str, code: str) -> None:
        """Return where this code may be tried from there.

        Raises:
            InvalidInput: too many were wrong; says when the next may be tried.
        """
        with self._lock:
            if (whence, code) in self._entered:
                return
            tries = self._of.get(whence, deque())
            self._forget(tries)
            self._forget(self._all)
            most = MOST_OF_ONE if len(self._all) < MOST_OF_ALL else MOST_WHEN_TRIED
            if len(tries) >= most:
                wait_s = tries[-most] + WITHIN_S - self._clock()
                raise InvalidInput(
                    f"{len(tries)} wrong room codes came from your network address in the last ten minutes: "
                    f"try again in {format_whole_seconds(wait_s)}"
                )

    def note(self, whence: str) -> None:
        """Count a wrong code that came from there."""
        with self._lock:
            if whence not in self._of and len(self._of) >= MOST_KNOWN:
                self._of.pop(next(iter(self._of)))
            for tries in (self._of.setdefault(whence, deque()), self._all):
                tries.append(self._clock())

    def _forget(self, tries: deque[float]) -> None:
        while tries and tries[0] <= self._clock() - WITHIN_S:
            tries.popleft()


WRONG_CODES = WrongCodes()  # of this process
