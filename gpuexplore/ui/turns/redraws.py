"""Whole pages: a few are drawn at a time; while something is measured, who redraws one again and again waits.

Streamlit draws a page anew with every change of a choice, which takes up to half a second of a core. A visitor owes the
CPU seconds of what was drawn for them, and they are forgiven with time.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock

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
MOST_DRAWN = 3  # pages at a time,
HOLD_S = 0.5  # without those that have taken so long
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


class FewAtOnce:
    """Pages that are drawn at a time: each thread more keeps those that answer requests from the interpreter for 5 ms.

    A page that takes long, as one that waits for a file to be read, makes room for another one after a while.
    """

    def __init__(self, most: int = MOST_DRAWN, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock, self._lock = most, clock, Lock()
        self._began_s: dict[object, float] = {}
        self._waiting: deque[Event] = deque()  # each set when it may be its turn

    @contextmanager
    def one(self) -> Iterator[None]:
        """Inside, a page is drawn; those that came before are drawn first."""
        mine = Event()
        with self._lock:
            self._waiting.append(mine)
            is_next = self._waiting[0] is mine
        wait_s = self._begin(mine) if is_next else None
        while wait_s != 0.0:
            mine.wait(wait_s)
            mine.clear()
            wait_s = self._begin(mine)
        try:
            yield
        finally:
            with self._lock:
                del self._began_s[mine]
                self._wake_next()

    def _begin(self, mine: Event) -> float:
        """Begin when there is room; else return the seconds until there is, if none ends before."""
        with self._lock:
            now_s = self._clock()
            since_s = sorted(now_s - began_s for began_s in self._began_s.values())
            if len(since_s) >= self._most and since_s[self._most - 1] < HOLD_S:
                return HOLD_S - since_s[self._most - 1]
            self._began_s[mine] = now_s
            self._waiting.popleft()
            self._wake_next()
            return 0.0

    def _wake_next(self) -> None:
        if self._waiting:
            self._waiting[0].set()


DEBTS, FEW = Debts(), FewAtOnce()


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
