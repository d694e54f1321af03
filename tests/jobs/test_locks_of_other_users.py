"""The directory of locks beside hostile users: links, forged holders, files taken away."""

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.jobs.client import _SupervisorKeeper
from gpuexplore.jobs.locks import DIRECTORY_VARIABLE, HostLock, LockHolder, _start_of, lock_directory, supervisor_lock
from gpuexplore.jobs.quiet import Rounds

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="takes the place of another user, as only root can")
NOBODY = 65534
URL = "sqlite:///others"


def as_another_user(do):
    """Do something in a process of another user; return whether it raised nothing."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            do()
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.fixture
def locks(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv(DIRECTORY_VARIABLE, f"{folder}/locks")
        yield lock_directory()


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "secret"
    path.write_text("of root")
    path.chmod(0o600)
    yield path
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("of root", 0o600)


def test_a_lock_that_another_user_made_first_is_held_by_one_at_a_time(locks):
    """Else the first user of a lock would keep all others out."""
    assert as_another_user(lambda: HostLock("device-cpu").acquire())
    lock = HostLock("device-cpu")

    lock.acquire(timeout=0)

    assert lock.is_held()
    assert not as_another_user(lambda: HostLock("device-cpu").acquire(timeout=0))
    lock.release()
    assert as_another_user(lambda: HostLock("device-cpu").acquire(timeout=0))


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize("name", ["device-cpu.0.holder", "round"])
def test_a_link_in_place_of_a_file_harms_nothing_that_it_names(locks, secret, is_hard, name):
    if is_hard:
        with suppress(OSError):  # another file system
            (locks / name).hardlink_to(secret)
    else:
        assert as_another_user(lambda: (locks / name).symlink_to(secret))

    with HostLock("device-cpu") as lock:
        assert HostLock("device-cpu").is_held()
        lock.sign_life()
    with suppress(OSError):
        Rounds().wait_for_end(0)


def test_a_link_in_place_of_a_lock_is_named(locks, secret):
    assert as_another_user(lambda: (locks / "device-cpu.lock").symlink_to(secret))

    with pytest.raises(InvalidInput, match=DIRECTORY_VARIABLE):
        HostLock("device-cpu").acquire(timeout=0)


def test_a_link_in_place_of_the_directory_is_refused(locks, monkeypatch, tmp_path):
    monkeypatch.delenv(DIRECTORY_VARIABLE)
    monkeypatch.setattr("gpuexplore.jobs.locks.SHARED_MEMORY", locks)
    assert as_another_user(lambda: (locks / "gpuexplore-locks").symlink_to(tmp_path))
    before = tmp_path.stat().st_mode

    with pytest.raises(InvalidInput, match="link"):
        lock_directory()
    assert tmp_path.stat().st_mode == before


def test_nobody_else_can_remove_a_lock_or_say_who_holds_it(locks):
    with HostLock("device-cpu"):
        own = locks / "device-cpu.0.holder"
        assert as_another_user((locks / "of-another").touch)
        assert not as_another_user((locks / "device-cpu.lock").unlink)
        assert not as_another_user(own.unlink)
        assert not as_another_user(lambda: own.write_text(""))
        assert HostLock("device-cpu").holder().pid == os.getpid()


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_a_process_that_another_user_names_is_no_holder_and_is_not_ended(locks, uid):
    victim = os.fork()
    if victim == 0:
        os.execlp("sleep", "sleep", "60")
    try:
        named = LockHolder(victim, _start_of(victim), "root", "gpuexplore", "0.0.1")
        name = supervisor_lock(URL)._name

        def forge():
            lock = HostLock(name)
            assert lock._has_taken()
            (locks / f"{name}.{uid}.holder").write_text(json.dumps(asdict(named)))
            os.execlp("sleep", "sleep", "60")

        forger = os.fork()
        if forger == 0:
            with suppress(BaseException):
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                forge()
            os._exit(1)
        try:
            while not (locks / f"{name}.{uid}.holder").exists():
                assert os.waitpid(forger, os.WNOHANG) == (0, 0)
            assert supervisor_lock(URL).holder() is None
            _SupervisorKeeper(URL)._end(named, patience_s=0)
            assert os.waitpid(victim, os.WNOHANG) == (0, 0), "it was ended"
        finally:
            os.kill(forger, 9)
            os.waitpid(forger, 0)
    finally:
        os.kill(victim, 9)
        os.waitpid(victim, 0)
