"""One supervisor per host and database, one measurement per device: across threads, processes, users and homes."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psutil
import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.jobs.locks import LockHolder, _start_of, device_lock, lock_directory, supervisor_lock
from tests.waiting import DEADLINE_S, wait_until

CPU, GPU, ANOTHER = (
    Device("cpu", "cpu", "a CPU"),
    Device("cuda:0", "cuda", "a GPU", uuid="GPU-1"),
    Device("cuda:1", "cuda", "a GPU", uuid="GPU-2"),
)
HOLD = """
import sys
from gpuexplore.jobs.locks import device_lock
from gpuexplore.core.model import Device
with device_lock(Device("cuda:0", "cuda", "a GPU", uuid="GPU-1")):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold_gpu(tmp_path):
    """Return how to hold the GPU's lock in a process with a home of its own."""

    def held(**changes):
        environment = os.environ | {"GPUEXPLORE_HOME": str(tmp_path / "another home")}
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **changes
        )
        assert process.stdout.readline() == b"held\n"
        return process

    return held


def test_one_supervisor_per_database():
    with supervisor_lock("sqlite:///one"), supervisor_lock("sqlite:///two"), pytest.raises(TimeoutError):
        supervisor_lock("sqlite:///one").acquire(timeout=0)


def test_looks_at_a_free_lock_do_not_see_each_other():
    """A look took the lock for a moment: another one saw a supervisor that was not there."""
    with supervisor_lock("sqlite:///one"):
        pass

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: supervisor_lock("sqlite:///one").is_held(), range(2000)))

    assert not any(seen)


def test_devices_have_locks_of_their_own():
    with device_lock(GPU), device_lock(ANOTHER), device_lock(CPU), device_lock(replace(GPU, uuid=None)):
        held = {path.name for path in lock_directory().glob("device-*.lock")}

    assert held >= {"device-cpu.lock", "device-GPU-1.lock", "device-GPU-2.lock", "device-cuda-0.lock"}


def test_one_gpu_is_locked_under_whatever_number_a_process_has_for_it():
    with device_lock(ANOTHER), pytest.raises(TimeoutError):
        device_lock(replace(ANOTHER, id="cuda:0")).acquire(timeout=0)


@pytest.mark.long
def test_lock_is_the_hosts_and_ends_with_the_process_that_holds_it(hold_gpu):
    """Each home had locks of its own: two users measured on one GPU at once."""
    with hold_gpu() as holder:
        with pytest.raises(TimeoutError):
            device_lock(GPU).acquire(timeout=0)
        assert device_lock(GPU).holder().pid == holder.pid
        holder.kill()
        holder.wait()

        device_lock(GPU).acquire(timeout=DEADLINE_S)
        device_lock(GPU).release()


def test_every_user_may_take_every_lock():
    with device_lock(CPU):
        assert lock_directory().stat().st_mode & 0o7777 == 0o1777
        assert (lock_directory() / "device-cpu.lock").stat().st_mode & 0o777 == 0o666


def test_whoever_held_it_before_is_not_taken_for_one_who_has_not_said_who_it_is():
    lock = device_lock(CPU)
    with lock:
        pass
    assert lock._has_taken()
    assert device_lock(CPU).holder() is None
    lock.release()


def test_holder_is_told_while_it_holds():
    lock = device_lock(CPU)
    assert lock.holder() is None
    with device_lock(CPU):
        found = lock.holder()
        assert (found.pid, found.started) == (os.getpid(), _start_of(os.getpid()))
        assert f"(process {os.getpid()})" in str(found)
    assert lock.holder() is None


def test_process_is_known_by_its_start_and_never_by_its_number_alone():
    me = psutil.Process()
    holder = LockHolder(me.pid, _start_of(me.pid), "ada", "gpuexplore", "1")

    assert holder.process() == me
    assert replace(holder, started=holder.started - 1).process() is None
    assert replace(holder, pid=2**22 + 1).process() is None


@pytest.mark.parametrize("text", ["", "[]", '{"pid": 1}', json.dumps("x")])
def test_garbage_beside_a_lock_names_nobody(text):
    with device_lock(CPU):
        (lock_directory() / f"device-cpu.{os.geteuid()}.holder").write_text(text)

        assert device_lock(CPU).holder() is None
        assert device_lock(CPU).is_held()


def test_sign_of_life_is_seen_by_whoever_looks():
    with supervisor_lock("sqlite:///signs") as lock:
        watcher = supervisor_lock("sqlite:///signs")
        before = watcher.last_sign()
        assert watcher.last_sign() == before

        def signs_later():
            lock.sign_life()
            return watcher.last_sign() > before

        wait_until(signs_later)  # a file's time moves in steps


def test_directory_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path / "file" / "locks"))

    with pytest.raises(InvalidInput, match=r"GPUEXPLORE_LOCKS .*: expected directories that can be written"):
        lock_directory()


def test_a_holder_is_known_where_the_directory_is_reached_through_a_link(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    monkeypatch.delenv("GPUEXPLORE_LOCKS", raising=False)
    monkeypatch.setattr("gpuexplore.jobs.locks.SHARED_MEMORY", tmp_path / "linked")
    with device_lock(CPU):
        assert device_lock(CPU).holder().pid == os.getpid()


def test_a_supervisor_of_version_0_2_0_is_seen_by_the_file_that_all_could_write():
    with device_lock(CPU):
        own = lock_directory() / f"device-cpu.{os.geteuid()}.holder"
        old = lock_directory() / "device-cpu.holder"
        old.write_text(own.read_text())
        old.chmod(0o666)
        own.unlink()

        assert device_lock(CPU).holder().pid == os.getpid()
