"""What visitors share is made once, by one of them, and never kept where it failed."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from gpuexplore.ui.shared import Shared, moment, shared_values
from tests.waiting import DEADLINE_S


def test_value_is_made_once_and_by_its_key():
    shared, made = Shared(10), []

    def make(name):
        made.append(name)
        return name * 2

    assert [shared.get(name, lambda name=name: make(name)) for name in "abab"] == ["aa", "bb", "aa", "bb"]
    assert made == ["a", "b"]


def test_whoever_asks_meanwhile_waits_for_the_first_and_gets_the_same_object():
    shared, made, everybody, go = Shared(10), [], Barrier(5), Event()

    def make():
        made.append(1)
        go.wait(DEADLINE_S)
        return object()

    def ask(_):
        everybody.wait(DEADLINE_S)
        return shared.get("key", make)

    with ThreadPoolExecutor(4) as visitors:
        answers = visitors.map(ask, range(4))
        everybody.wait(DEADLINE_S)
        go.set()
        assert len({id(answer) for answer in answers}) == 1
    assert len(made) == 1


def test_another_key_is_not_waited_for():
    shared, asked, go = Shared(10), Event(), Event()

    def slow():
        asked.set()
        return go.wait(DEADLINE_S)

    with ThreadPoolExecutor(1) as visitor:
        first = visitor.submit(shared.get, "slow", slow)
        assert asked.wait(DEADLINE_S)
        assert shared.get("quick", lambda: 2) == 2
        go.set()
        assert first.result(DEADLINE_S)


def test_error_reaches_who_asked_and_is_not_kept():
    shared = Shared(10)

    with pytest.raises(ZeroDivisionError):
        shared.get("key", lambda: 1 // 0)
    assert shared.get("key", lambda: 3) == 3


def test_least_recently_used_values_are_forgotten():
    shared, made = Shared(2), []
    for name in ("a", "b", "a", "c", "a", "b"):
        shared.get(name, lambda name=name: made.append(name))

    assert made == ["a", "b", "c", "b"]


def test_what_changed_is_made_anew():
    shared = Shared(2)
    shared.get("key", lambda: "old")
    shared.forget()

    assert shared.get("key", lambda: "new") == "new"


def test_moment_lasts_as_long_as_asked_for(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("gpuexplore.ui.shared.time.monotonic", lambda: now[0])
    monkeypatch.setattr("gpuexplore.ui.shared.LOOK_S", 0.5)
    first, longer = moment(), moment(10)
    now[0] += 0.4
    assert (moment(), moment(10)) == (first, longer)
    now[0] += 0.2
    assert (moment(), moment(10)) == (first + 1, longer)


def test_values_of_a_function_are_shared_by_its_arguments_until_they_are_looked_up_again(monkeypatch):
    now, made = [100.0], []
    monkeypatch.setattr("gpuexplore.ui.shared.time.monotonic", lambda: now[0])
    monkeypatch.setattr("gpuexplore.ui.shared.LOOK_S", 0.5)

    @shared_values(10, looks=2)
    def doubled(number):
        made.append(number)
        return number * 2

    assert [doubled(number) for number in (1, 2, 1)] == [2, 4, 2]
    now[0] += 1.0
    assert doubled(1) == 2
    assert made == [1, 2, 1]
    doubled.forget()
    assert doubled(1) == 2
    assert made == [1, 2, 1, 1]
