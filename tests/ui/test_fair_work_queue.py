"""Work for pages: one piece at a time, in turns between visitors, and nobody may ask for all of it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.ui import turns
from gpuexplore.ui.turns import _FairWorkQueue
from tests.waiting import DEADLINE_S


class Held:
    """Work that waits until it may go on; notes what was done in which order."""

    def __init__(self):
        self.go, self.begun, self.done = Event(), Event(), []

    def __call__(self):
        self.begun.set()
        assert self.go.wait(DEADLINE_S)

    def named(self, name):
        return lambda: self.done.append(name) or name


@pytest.fixture
def busy():
    """Return a desk whose first piece waits, and that piece."""
    made, held = _FairWorkQueue(), Held()
    made.ask("held", held, "somebody")
    assert held.begun.wait(DEADLINE_S)
    yield made, held
    held.go.set()


def test_visitors_take_turns_however_much_one_of_them_asks_for(busy):
    made, held = busy
    asked = [made.ask(n, held.named(f"A{n}"), "A") for n in range(3)] + [made.ask("b", held.named("B"), "B")]
    places = [made.pieces_ahead(piece) for piece in asked]
    held.go.set()
    for piece in asked:
        piece.done.result(DEADLINE_S)

    assert places == [1, 3, 4, 2]
    assert held.done == ["A0", "B", "A1", "A2"]


def test_who_asks_for_the_same_waits_for_the_same(busy):
    made, held = busy
    first, second = (made.ask("same", held.named("once"), visitor) for visitor in "AB")
    held.go.set()

    assert (first.done.result(DEADLINE_S), second.done.result(DEADLINE_S), held.done) == ("once", "once", ["once"])


def test_what_nobody_waits_for_any_more_is_not_begun(busy):
    made, held = busy
    piece, other = made.ask(1, held.named("gone"), "A"), made.ask(2, held.named("stays"), "A")
    made.leave(1, piece)
    held.go.set()

    assert other.done.result(DEADLINE_S) == "stays"
    assert held.done == ["stays"]


def test_one_visitor_may_not_fill_it_nor_all_together(busy, monkeypatch):
    made, held = busy
    monkeypatch.setattr(turns, "MAX_PIECES", 4)
    for number in range(turns.MAX_PIECES_OF_VISITOR):
        made.ask(number, held.named(number), "A")

    with pytest.raises(InvalidInput, match="3 of your tasks are already queued"):
        made.ask("more", held.named("more"), "A")
    made.ask("b", held.named("b"), "B")
    with pytest.raises(InvalidInput, match="4 tasks are already queued on this server"):
        made.ask("c", held.named("c"), "C")


def test_an_error_is_that_of_all_who_wait_and_the_next_piece_is_done():
    made = _FairWorkQueue()
    piece = made.ask("wrong", lambda: 1 / 0, "A")
    with pytest.raises(ZeroDivisionError):
        piece.done.result(DEADLINE_S)

    assert made.ask("right", lambda: "right", "A").done.result(DEADLINE_S) == "right"


def test_never_are_two_pieces_done_at_once():
    made, at_work, most = _FairWorkQueue(), [], []

    def work():
        at_work.append(1)
        most.append(len(at_work))
        at_work.pop()

    with ThreadPoolExecutor(8) as visitors:
        asked = list(visitors.map(lambda n: made.ask(n, work, str(n)), range(30)))
        for piece in asked:
            piece.done.result(DEADLINE_S)

    assert most == [1] * 30
