"""The more pages redraw themselves, the more rarely each."""

import pytest

from gpuexplore.ui.shared.pace import BURST, MISSED, PAGE_S, SENDING, SHARE, SHORTEST_S, _Pace


class FakeClock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def pace(clock):
    return _Pace(clock, chance=lambda: 0.0)


def together(pace, count):
    return [pace.interval_s(f"page {number}") for number in range(count)][-1]


def test_few_pages_redraw_each_second(pace):
    assert together(pace, 5) == SHORTEST_S


def test_all_redraws_together_stay_within_the_share_of_a_core(pace):
    for _ in range(400):
        pace.note(0.0075)

    assert together(pace, 20) < together(pace, 100)
    assert 100 * SENDING * 0.0075 / together(pace, 100) == pytest.approx(SHARE, rel=0.5)


def test_cheap_redraws_stay_frequent(pace):
    for _ in range(400):
        pace.note(0.0005)

    assert together(pace, 100) == SHORTEST_S


def test_the_few_redraws_that_make_what_all_share_do_not_slow_the_others_down(pace):
    for number in range(800):
        pace.note(0.1 if number % 10 == 0 else 0.0005)

    assert together(pace, 100) == SHORTEST_S


def test_page_that_was_closed_no_longer_counts(pace, clock):
    crowded_s = together(pace, 100)
    clock.now_s += MISSED * crowded_s * 4

    assert crowded_s > SHORTEST_S
    assert pace.interval_s("the last one") == SHORTEST_S


def test_one_page_more_or_less_changes_nothing_for_the_others(pace, clock):
    crowded_s = together(pace, 18)
    clock.now_s += MISSED * crowded_s * 4

    assert crowded_s > SHORTEST_S
    assert [pace.interval_s(f"page {number}", crowded_s) for number in range(14)][-1] == crowded_s
    assert pace.interval_s("page 0", None) == SHORTEST_S


def test_pages_of_one_interval_do_not_all_redraw_at_once(pace):
    together(pace, 100)

    assert len({pace.interval_s(f"page {number}") for number in range(20)}) == 20


def test_pages_do_not_all_change_at_once(clock):
    chances = iter([0.9, 0.5, 0.01])
    pace = _Pace(clock, chance=lambda: next(chances))
    together(pace, 100)

    shown_s = [pace.interval_s("page 0", SHORTEST_S) for _ in range(3)]
    assert shown_s[:2] == [SHORTEST_S, SHORTEST_S]
    assert shown_s[2] > SHORTEST_S


def test_whole_pages_are_redrawn_a_few_at_once_and_then_one_after_the_other(pace, clock):
    at_once = sum(pace.admits_page() for _ in range(100))
    later = 0
    for _ in range(100):
        clock.now_s += PAGE_S / 10
        later += pace.admits_page()

    assert at_once == BURST
    assert later == pytest.approx(10, abs=1)
