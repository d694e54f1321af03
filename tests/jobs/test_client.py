"""The web process and the command line start a supervisor when there is none."""

import signal
import subprocess
import sys
import threading

import pytest

from gpuexplore.jobs import client
from gpuexplore.jobs.client import ensure_supervisor
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.jobs.supervisor.__main__ import main
from gpuexplore.store import open_store

STAND_IN = """
import time
from gpuexplore.jobs.locks import supervisor_lock
with supervisor_lock():
    time.sleep(60)
"""


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(client, "COMMAND", (sys.executable, "-c", STAND_IN))


def end(process):
    process.kill()
    process.wait()


@pytest.mark.slow
def test_many_that_ask_at_once_start_one(stand_in, home):
    started = []
    threads = [threading.Thread(target=lambda: started.append(ensure_supervisor())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (process,) = filter(None, started)

    try:
        assert ensure_supervisor() is None
        assert (home / "logs" / "supervisor.log").exists()
    finally:
        end(process)


def test_fresh_heartbeat_is_enough(monkeypatch):
    monkeypatch.setattr(client, "COMMAND", ("nobody-may-start-this",))
    with open_store() as store:
        store.heartbeat("host", 1, state="ready", devices=())

    assert ensure_supervisor() is None


def test_held_lock_is_enough(monkeypatch):
    monkeypatch.setattr(client, "COMMAND", ("nobody-may-start-this",))

    with supervisor_lock():
        assert ensure_supervisor() is None


@pytest.mark.slow
def test_database_is_passed_on_without_showing_in_the_list_of_processes(monkeypatch, home):
    url = f"sqlite:///{home}/other.sqlite3"
    monkeypatch.setattr(
        client, "COMMAND", (sys.executable, "-c", "import os; print(os.environ['GPUEXPLORE_DATABASE_URL'])")
    )

    process = ensure_supervisor(url)

    assert process.wait() == 0
    assert (home / "logs" / "supervisor.log").read_text().strip() == url


def test_second_supervisor_says_so_and_ends_well(caplog, monkeypatch):
    caplog.set_level("INFO")

    with supervisor_lock():
        assert main([]) == 0

    assert "Another supervisor is at work on this host" in caplog.text


@pytest.mark.slow
def test_supervisor_ends_well_when_it_is_told_to(home):
    command = [sys.executable, "-m", "gpuexplore.jobs.supervisor"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "Measuring on" in line:
                break
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 0
    assert "Traceback" not in said


@pytest.mark.slow
def test_client_is_light():
    told = "import sys, gpuexplore.jobs.client as _; print(sorted({'torch', 'numba', 'pebble'} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
