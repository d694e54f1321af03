"""Whatever happens to the supervisor, every run ends in one terminal state and the next one is measured."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from sqlalchemy import update

from gpuexplore.core.model import Device, RunState, Status
from gpuexplore.jobs.locks import device_lock
from gpuexplore.store import open_store
from gpuexplore.store.tables import SUPERVISORS
from tests.faults.conftest import (
    ENDED,
    ends,
    experiment,
    holder,
    is_measuring,
    is_ready,
    is_replaced,
    long_experiment,
    next_run_starts,
    wait_until,
)


def test_killed_supervisor_is_replaced_within_three_seconds_and_its_run_ends_well(store, supervisor):
    run_id = store.submit(experiment(30, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=2))

    supervisor.kill()

    assert wait_until(lambda: is_replaced(supervisor)) < 3
    run = ends(store, run_id)
    assert (run.state, {result.status for result in run.results}, len(run.results)) == (RunState.DONE, {Status.OK}, 30)
    next_run_starts(store)


def test_frozen_supervisor_is_replaced_within_twenty_seconds(store, supervisor):
    run_id = store.submit(experiment(30, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=2))

    supervisor.send_signal(signal.SIGSTOP)

    assert wait_until(lambda: is_replaced(supervisor)) < 20
    assert not supervisor.is_running() or supervisor.status() == psutil.STATUS_ZOMBIE
    assert ends(store, run_id).state is RunState.DONE
    next_run_starts(store)


def test_supervisor_told_to_stop_in_a_long_group_gives_the_run_back_within_five_seconds(store, supervisor):
    run_id = store.submit(long_experiment(), "ada")
    wait_until(lambda: is_measuring(store, run_id))
    time.sleep(1)

    supervisor.terminate()

    assert wait_until(lambda: holder() is None or is_replaced(supervisor)) < 5
    assert all(result.provisional for result in store.load(run_id).results)
    wait_until(lambda: is_measuring(store, run_id), what="its successor")
    store.request_cancel(run_id, "ada")
    run = ends(store, run_id)
    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by its owner")
    next_run_starts(store)


def test_two_supervisors_of_one_database_are_one(store, supervisor):
    second = subprocess.run(
        [sys.executable, "-m", "gpuexplore.jobs.supervisor"], capture_output=True, text=True, check=True, timeout=30
    )

    assert "already serves this database" in second.stderr
    assert holder().pid == supervisor.pid


def test_two_watchers_of_two_homes_on_one_database_share_a_supervisor(home, watched, tmp_path, monkeypatch):
    url = f"sqlite:///{home}/shared.sqlite3"
    first = watched(url)
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "another home"))

    assert watched(url).pid == first.pid
    with open_store(url) as store:
        next_run_starts(store, within_s=20)


def test_supervisors_of_two_databases_measure_in_turns(home, watched):
    """One device of one host: whoever measures holds its lock, whatever database the run came from."""
    urls = [f"sqlite:///{home}/{name}.sqlite3" for name in ("one", "two")]
    pids = {watched(url).pid for url in urls}
    with open_store(urls[0]) as one, open_store(urls[1]) as two:
        wait_until(lambda: is_ready(one) and is_ready(two))
        device, held_by = device_lock(Device("cpu", "cpu", "the CPU")), set()
        with device:
            runs = [(store, store.submit(experiment(3, budget_s=0.5), "ada")) for store in (one, two)]
            wait_until(lambda: all(state(*run) is RunState.RUNNING for run in runs))
            time.sleep(1)
            assert [store.load_summary(run_id).progress.done for store, run_id in runs] == [0, 0]

        while any(state(*run) not in ENDED for run in runs):
            held_by |= {found.pid for found in [device.holder()] if found}
            time.sleep(0.1)

        assert [state(*run) for run in runs] == [RunState.DONE] * 2
        assert held_by == pids


def state(store, run_id):
    return store.load_summary(run_id).state


@pytest.mark.parametrize("hours", [-1, 1], ids=["set back", "set forward"])
def test_clock_that_is_set_ends_nothing(store, supervisor, hours):
    """To the database, a lease written before the clock was set lies an hour in the past or in the future."""
    run_id = store.submit(experiment(10, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=1))

    for _ in range(3):
        with store.writing() as connection:
            connection.execute(update(SUPERVISORS).values(beat_epoch_s=SUPERVISORS.c.beat_epoch_s - hours * 3600))
        time.sleep(0.5)

    assert ends(store, run_id).state is RunState.DONE
    assert (holder().pid, store.load_summary(run_id).supervisor.count("/")) == (supervisor.pid, 2)
    next_run_starts(store)


def test_supervisor_of_another_version_is_replaced(store, watched, monkeypatch):
    first = watched()
    monkeypatch.setattr("gpuexplore.__version__", "9.9.9")

    watched()

    assert wait_until(lambda: is_replaced(first)) < 60
    next_run_starts(store, within_s=20)


def test_worker_that_is_killed_while_idle_is_replaced(store, supervisor):
    wait_until(lambda: is_ready(store))
    for worker in supervisor.children(recursive=True):
        worker.kill()

    next_run_starts(store)
    assert holder().pid == supervisor.pid


def test_worker_that_is_killed_costs_its_case_and_no_other(store, supervisor):
    run_id = store.submit(long_experiment(), "ada")
    wait_until(lambda: is_measuring(store, run_id))
    time.sleep(1)

    (worker,) = (child for child in supervisor.children() if "gpuexplore.jobs.worker" in child.cmdline())
    worker.kill()

    run = ends(store, run_id)
    assert (run.state, [result.status for result in run.results]) == (RunState.DONE, [Status.CRASHED])
    assert "SIGKILL" in run.results[0].reason
    next_run_starts(store, within_s=5)
