"""Pages and measurements take turns: who waits for whom, and for how long at most."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from multiprocessing import get_context
from threading import Event, Thread

import pytest

from gpuexplore.jobs import quiet
from gpuexplore.jobs.quiet import MAX_WAIT_S, MIN_WAIT_S, PAGE_WAIT_S, WAIT_BUDGET_S, WAIT_FRACTION, Rounds, serving
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.skipif(not quiet.PROCESSES.is_dir(), reason="only Linux tells what another process does")


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path))


@pytest.fixture
def server(monkeypatch):
    """Return what makes a server use these shares of a core in the slices that the worker looks at."""
    slept, used = [], []

    def use(*shares):
        def sleep(seconds):
            used.append(seconds * shares[min(len(slept), len(shares) - 1)])
            slept.append(seconds)

        monkeypatch.setattr(quiet, "_servers", lambda: [1])
        monkeypatch.setattr(quiet, "_cpu_s", lambda _: sum(used))
        monkeypatch.setattr(quiet, "_is_at_work", lambda _: used[-1] >= quiet.LOOK_S)
        monkeypatch.setattr(quiet.time, "sleep", sleep)
        monkeypatch.setattr(quiet.time, "monotonic", lambda: sum(slept))
        return slept

    return use


@contextmanager
def busy_server():
    """Run a process that serves pages, and computes."""
    program = "from gpuexplore.jobs.quiet import serving\nwith serving():\n print(flush=True)\n while True: pass"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        yield server
        server.kill()


def seconds_until_round(expected_s=0.0):
    rounds, start_s = Rounds(), time.monotonic()
    with rounds.undisturbed_by_pages(expected_s):
        return time.monotonic() - start_s


@pytest.mark.parametrize(("shares", "looks"), [((0.0,), 1), ((1.0, 1.0, 0.0), 3), ((0.5, 0.1), 2)])
def test_a_round_begins_when_servers_are_idle(server, shares, looks):
    slept = server(*shares)
    with Rounds().undisturbed_by_pages(0.0):
        assert len(slept) == looks


def waits_s(rounds, slept, lasts_s=0.0):
    """Return how long a round waited, which then lasts `lasts_s`."""
    before_s = sum(slept)
    with rounds.undisturbed_by_pages(lasts_s):
        waited_s = sum(slept) - before_s
        slept.append(lasts_s)
    return pytest.approx(waited_s, abs=2 * quiet.LOOK_S)


def test_rounds_wait_for_a_server_that_is_never_idle_a_tenth_of_what_they_take_at_most(server):
    slept = server(1.0)
    rounds = Rounds()
    assert waits_s(rounds, slept) == MAX_WAIT_S
    assert waits_s(rounds, slept) == WAIT_BUDGET_S - MAX_WAIT_S
    assert waits_s(rounds, slept, lasts_s=0.2) == MIN_WAIT_S
    assert waits_s(rounds, slept) == WAIT_FRACTION * 0.2 - MIN_WAIT_S
    assert waits_s(rounds, slept) == MIN_WAIT_S


def test_what_servers_use_during_a_round_is_told(server):
    slept = server(0.0, 0.0, 1.0)
    with Rounds().undisturbed_by_pages(0.01) as used_s:
        assert used_s() == 0.0
        for _ in range(3):
            quiet.time.sleep(0.01)
        assert used_s() == pytest.approx(0.02)
    assert len(slept) == 4


def test_a_worker_sees_the_cpu_time_of_another_process_that_serves():
    with busy_server():
        assert min(seconds_until_round() for _ in range(5)) >= MIN_WAIT_S
    assert Rounds()._servers == [], "a server that was killed holds nobody up"


def test_a_server_that_ends_during_a_round_takes_nothing_off_what_others_used(tmp_path):
    with serving(), busy_server() as ending:
        rounds = Rounds()
        with rounds.undisturbed_by_pages(0.1) as used_s:
            ending.kill()
            ending.wait()
            end_s = time.thread_time() + 0.05
            while time.thread_time() < end_s:
                pass
            assert 0.04 < used_s() < 1


def test_a_server_that_ends_is_waited_for_no_more(tmp_path):
    with serving():
        (tmp_path / "pages-nonsense.lock").touch()
        assert quiet._servers() == [os.getpid()]
    assert quiet._servers() == []


def test_a_server_starts_also_where_no_locks_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path / "a file"))
    served = []
    with serving():
        served.append(True)
    assert served


def test_a_page_waits_for_the_end_of_a_round(monkeypatch):
    waits, order = Event(), []
    monkeypatch.setattr(quiet.time, "sleep", lambda _: waits.set())

    def draw():
        Rounds().wait_for_end(limit_s=DEADLINE_S)
        order.append("page")

    page = Thread(target=draw)
    with Rounds().undisturbed_by_pages(2 * DEADLINE_S):
        page.start()
        assert waits.wait(DEADLINE_S)
        order.append("round")
    page.join()
    assert order == ["round", "page"]


def test_a_page_waits_for_a_long_round_no_longer_than_a_tenth_of_a_second():
    with Rounds().undisturbed_by_pages(60.0):
        start_s = time.monotonic()
        Rounds().wait_for_end()
        assert time.monotonic() - start_s >= PAGE_WAIT_S


def begin_and_die():
    with Rounds().undisturbed_by_pages(0.05):
        os._exit(1)


def test_what_a_worker_that_died_has_left_holds_nobody_up_for_long(monkeypatch):
    worker = get_context("spawn").Process(target=begin_and_die)
    worker.start()
    worker.join()
    until_s = Rounds()._end_s()
    assert until_s > 0.0
    wait_until(lambda: time.monotonic() > until_s)
    monkeypatch.setattr(quiet.time, "sleep", lambda _: pytest.fail("it waits"))
    Rounds().wait_for_end(limit_s=DEADLINE_S)
