"""Who redraws a page again and again while something is measured waits; nobody else does."""

import pytest

from gpuexplore.errors import StoreUnavailable
from gpuexplore.ui.turns import redraws
from gpuexplore.ui.turns.redraws import ALL_S, FREE_S, LONGEST_S, ONE_S, Debts

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
    return Debts(clock)


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


@pytest.mark.parametrize(("visitors", "share"), [(1, ONE_S), (4, ALL_S), (12, ALL_S)])
def test_who_redraws_without_end_takes_a_share_of_a_core_and_no_more(debts, clock, visitors, share):
    first_s = visitors * (FREE_S + 2 * PAGE_S)

    assert taken_s(debts, clock, visitors, 60.0) <= 60.0 * share * 1.4 + first_s


def test_a_visitor_beside_those_who_never_stop_does_not_wait(debts, clock):
    taken_s(debts, clock, 8, 30.0)

    assert debts.wait_s("somebody else") == 0.0


def test_nobody_waits_longer_than_some_seconds(debts):
    debts.add("heavy", 100.0)

    assert debts.wait_s("heavy") == LONGEST_S


def test_a_page_is_drawn_where_nobody_can_tell_whether_something_is_measured(monkeypatch):
    def refuse():
        raise StoreUnavailable("its file is away")

    monkeypatch.setattr(redraws, "live_supervisor", refuse)

    assert not redraws._is_measuring()
