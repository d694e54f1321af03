"""The web process keeps one living supervisor: it starts one, kills a frozen one, and replaces another version."""

import signal
import subprocess
import sys
import threading

import psutil
import pytest

import gpuexplore
from gpuexplore.core.errors import InvalidInput
from gpuexplore.jobs import client
from gpuexplore.jobs.client import _SupervisorKeeper, watch
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.jobs.supervisor import main
from gpuexplore.store.database import database_url
from tests.waiting import DEADLINE_S, wait_until

STAND_IN = """
import os, sys, time
from gpuexplore.jobs.locks import supervisor_lock
if "--other-version" in sys.argv:
    import gpuexplore; gpuexplore.__version__ = "0.0.0"
with supervisor_lock(os.environ["STAND_IN_URL"]) as lock:
    while "--frozen" not in sys.argv or time.sleep(60):
        lock.sign_life()
        time.sleep(0.01)
"""


@pytest.fixture
def stand_in(monkeypatch):
    """Let a program that only holds the lock stand in for the supervisor; return how to start one beside."""
    monkeypatch.setattr(client, "COMMAND", (sys.executable, "-c", STAND_IN))
    monkeypatch.setenv("STAND_IN_URL", database_url())  # its own look at the settings would load SQLAlchemy
    for limit in ("START_S", "STOP_S"):
        monkeypatch.setattr(client, limit, DEADLINE_S)
    started = []

    def start(*words):
        process = subprocess.Popen([sys.executable, "-c", STAND_IN, *words])
        started.append(process)
        wait_until(holder)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def holder():
    return supervisor_lock(database_url()).holder()


def held():
    """Return the holder once there is one."""
    wait_until(holder)
    return holder()


def end(found):
    process = psutil.Process(found.pid)
    process.kill()
    process.wait(DEADLINE_S)


@pytest.mark.long
def test_many_that_look_at_once_start_one(stand_in, home):
    watches = [_SupervisorKeeper() for _ in range(8)]
    threads = [threading.Thread(target=each.look) for each in watches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len([each for each in watches if each._started]) == 1
    assert (home / "logs" / "supervisor.err").exists()
    for each in watches:
        each.stop()
    assert holder() is None


@pytest.mark.long
def test_one_that_was_killed_is_replaced_at_the_next_look(stand_in):
    keeper = _SupervisorKeeper()
    keeper.look()
    first = held()
    end(first)

    keeper.look()

    assert held().pid != first.pid
    keeper.stop()


@pytest.mark.long
def test_one_that_shows_no_sign_of_life_is_killed_and_replaced(stand_in):
    frozen, now_s = stand_in("--frozen"), [0.0]
    keeper = _SupervisorKeeper(clock=lambda: now_s[0])
    keeper.look()
    now_s[0] = client.FROZEN_S - 1
    keeper.look()
    assert frozen.poll() is None

    now_s[0] = client.FROZEN_S + 1
    keeper.look()

    assert frozen.wait(DEADLINE_S) != 0
    keeper.look()
    assert held().pid != frozen.pid
    keeper.stop()


@pytest.mark.long
def test_one_that_works_is_left_alone_for_ever(stand_in):
    working, now_s, lock = stand_in(), [0.0], supervisor_lock(database_url())
    keeper = _SupervisorKeeper(clock=lambda: now_s[0])
    for _ in range(3):
        keeper.look()
        now_s[0] += client.FROZEN_S * 10
        seen = lock.last_sign()
        wait_until(lambda seen=seen: lock.last_sign() > seen)

    assert working.poll() is None


@pytest.mark.long
def test_one_of_another_version_is_replaced(stand_in):
    same, keeper = stand_in(), _SupervisorKeeper()
    keeper.replace_other_version()
    assert holder().pid == same.pid
    end(holder())
    other = stand_in("--other-version")

    keeper.replace_other_version()

    assert other.wait(DEADLINE_S) != 0
    assert holder().version == gpuexplore.__version__
    keeper.stop()


@pytest.mark.long
def test_watch_ends_what_it_started(stand_in):
    stop = threading.Event()
    watching = threading.Thread(target=watch, args=(stop,))
    watching.start()
    wait_until(holder)

    stop.set()
    watching.join(DEADLINE_S)

    assert not watching.is_alive()
    assert holder() is None


def test_external_supervisor_is_left_to_others(monkeypatch):
    monkeypatch.setattr(client, "COMMAND", ("nobody-may-start-this",))
    monkeypatch.setenv("GPUEXPLORE_SUPERVISOR", "external")

    assert client.is_external()
    watch(threading.Event())

    monkeypatch.setenv("GPUEXPLORE_SUPERVISOR", "mine")
    with pytest.raises(InvalidInput, match="GPUEXPLORE_SUPERVISOR 'mine': expected own, external"):
        watch(threading.Event())


def test_held_lock_is_enough(monkeypatch):
    monkeypatch.setattr(client, "COMMAND", ("nobody-may-start-this",))

    keeper = _SupervisorKeeper()
    with supervisor_lock(database_url()):
        keeper.look()

    assert keeper._started is None


@pytest.mark.long
def test_database_is_passed_on_without_showing_in_the_list_of_processes(monkeypatch, home):
    url = f"sqlite:///{home}/other.sqlite3"
    monkeypatch.setattr(
        client, "COMMAND", (sys.executable, "-c", "import os; print(os.environ['GPUEXPLORE_DATABASE_URL'])")
    )
    keeper = _SupervisorKeeper(url)

    keeper.start()

    assert keeper._started.wait() == 0
    assert (home / "logs" / "supervisor.err").read_text().strip() == url


def test_second_supervisor_says_so_and_ends_well(caplog):
    caplog.set_level("INFO")

    with supervisor_lock(database_url()):
        assert main([]) == 0

    assert "already serves this database" in caplog.text


@pytest.mark.long
def test_supervisor_logs_to_a_file_and_ends_well_when_it_is_told_to(home):
    log = home / "supervisor.log"
    command = [sys.executable, "-m", "gpuexplore.jobs.supervisor", "--log", log]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: log.exists() and "Measuring on cpu" in log.read_text())
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 0
    assert "Traceback" not in said + log.read_text()


@pytest.mark.long
def test_client_is_light():
    told = "import sys, gpuexplore.jobs.client as _; print(sorted({'torch', 'numba'} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
