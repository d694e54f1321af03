"""Whatever happens to the database, the supervisor goes on: results are kept, and written when it is back."""

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from benchmarks.bias import busy_loop
from benchmarks.strangers import Uploader
from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.core.model import RunState, Status
from gpuexplore.store import Supervisor, open_store
from scripts.app_server import streamlit_served
from tests import postgresql
from tests.faults.conftest import ends, experiment, holder, is_measuring, next_run_starts, wait_until

SOON_S = 8.0  # 2 on an idle machine


@contextmanager
def locked(file):
    """Hold SQLite's lock for writers, as another program would."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_lock_of_thirty_seconds_costs_nothing(store, home, supervisor):
    run_id = store.submit(experiment(20, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=1))

    with locked(home / "gpuexplore.sqlite3"):
        time.sleep(30)

    run = ends(store, run_id)
    assert (run.state, {result.status for result in run.results}, len(run.results)) == (RunState.DONE, {Status.OK}, 20)
    assert holder().pid == supervisor.pid
    next_run_starts(store)


def test_visitor_reads_why_nothing_can_be_queued_while_it_is_locked(store, home):
    with locked(home / "gpuexplore.sqlite3"), pytest.raises(StoreUnavailable) as told:
        store.submit(experiment(), "ada")

    assert "another program keeps it locked. No stored data is lost" in str(told.value)


def asked(address):
    """Return the reason for which a server is not ready, and the seconds until it said so."""
    began_s = time.monotonic()
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{address}/api/ready", timeout=60)
    assert refused.value.code == 503
    return json.loads(refused.value.read())["reason"], time.monotonic() - began_s


async def opened(address, page, query=""):
    """Return what a page says, and the seconds until it was drawn."""
    visitor = Uploader(address, page, query)
    took_s = await visitor.open()
    await visitor.close()
    assert not visitor.errors
    return "\n".join([*visitor.said, *visitor.texts]), took_s


@pytest.fixture
def address(home):
    with streamlit_served(home, "app.py", os.environ | {"GPUEXPLORE_SUPERVISOR": "external"}) as (_, found):
        yield found


def test_pages_open_while_it_is_locked_and_say_so(store, home, address):
    asyncio.run(opened(address, ""))
    run_id = store.submit(experiment(), "ada")
    store.heartbeat(Supervisor("gone", host="here", scope="here", pid=1, version="1"), state="ready", devices=())
    time.sleep(6)  # until it is silent

    with locked(home / "gpuexplore.sqlite3"):
        for page in ("", "runs", "queue", "roofline", "rooms"):
            said, took_s = asyncio.run(opened(address, page))
            assert "another program keeps it locked" in said, page
            assert took_s < SOON_S, page
        said, took_s = asyncio.run(opened(address, "benchmark", f"run={run_id}"))
        assert said.count("another program keeps it locked") == 2, "as a whole, and of the run"
        assert took_s < SOON_S
        reason, took_s = asked(address)
        assert "another program keeps it locked" in reason
        assert took_s < SOON_S
    assert "No supervisor has reported" in asked(address)[0]
    wait_until(lambda: "locked" not in asyncio.run(opened(address, "queue"))[0], SOON_S, "the page")


def test_file_that_was_cut_off_is_not_ready_and_pages_name_it_once(store, home, address):
    asyncio.run(opened(address, ""))
    for _ in range(20):
        store.submit(experiment(20), "ada")
    file = home / "gpuexplore.sqlite3"
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(file, file.stat().st_size // 2)

    assert "its file is damaged" in asked(address)[0]
    said, took_s = asyncio.run(opened(address, "runs"))
    assert said.count("its file is damaged") == 1
    assert took_s < SOON_S, "and is not drawn again and again"


@pytest.fixture
def small_disk(home):
    """Put the home on a disk of 6 MB."""
    disk = home / "disk"
    disk.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    if os.getuid() or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize("is_used", [False, True])
def test_home_that_is_read_only_is_named_on_each_page_and_what_needs_none_is_drawn(small_disk, tmp_path, is_used):
    if is_used:
        with open_store(f"sqlite:///{small_disk}/gpuexplore.sqlite3") as store:
            store.submit(experiment(), "ada")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with streamlit_served(tmp_path, "app.py", os.environ | {"GPUEXPLORE_HOME": str(small_disk)}) as (_, address):
        for page in ("", "runs", "queue"):
            said, took_s = asyncio.run(opened(address, page))
            assert 1 <= said.count("expected directories that can be made and written") <= 2  # of the queue, too
            assert took_s < SOON_S
        said, _ = asyncio.run(opened(address, "memory"))
        assert "VGG-16" in said
        assert "expected directories that can be made and written" in asked(address)[0]
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def test_disk_that_fills_in_the_middle_of_a_run_costs_nothing_once_there_is_room(small_disk, watched):
    url = f"sqlite:///{small_disk}/gpuexplore.sqlite3"
    with open_store(url) as store:
        process = watched(url)
        run_id = store.submit(experiment(20, budget_s=0.1), "ada")
        wait_until(lambda: is_measuring(store, run_id, done=1))

        fill = small_disk / "fill"
        fill_up(fill)
        with pytest.raises(StoreUnavailable, match="its disk is full"):
            submit_until_refused(store)
        time.sleep(3)
        fill.unlink()

        assert ends(store, run_id).state is RunState.DONE
        assert len(store.load(run_id).results) == 20
        assert holder(url).pid == process.pid
        next_run_starts(store)


def fill_up(file):
    with file.open("wb", buffering=0) as filling, suppress(OSError):
        while True:
            filling.write(bytes(4096))


def submit_until_refused(store):
    for number in range(1000):
        store.submit(experiment(cases=200), f"owner {number}")


def test_file_that_is_read_only_for_a_while_costs_nothing(store, home, watched):
    file = home / "gpuexplore.sqlite3"
    if subprocess.run(["chattr", "+i", str(file)], capture_output=True, check=False).returncode:
        pytest.skip("this file system has no immutable files, and root may write any other")
    try:
        with pytest.raises(StoreUnavailable, match="it is read-only"):
            open_store().submit(experiment(), "ada")
    finally:
        subprocess.run(["chattr", "-i", str(file)], check=True)
    watched()
    next_run_starts(store, within_s=20)


def test_deleted_file_is_told_in_a_sentence_and_a_new_one_serves(store, home, supervisor):
    run_id = store.submit(experiment(3), "ada")
    ends(store, run_id)
    for file in home.glob("gpuexplore.sqlite3*"):
        file.unlink()

    with pytest.raises(StoreUnavailable, match=r"its file was deleted or replaced\. The administrator"):
        store.load_summary(run_id)
    time.sleep(2)
    assert holder().pid == supervisor.pid

    with open_store() as new:
        wait_until(lambda: new.supervisor() is not None, 20, "the lease")
        next_run_starts(new, within_s=5)


def test_restored_backup_is_taken_up(store, home, supervisor):
    run_id = store.submit(experiment(3), "ada")
    ends(store, run_id)
    backup = home / "backup.sqlite3"
    with closing(sqlite3.connect(home / "gpuexplore.sqlite3")) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    for file in home.glob("gpuexplore.sqlite3*"):
        file.unlink()
    shutil.move(backup, home / "gpuexplore.sqlite3")

    assert store.load(run_id).state is RunState.DONE
    wait_until(lambda: store.supervisor() is not None, 20, "the lease")
    next_run_starts(store, within_s=5)
    assert holder().pid == supervisor.pid


def test_damaged_file_is_told_in_a_sentence(home):
    (home / "gpuexplore.sqlite3").write_bytes(b"this is no database, however long one looks at it" * 100)

    with pytest.raises(StoreUnavailable, match=r"its file is damaged\. The administrator"):
        open_store()


def test_newer_schema_is_told_in_a_sentence(store):
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(StoreUnavailable, match="a newer version of gpuexplore made it"):
        open_store()


@pytest.fixture
def server():
    if reason := postgresql.why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="gpuexplore-postgresql-"))  # not below what only root may enter
    with postgresql.server(folder) as started:
        yield started
    shutil.rmtree(folder)


def test_postgresql_that_is_restarted_in_the_middle_of_a_run_costs_nothing(server, watched):
    with open_store(server.url) as store:
        process = watched(server.url)
        run_id = store.submit(experiment(20, budget_s=0.1), "ada")
        wait_until(lambda: is_measuring(store, run_id, done=1))

        server.stop()
        with pytest.raises(StoreUnavailable, match="the database server does not respond"):
            store.load_summary(run_id)
        time.sleep(3)
        server.start()

        run = ends(store, run_id)
        assert (run.state, len(run.results)) == (RunState.DONE, 20)
        assert holder(server.url).pid == process.pid
        next_run_starts(store)


def test_two_hosts_on_one_database_never_measure_one_run_twice(server, watched, home, monkeypatch):
    """Two supervisors with locks of their own, as in two containers that share a host name."""
    with open_store(server.url) as store:
        for name in ("locks-1", "locks-2"):
            monkeypatch.setenv("GPUEXPLORE_LOCKS", str(home / name))
            watched(server.url)
        wait_until(lambda: len(store.supervisors()) == 2, what="both supervisors")
        ids = [store.submit(experiment(5), owner) for owner in "abcdefgh"]

        runs = [ends(store, run_id) for run_id in ids]

        assert [run.state for run in runs] == [RunState.DONE] * 8
        assert [len(run.results) for run in runs] == [5] * 8
        assert len({run.supervisor for run in runs}) == 2


def test_two_servers_on_one_home_beside_load_share_its_supervisor_and_show_the_same(store, home, address, watched):
    with (
        busy_loop(),
        busy_loop(),
        streamlit_served(home, "app.py", os.environ | {"GPUEXPLORE_SUPERVISOR": "external"}) as (_, second),
    ):
        process = watched()
        run_ids = [store.submit(experiment(5, budget_s=0.05), f"owner {number}") for number in range(4)]
        for run_id in run_ids:
            assert ends(store, run_id).state is RunState.DONE
        for where in (address, second):
            for run_id in run_ids:
                said, took_s = asyncio.run(opened(where, "benchmark", f"run={run_id}"))
                assert "cannot be used" not in said
                assert took_s < SOON_S
    assert holder().pid == process.pid
