"""Work that takes seconds, asked for on pages: one piece at a time, in turns between visitors, each told its place.

Whoever asks for what another one waits for waits for that. What nobody waits for any more is not begun.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any

import streamlit as st

from gpuexplore.errors import InvalidInput
from gpuexplore.ui.identity import owner
from gpuexplore.ui.session import live_supervisor

MOST_OF_ONE = 3  # pieces that wait for one visitor
MOST = 40
MOST_KEPT = 200
SOON_S, LOOK_S = 0.2, 0.5
MEASURING = "A measurement goes on and has the CPU first: this goes on in its pauses"


@dataclass(eq=False)
class _Piece:
    """A piece of work, and for how many pages it is done."""

    work: Callable[[], Any]
    visitor: str
    done: "Future[Any]" = field(default_factory=Future)
    waiting: int = 0
    begun: bool = False


class Desk:
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
                    Thread(target=self._work, name="desk", daemon=True).start()
            piece.waiting += 1
            return piece

    def leave(self, key: Hashable, piece: _Piece) -> None:
        """Note that a page waits no longer."""
        with self._changed:
            piece.waiting -= 1
            if not piece.waiting and not piece.begun and self._pieces.get(key) is piece:
                del self._pieces[key]

    def place(self, piece: _Piece) -> int:
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
        if sum(piece.visitor == visitor for piece in waiting) >= MOST_OF_ONE:
            raise InvalidInput(f"{MOST_OF_ONE} pieces of work of yours wait already: try again when one is done")
        if len(waiting) >= MOST:
            raise InvalidInput(f"{MOST} pieces of work wait already on this server: try again in a minute")

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
                self._forget_old()
            try:
                piece.done.set_result(piece.work())
            except BaseException as error:
                piece.done.set_exception(error)

    def _forget_old(self) -> None:
        done = [key for key, piece in self._pieces.items() if piece.done.done()]
        for key in done[:-MOST_KEPT]:
            del self._pieces[key]
        while len(self._served) > MOST_KEPT:
            self._served.popitem(last=False)


DESK = Desk()


def at_desk(key: Hashable, work: Callable[[], Any], doing: str) -> Any:
    """Return what `work` returns once its turn has come; until then the page says what it waits for.

    Args:
        key: everything that the value depends on; another moment where it is to be made again.
        work: draws nothing, and may take long.
        doing: what it does, in the words of the page.

    Raises:
        InvalidInput: too much waits already.
    """
    piece = DESK.ask(key, work, owner())
    try:
        with st.spinner(f"{doing} …"):
            if not _is_done(piece, SOON_S):
                place = st.empty()
                while not _is_done(piece, LOOK_S):
                    place.caption(f":material/hourglass_top: {_words(piece)}")  # which ends the script of who has gone
                place.empty()
        return piece.done.result()
    finally:
        DESK.leave(key, piece)


def _is_done(piece: _Piece, wait_s: float) -> bool:
    try:
        piece.done.exception(wait_s)
    except TimeoutError:
        return False
    return True


def _words(piece: _Piece) -> str:
    place = DESK.place(piece)
    if place:
        return f"Waiting: number {place + 1} of what this server compiles and interprets, one at a time"
    supervisor = live_supervisor()
    return MEASURING if supervisor and supervisor.state == "measuring" else "At work: a few seconds"
