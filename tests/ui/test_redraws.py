"""Few pages are drawn at a time; who redraws one again and again while something is measured waits."""

from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import pytest
from streamlit.testing.v1 import AppTest

import gpuexplore
from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.ui import turns
from gpuexplore.ui.turns import (
    FREE_CPU_S,
    MAX_WAIT_S,
    SLOW_PAGE_S,
    TOTAL_CPU_SHARE,
    VISITOR_CPU_SHARE,
    _CpuDebts,
    _PageLimit,
)
from tests.waiting import DEADLINE_S, wait_until

PAGE_S = 0.15


class FakeClock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def debts(clock):
    return _CpuDebts(clock)


def taken_s(debts, clock, visitors, until_s):
    """Return the CPU seconds that visitors take who redraw without end."""
    used_s, due_s = 0.0, dict.fromkeys(range(visitors), 0.0)
    while clock.now_s < until_s:
        for visitor in due_s:
            if due_s[visitor] <= clock.now_s and (wait_s := debts.wait_s(str(visitor))) == 0:
                debts.add(str(visitor), PAGE_S)
                used_s += PAGE_S
                due_s[visitor] = clock.now_s + PAGE_S
            elif due_s[visitor] <= clock.now_s:
                due_s[visitor] = clock.now_s + wait_s
        clock.now_s += 0.05
    return used_s


def test_who_looks_at_a_few_pages_never_waits(debts, clock):
    waits_s = []
    for _ in range(20):
        waits_s.append(debts.wait_s("a reader"))
        debts.add("a reader", PAGE_S)
        clock.now_s += 3.0

    assert set(waits_s) == {0.0}


@pytest.mark.parametrize(("visitors", "share"), [(1, VISITOR_CPU_SHARE), (4, TOTAL_CPU_SHARE), (12, TOTAL_CPU_SHARE)])
def test_who_redraws_without_end_takes_a_share_of_a_core_and_no_more(debts, clock, visitors, share):
    first_s = visitors * (FREE_CPU_S + 2 * PAGE_S)

    assert taken_s(debts, clock, visitors, 60.0) <= 60.0 * share * 1.4 + first_s


def test_a_visitor_beside_those_who_never_stop_does_not_wait(debts, clock):
    taken_s(debts, clock, 8, 30.0)

    assert debts.wait_s("somebody else") == 0.0


def test_nobody_waits_longer_than_some_seconds(debts):
    debts.add("heavy", 100.0)

    assert debts.wait_s("heavy") == MAX_WAIT_S


def test_a_page_is_drawn_where_nobody_can_tell_whether_something_is_measured(monkeypatch):
    def refuse():
        raise StoreUnavailable("its file is away")

    monkeypatch.setattr(turns, "live_supervisor", refuse)

    assert not turns._is_measuring()


class Page:
    """A page that is drawn in a thread of its own until it may end."""

    def __init__(self, few, order):
        self._few, self._order = few, order
        self.begun, self.may_end = Event(), Event()
        self.thread = Thread(target=self._draw)
        self.thread.start()

    def _draw(self):
        with self._few.one():
            self._order.append(self)
            self.begun.set()
            self.may_end.wait(DEADLINE_S)

    def end(self):
        self.may_end.set()
        self.thread.join(DEADLINE_S)


@pytest.fixture
def pages():
    """Return how to begin a page after those before, which end with the test."""
    with ExitStack() as ending:

        def begin(few, order):
            before = len(few._waiting)
            page = Page(few, order)
            ending.callback(page.end)
            wait_until(lambda: page.begun.is_set() or len(few._waiting) > before)
            return page

        yield begin


def test_few_pages_are_drawn_at_a_time_in_the_order_they_came(pages, clock):
    few, order = _PageLimit(2, clock), []
    drawn = [pages(few, order) for _ in range(5)]
    assert order == drawn[:2]

    for ended, following in ((1, 2), (0, 3), (3, 4)):
        drawn[ended].end()
        assert drawn[following].begun.wait(DEADLINE_S)

    assert order == drawn


def test_a_page_that_takes_long_makes_room_for_another_one(pages, clock):
    few, order = _PageLimit(1, clock), []
    slow, other = pages(few, order), pages(few, order)
    assert order == [slow]

    clock.now_s += SLOW_PAGE_S

    assert other.begun.wait(DEADLINE_S)
    assert not slow.may_end.is_set()


def test_a_page_that_fails_makes_room_too(pages, clock):
    few, order = _PageLimit(1, clock), []
    with pytest.raises(ZeroDivisionError), few.one():
        raise ZeroDivisionError

    assert pages(few, order).begun.wait(DEADLINE_S)


def test_a_part_that_is_redrawn_every_few_seconds_has_a_container_which_is_no_part_of_it():
    def script():
        import streamlit as st

        from gpuexplore.ui.shared.later import redrawn

        redrawn(lambda: st.caption("part"), 1.0)()
        st.caption("after")

    place, after = AppTest.from_function(script).run().main.children.values()
    assert after.value == "after"
    (fragment,) = place.children.values()
    assert [part.value for part in fragment.children.values()] == ["part"]


def test_every_part_that_is_redrawn_by_a_timer_has_that_container():
    package = Path(gpuexplore.__file__).parent
    timed = [path.name for path in package.rglob("*.py") if "run_every=" in path.read_text(encoding="utf-8")]
    assert timed == ["later.py"]
