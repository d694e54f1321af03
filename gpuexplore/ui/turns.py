"""Fair shares of the server: work that takes seconds, one piece at a time, and whole pages, a few at a time.

A request for work that is already awaited joins it. Work that is no longer awaited is not begun.

Streamlit draws a page anew with every change of a choice, which takes up to half a second of a core. A visitor owes the
CPU seconds of what was drawn for them, which are forgiven with time; while something is measured, they wait so long.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Event, Lock, Thread
from typing import Any

import streamlit as st

from gpuexplore.core.errors import InvalidInput, StoreUnavailable
from gpuexplore.ui.session import live_supervisor, owner

FREE_CPU_S = 0.6  # CPU seconds that a visitor may owe and not wait
VISITOR_CPU_SHARE = 0.06  # forgiven in a second, so that one who never stops takes no more of a core than this,
TOTAL_CPU_SHARE = 0.2  # and all together no more than this
MAX_WAIT_S = 5.0  # no visitor waits longer
SLOW_PAGE_S = 0.5  # pages that have taken so long are not counted among those that are drawn at a time


class _CpuDebts:
    """CPU time used by each visitor, in seconds; thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._owed: OrderedDict[str, float] = OrderedDict()
        self._as_of_s = clock()

    def wait_s(self, visitor: str) -> float:
        """Return how many seconds a visitor has to wait before a page is drawn for them."""
        with self._lock:
            rate = self._forgive()
            return min(max(self._owed.get(visitor, 0.0) - FREE_CPU_S, 0.0) / rate, MAX_WAIT_S)

    def add(self, visitor: str, cost_s: float) -> None:
        """Note the CPU seconds that drawing a page took."""
        with self._lock:
            self._forgive()
            self._owed[visitor] = self._owed.get(visitor, 0.0) + cost_s
            self._owed.move_to_end(visitor)
            if len(self._owed) > 5000:
                self._owed.popitem(last=False)

    def _forgive(self) -> float:
        """Forgive what time has paid; return how much a second does for each who owes more than is free."""
        now_s = self._clock()
        passed_s = now_s - self._as_of_s
        self._as_of_s = now_s
        many = sum(owed > FREE_CPU_S for owed in self._owed.values())
        rate = min(VISITOR_CPU_SHARE, TOTAL_CPU_SHARE / many) if many else VISITOR_CPU_SHARE
        left = {visitor: owed - rate * passed_s for visitor, owed in self._owed.items()}
        self._owed = OrderedDict((visitor, owed) for visitor, owed in left.items() if owed > 0)
        return rate


class _PageLimit:
    """Pages that are drawn at a time: each thread more keeps those that answer requests from the interpreter for 5 ms.

    A page that takes long, as one that waits for a file to be read, lets another one begin after a while.
    """

    def __init__(self, most: int = 3, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._began_s: dict[object, float] = {}
        self._waiting: deque[Event] = deque()  # each set when its page may begin

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
        """Begin when few enough are drawn; else return the seconds until then, if none ends before."""
        with self._lock:
            now_s = self._clock()
            since_s = sorted(now_s - began_s for began_s in self._began_s.values())
            if len(since_s) >= self._most and since_s[self._most - 1] < SLOW_PAGE_S:
                return SLOW_PAGE_S - since_s[self._most - 1]
            self._began_s[mine] = now_s
            self._waiting.popleft()
            self._wake_next()
            return 0.0

    def _wake_next(self) -> None:
        if self._waiting:
            self._waiting[0].set()


CPU_DEBTS = _CpuDebts()
PAGE_LIMIT = _PageLimit()


@contextmanager
def page_drawn_in_turn() -> Iterator[None]:
    """Inside, a whole page is drawn; while something is measured, who drew much lately waits a moment before."""
    visitor = owner()
    began_s = time.thread_time()
    if _is_measuring():
        _wait(visitor)
    try:
        yield
    finally:
        CPU_DEBTS.add(visitor, time.thread_time() - began_s)


def _is_measuring() -> bool:
    try:
        supervisor = live_supervisor()
    except StoreUnavailable:  # the page says so
        return False
    return supervisor is not None and supervisor.state == "measuring"


def _wait(visitor: str) -> None:
    """Wait, and say so; after a new choice meanwhile the earlier one is not drawn."""
    left_s = CPU_DEBTS.wait_s(visitor)
    if left_s <= 0:
        return
    note = st.empty()
    poll_s = 0.25
    while left_s > 0 and _is_measuring():
        note.caption(":material/hourglass_top: Waiting for CPU time: a measurement has priority")
        time.sleep(min(left_s, poll_s))
        left_s -= poll_s
    note.empty()


MAX_PIECES_OF_VISITOR = 3  # pieces that wait for one visitor
MAX_PIECES = 40
MEASURING = "A measurement is running and has priority: this continues in its pauses"


@dataclass(eq=False)
class _Piece:
    """A piece of work, and for how many pages it is done."""

    work: Callable[[], Any]
    visitor: str
    done: "Future[Any]" = field(default_factory=Future)
    waiting: int = 0
    begun: bool = False


class _FairWorkQueue:
    """The pieces of work of one kind; safe to ask from several threads."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._pieces: OrderedDict[Hashable, _Piece] = OrderedDict()
        self._served: OrderedDict[str, int] = OrderedDict()
        self._count = 0
        self._works = False

    def ask(self, key: Hashable, work: Callable[[], Any], visitor: str) -> _Piece:
        """Let `work` be done, unless it is or was; to be followed by `leave`.

        Raises:
            InvalidInput: too much waits already, of this visitor or of all.
        """
        with self._changed:
            piece = self._pieces.get(key)
            if piece is None:
                self._check(visitor)
                piece = self._pieces[key] = _Piece(work, visitor)
                if not self._works:
                    self._works = True
                    Thread(target=self._work, name="fair work queue", daemon=True).start()
            piece.waiting += 1
            return piece

    def leave(self, key: Hashable, piece: _Piece) -> None:
        """Note that a page waits no longer."""
        with self._changed:
            piece.waiting -= 1
            if not piece.waiting and not piece.begun and self._pieces.get(key) is piece:
                del self._pieces[key]

    def pieces_ahead(self, piece: _Piece) -> int:
        """Return how many pieces are done before this one, that at work among them."""
        with self._changed:
            if piece.begun:
                return 0
            at_work = sum(each.begun and not each.done.done() for each in self._pieces.values())
            return at_work + self._in_order().index(piece) if piece in self._in_order() else 0

    def _in_order(self) -> list[_Piece]:
        """Return what waits: of the visitor who was served longest ago first, then as it came."""
        waiting: list[_Piece] = []
        of_one: dict[str, int] = {}
        ranks = []
        for piece in self._pieces.values():
            if not piece.begun:
                nth = of_one[piece.visitor] = of_one.get(piece.visitor, -1) + 1
                ranks.append((nth, self._served.get(piece.visitor, 0), len(waiting)))
                waiting.append(piece)
        return [waiting[number] for _, _, number in sorted(ranks)]

    def _check(self, visitor: str) -> None:
        waiting = self._in_order()
        if sum(piece.visitor == visitor for piece in waiting) >= MAX_PIECES_OF_VISITOR:
            raise InvalidInput(f"{MAX_PIECES_OF_VISITOR} of your tasks are already queued: try again when one is done")
        if len(waiting) >= MAX_PIECES:
            raise InvalidInput(f"{MAX_PIECES} tasks are already queued on this server: try again in a minute")

    def _work(self) -> None:
        """Do what waits, and end when nothing does."""
        while True:
            with self._changed:
                waiting = self._in_order()
                if not waiting:
                    self._works = False
                    return
                piece = waiting[0]
                piece.begun = True
                self._count += 1
                self._served[piece.visitor] = self._count
                self._served.move_to_end(piece.visitor)
                done = [key for key, old in self._pieces.items() if old.done.done()]
                for key in done[:-200]:
                    del self._pieces[key]
                if len(self._served) > 200:
                    self._served.popitem(last=False)
            try:
                piece.done.set_result(piece.work())
            except BaseException as error:
                piece.done.set_exception(error)


WORK_QUEUE = _FairWorkQueue()


def run_queued(key: Hashable, work: Callable[[], Any], doing: str) -> Any:
    """Return what `work` returns, after the work that is queued before it; meanwhile the page says what it waits for.

    Args:
        key: everything that the value depends on; another moment where it is to be made again.
        work: draws nothing, and may take long.
        doing: what it does, in the words of the page.

    Raises:
        InvalidInput: too much waits already.
    """
    piece = WORK_QUEUE.ask(key, work, owner())
    try:
        with st.spinner(f"{doing} …"):
            if not _is_done(piece, 0.2):
                note = st.empty()
                while not _is_done(piece, 0.5):
                    note.caption(f":material/hourglass_top: {_words(piece)}")  # which ends the script of who has gone
                note.empty()
        return piece.done.result()
    finally:
        WORK_QUEUE.leave(key, piece)


def _is_done(piece: _Piece, wait_s: float) -> bool:
    try:
        piece.done.exception(wait_s)
    except TimeoutError:
        return False
    return True


def _words(piece: _Piece) -> str:
    pieces_ahead = WORK_QUEUE.pieces_ahead(piece)
    if pieces_ahead:
        return f"Waiting: number {pieces_ahead + 1} in this server's work queue"
    supervisor = live_supervisor()
    return MEASURING if supervisor and supervisor.state == "measuring" else "In progress: a few seconds"
