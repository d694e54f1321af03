"""What the web server readies before somebody asks for a page."""

import asyncio
import gc
import os
import sys
import threading
from importlib import import_module
from types import SimpleNamespace

import pytest

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.ui.server import api
from tests.waiting import DEADLINE_S

lifespan = import_module("gpuexplore.ui.server.lifespan")  # its package calls the function so


@pytest.fixture
def collector():
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_pages_need_is_imported_and_searched_for_garbage_no_more(collector, monkeypatch):
    monkeypatch.setattr(lifespan, "VISITOR_WAIT_S", 0.0)

    lifespan._settle()

    assert sys.modules.keys() >= set(lifespan.PAGES_NEED)
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10 * len(gc.get_objects())
    assert gc.get_threshold()[0] == lifespan.GC_THRESHOLD


def test_no_thread_keeps_the_others_waiting_for_long(monkeypatch):
    monkeypatch.setattr(lifespan, "watch", lambda stop: stop.wait(DEADLINE_S))
    monkeypatch.setattr(lifespan, "_settle", lambda: None)
    monkeypatch.setattr(lifespan, "_lower_own_priority", lambda: None)
    monkeypatch.setattr(lifespan, "_warms", lambda: False)
    before_s = sys.getswitchinterval()

    async def shortest():
        async with lifespan.lifespan(None):
            return sys.getswitchinterval()

    try:
        assert asyncio.run(shortest()) == pytest.approx(lifespan.SWITCH_S)
    finally:
        sys.setswitchinterval(before_s)


@pytest.fixture
def watched(monkeypatch):
    """Let no page be drawn yet, and return when a supervisor was looked after."""
    page, watched = threading.Event(), []
    monkeypatch.setattr(lifespan, "SUPERVISOR_DUE", page)
    monkeypatch.setattr(lifespan, "watch", lambda _: watched.append(page.is_set()))
    return watched


def test_supervisor_starts_after_the_first_page(watched, monkeypatch):
    monkeypatch.setattr(lifespan, "VISITOR_WAIT_S", DEADLINE_S)
    thread = threading.Thread(target=lifespan._watch_when_due, args=(threading.Event(),))
    thread.start()
    lifespan.SUPERVISOR_DUE.set()
    thread.join()

    assert watched == [True]


def test_supervisor_starts_for_who_asks_for_readiness(monkeypatch):
    due = threading.Event()
    monkeypatch.setattr(api, "SUPERVISOR_DUE", due)
    monkeypatch.setattr(api, "store", lambda: SimpleNamespace(ready=due.is_set))

    assert api._ready(None).status_code == 200
    assert due.is_set()


def test_supervisor_starts_without_a_visitor_after_a_while(watched, monkeypatch):
    monkeypatch.setattr(lifespan, "VISITOR_WAIT_S", 0.0)

    lifespan._watch_when_due(threading.Event())

    assert watched == [False]


def test_no_supervisor_starts_for_a_server_that_has_ended(watched):
    stop = threading.Event()
    stop.set()
    lifespan.SUPERVISOR_DUE.set()

    lifespan._watch_when_due(stop)

    assert watched == []


def test_server_steps_back_once_workers_are_warm_for_its_first_visitors_wait_meanwhile(monkeypatch):
    told, stepped = [True, True, False], []
    monkeypatch.setattr(lifespan, "POLL_S", 0.0)
    monkeypatch.setattr(lifespan, "_warms", lambda: told.pop(0))
    monkeypatch.setattr(lifespan, "_lower_own_priority", lambda: stepped.append(list(told)))

    asyncio.run(lifespan._step_back_when_warm())

    assert stepped == [[]]


@pytest.mark.parametrize(("state", "warms"), [(None, True), ("warming", True), ("ready", False), ("measuring", False)])
def test_workers_are_warm_when_their_supervisor_says_so(monkeypatch, state, warms):
    supervisor = SimpleNamespace(state=state) if state else None
    monkeypatch.setattr(lifespan, "live_supervisor", lambda: supervisor)

    assert lifespan._warms() is warms


def test_a_database_that_cannot_be_used_yet_is_asked_again(monkeypatch):
    def refuse():
        raise StoreUnavailable("its disk is full")

    monkeypatch.setattr(lifespan, "live_supervisor", refuse)

    assert lifespan._warms()


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux alone has policies of scheduling by thread")
def test_who_serves_pages_interrupts_nobody_who_computes():
    found = []

    def step_back():
        before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        lifespan._lower_own_priority()
        found.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) - before))

    thread = threading.Thread(target=step_back)  # on Linux a thread's own, and of those it starts
    thread.start()
    thread.join()

    assert found == [(os.SCHED_BATCH, lifespan.NICE)]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


@pytest.mark.parametrize(
    ("limits", "set_to", "warned"),
    [((1024, 4096), (4096, 4096), False), ((1024, 1024), None, True), ((1024, -1), (65536, -1), False)],
)
def test_as_many_files_as_allowed_may_be_open_and_too_few_are_named(monkeypatch, capsys, limits, set_to, warned):
    asked = []
    monkeypatch.setattr(lifespan.resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(lifespan.resource, "setrlimit", lambda _, to: asked.append(to))

    lifespan._raise_file_limit()

    assert asked == ([set_to] if set_to else [])
    assert ("this process may open 1024 files" in capsys.readouterr().err) is warned
