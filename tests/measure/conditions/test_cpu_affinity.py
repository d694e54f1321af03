"""The calling thread has a core to itself while samples are taken; afterwards every mask is as it was."""

import os
import threading

import pytest

from gpuexplore.measure.conditions.isolation import TASKS, isolate_core
from tests.waiting import DEADLINE_S

ANYWHERE = {2, 3, 5}
GONE, HELD, POOL, BOUND, ELSEWHERE = 101, 102, 103, 104, 105


class System:
    """Threads with the CPUs each may use; some have ended, some let nobody place them."""

    def __init__(self, own=ANYWHERE):
        self.masks = {
            threading.get_native_id(): set(own),
            GONE: set(ANYWHERE),
            HELD: set(ANYWHERE),
            POOL: set(ANYWHERE),
            BOUND: {2},
            ELSEWHERE: {3, 5},
        }
        self.placed = []
        self.ended = {GONE}

    @property
    def own(self):
        return self.masks[threading.get_native_id()]

    def mask(self, thread):
        if thread in self.ended:
            raise ProcessLookupError
        return set(self.masks[thread or threading.get_native_id()])

    def place(self, thread, mask):
        assert mask, "the system refuses an empty set"
        if thread in self.ended:
            raise ProcessLookupError
        if thread == HELD:
            raise PermissionError
        self.placed.append(thread)
        self.masks[thread or threading.get_native_id()] = set(mask)


@pytest.fixture
def enter(monkeypatch, tmp_path):
    """Return what puts a system in the place of the real one, and returns `isolate_core` of it."""

    def enter(system):
        for thread in system.masks:
            (tmp_path / str(thread)).mkdir()
        monkeypatch.setattr(os, "sched_getaffinity", system.mask, raising=False)
        monkeypatch.setattr(os, "sched_setaffinity", system.place, raising=False)
        return isolate_core(tmp_path)

    return enter


def test_caller_has_the_first_core_to_itself_and_the_others_the_rest(enter):
    system = System()

    with enter(system):
        assert system.own == {2}
        assert system.masks[POOL] == system.masks[ELSEWHERE] == {3, 5}


def test_a_thread_bound_to_the_first_core_stays_there(enter):
    system = System()

    with enter(system):
        assert system.masks[BOUND] == {2}


def test_everybody_may_use_afterwards_what_it_could_before(enter):
    system, before = System(), System().masks

    with enter(system):
        assert system.masks != before

    assert system.masks == before


def test_a_thread_that_was_started_inside_may_use_afterwards_what_its_caller_may(enter, tmp_path):
    """OpenMP starts its threads at a first call: one that stayed on its caller's core made torch 30 times as slow."""
    system, started, placed = System(), 106, 107

    with enter(system):
        for thread, mask in ((started, {2}), (placed, {5})):
            (tmp_path / str(thread)).mkdir()
            system.masks[thread] = mask

    assert system.masks[started] == ANYWHERE
    assert system.masks[placed] == {5}


def test_places_are_given_back_after_an_exception(enter):
    system, before = System(), System().masks

    with pytest.raises(ValueError, match="broken"), enter(system):
        raise ValueError("broken")

    assert POOL in system.placed
    assert system.masks == before


def test_a_thread_that_ended_meanwhile_is_no_error(enter):
    system = System()

    with enter(system):
        system.ended.add(POOL)

    assert system.own == ANYWHERE
    assert system.masks[ELSEWHERE] == {3, 5}


def test_one_core_is_left_alone(enter):
    system = System(own={3})

    with enter(system):
        assert system.placed == []
    assert system.placed == []


def test_a_system_without_a_list_of_threads_is_left_alone(enter, tmp_path):
    system = System()
    enter(system)

    with isolate_core(tmp_path / "nothing"):
        assert system.placed == []
    assert system.placed == []


def test_a_system_that_places_no_threads_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)

    with isolate_core(tmp_path):
        entered = True

    assert entered


@pytest.fixture
def waiting():
    """Return the id of a real thread that does nothing."""
    done, started = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (started.set(), done.wait()))
    thread.start()
    assert started.wait(DEADLINE_S)
    yield thread.native_id
    done.set()
    thread.join()


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or not TASKS.exists() or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores and a system that places threads",
)
def test_real_threads_are_apart_inside_and_as_before_afterwards(waiting):
    own = threading.get_native_id()
    before = {one: os.sched_getaffinity(one) for one in (own, waiting)}

    with isolate_core():
        inside = {one: os.sched_getaffinity(one) for one in (own, waiting)}

    assert inside == {own: {min(before[own])}, waiting: before[waiting] - {min(before[own])}}
    assert {one: os.sched_getaffinity(one) for one in (own, waiting)} == before
