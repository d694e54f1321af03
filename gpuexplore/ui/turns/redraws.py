"""Whole pages while something is measured: who redraws one again and again waits, and the last choice is drawn.

Streamlit draws a page anew with every change of a choice, which takes up to half a second of a core. A visitor owes the
CPU seconds of what was drawn for them, and they are forgiven with time.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

import streamlit as st

from gpuexplore.errors import StoreUnavailable
from gpuexplore.ui.identity import owner
from gpuexplore.ui.session import live_supervisor

FREE_S = 0.6  # CPU seconds that a visitor may owe and not wait
ONE_S = 0.06  # forgiven in a second, so that one who never stops takes no more of a core than this,
ALL_S = 0.2  # and all together no more than this
LONGEST_S = 5.0  # nobody waits longer
MOST = 5000
STEP_S = 0.25
WORDS = ":material/hourglass_top: A measurement has the CPU first: this page is drawn in a moment"


class Debts:
    """What each visitor owes, in CPU seconds; safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, Lock()
        self._owed: OrderedDict[str, float] = OrderedDict()
        self._as_of_s = clock()

    def wait_s(self, visitor: str) -> float:
        """Return how many seconds a visitor has to wait before a page is drawn for them."""
        with self._lock:
            rate = self._forgive()
            return min(max(self._owed.get(visitor, 0.0) - FREE_S, 0.0) / rate, LONGEST_S)

    def add(self, visitor: str, cost_s: float) -> None:
        """Note the CPU seconds that drawing a page took."""
        with self._lock:
            self._forgive()
            self._owed[visitor] = self._owed.get(visitor, 0.0) + cost_s
            self._owed.move_to_end(visitor)
            if len(self._owed) > MOST:
                self._owed.popitem(last=False)

    def _forgive(self) -> float:
        """Forgive what time has paid; return how much a second does for each who owes more than is free."""
        now_s, self._as_of_s, since_s = self._clock(), self._clock(), self._as_of_s
        many = sum(owed > FREE_S for owed in self._owed.values())
        rate = min(ONE_S, ALL_S / many) if many else ONE_S
        left = {visitor: owed - rate * (now_s - since_s) for visitor, owed in self._owed.items()}
        self._owed = OrderedDict((visitor, owed) for visitor, owed in left.items() if owed > 0)
        return rate


DEBTS = Debts()


@contextmanager
def drawn_in_turn() -> Iterator[None]:
    """Inside, a whole page is drawn; while something is measured, whoever drew much lately waits a moment before."""
    visitor, began_s = owner(), time.thread_time()
    if _is_measuring():
        _wait(visitor)
    try:
        yield
    finally:
        DEBTS.add(visitor, time.thread_time() - began_s)


def _is_measuring() -> bool:
    try:
        supervisor = live_supervisor()
    except StoreUnavailable:  # the page says so
        return False
    return supervisor is not None and supervisor.state == "measuring"


def _wait(visitor: str) -> None:
    """Wait, and say so; whoever chooses anew meanwhile is not drawn what they chose before."""
    left_s = DEBTS.wait_s(visitor)
    if left_s <= 0:
        return
    place = st.empty()
    while left_s > 0 and _is_measuring():
        place.caption(WORDS)
        time.sleep(min(left_s, STEP_S))
        left_s -= STEP_S
    place.empty()
