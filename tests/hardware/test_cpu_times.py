"""What others took of the CPU, from made accounts and from this machine's."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from gpuexplore.hardware import cpu_times
from gpuexplore.hardware.cpu import affinity
from gpuexplore.hardware.cpu_times import UNREADABLE, Account, CpuTimes, cpu_loss, cpu_lost_share, read_cpu_times
from tests.waiting import wait_until

TICK_S = 0.01
STAT = """cpu  100 0 100 700 20 0 0 80 0 0
cpu0 50 0 50 300 10 0 0 40 0 0
cpu1 50 0 50 400 10 0 0 40 0 0
intr 1 2 3
"""


@pytest.fixture
def root(tmp_path):
    """Lay out a machine with two CPUs, and a process with two threads that have waited 1.5 and 0.25 s."""
    for thread, waited_ns in ((7, 1_500_000_000), (8, 250_000_000)):
        folder = tmp_path / f"proc/self/task/{thread}"
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(f"9000 {waited_ns} 12\n")
    (tmp_path / "proc/stat").write_text(STAT)
    return tmp_path


@pytest.fixture
def ticks():
    return 1 / os.sysconf("SC_CLK_TCK")


def at(at_s, idle_s, own_s=0.0, *, cpus=2, stolen_s=0.0, counted_s=None, waits_s=(), preempted=0):
    counted_s = cpus * at_s if counted_s is None else counted_s
    return CpuTimes(
        at_s, (Account(cpus, idle_s, stolen_s, counted_s, TICK_S),), own_s, dict(waits_s), preempted=preempted
    )


START = at(0.0, 0.0, waits_s={1: 5.0, 2: 1.0}, preempted=3)


def test_accounts_come_from_proc_stat(root, ticks, monkeypatch):
    monkeypatch.setattr(cpu_times, "affinity", lambda: (0, 1))
    (everywhere,) = read_cpu_times(root).accounts

    assert everywhere.cpus == 2
    assert everywhere.idle_s == pytest.approx(720 * ticks)
    assert everywhere.stolen_s == pytest.approx(80 * ticks)
    assert everywhere.counted_s == pytest.approx(1000 * ticks)


def test_a_process_that_may_use_some_cpus_has_an_account_of_these(root, ticks, monkeypatch):
    monkeypatch.setattr(cpu_times, "affinity", lambda: (1,))
    everywhere, usable = read_cpu_times(root).accounts

    assert (everywhere.cpus, usable.cpus) == (2, 1)
    assert usable.idle_s == pytest.approx(410 * ticks)


def test_waits_of_threads_come_from_their_schedstat(root):
    assert read_cpu_times(root).waits_s == {7: 1.5, 8: 0.25}


def test_children_that_still_run_are_counted_and_so_are_theirs(root, ticks):
    without_s = read_cpu_times(root).children_s
    for process, children in (("self", "40"), ("40", "41"), ("41", "")):
        folder = root / "proc" / process / "task/7"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "children").write_text(f"{children} ")
    for process in ("40", "41"):
        (root / "proc" / process / "stat").write_text(f"{process} (a (b) c) R {'0 ' * 10}100 20 3 4 20 0 1")

    assert read_cpu_times(root).children_s - without_s == pytest.approx(2 * 127 * ticks, abs=0.05)


def test_children_that_run_beside_samples_are_others_and_compilers_before_them_are_not():
    after = replace(at(1.0, 1.0), children_s=1.0)

    assert cpu_loss(START, after).share == pytest.approx(0.0)
    assert cpu_loss(START, after, with_children=False).share == pytest.approx(0.5)


@pytest.mark.parametrize("text", ["", "nonsense\n", "cpu  1 2 3\n", "cpu  1 2 3 four 5 6 7 8\n"])
def test_without_readable_accounts_there_are_none(root, text):
    (root / "proc/stat").write_text(text)

    assert read_cpu_times(root) is None
    assert read_cpu_times(root / "nowhere") is None


def test_time_that_was_neither_idle_nor_own_is_lost():
    loss = cpu_loss(START, at(1.0, 0.5, own_s=1.1))

    assert loss.share == pytest.approx((2.0 - 0.5 - 1.1) / 2.0)
    assert loss.step == pytest.approx(TICK_S / 2.0)
    assert cpu_lost_share(START, at(1.0, 0.5, own_s=1.1)) == loss.share


def test_stolen_time_is_lost_where_the_kernel_counts_it_as_our_own_too():
    assert cpu_loss(START, at(1.0, 0.0, own_s=2.0, stolen_s=0.4)).share == pytest.approx(0.2)


@pytest.mark.parametrize(("idle_s", "share"), [(1.999, 0.0), (0.0, 1.0), (-9.0, 1.0)])
def test_a_share_is_between_nothing_and_all(idle_s, share):
    assert cpu_loss(START, at(1.0, idle_s, own_s=0.01 if idle_s > 0 else 0.0)).share == share


def test_the_busiest_account_counts():
    def both(moment, pinned_idle_s):
        return replace(moment, accounts=(*moment.accounts, Account(1, pinned_idle_s, 0.0, moment.at_s, TICK_S)))

    assert cpu_loss(both(START, 0.0), both(at(1.0, 1.9), 0.2)).share == pytest.approx(0.8)


def test_waits_count_as_far_as_others_had_the_cores():
    waits_s = {1: 5.3, 2: 1.2, 3: 99.0}  # the third thread is new
    contended, alone = at(1.0, 0.0, 1.0, waits_s=waits_s, preempted=10), at(1.0, 0.0, 2.0, waits_s=waits_s)

    assert cpu_loss(START, contended).waited_share == pytest.approx(0.5)
    assert cpu_loss(START, contended).preempted == 7
    assert cpu_loss(START, alone).waited_share == 0.0


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (None, START, UNREADABLE),
        (START, None, UNREADABLE),
        (START, at(0.01, 0.0), "10.0 ms are too short to see what used the CPU"),
        (START, START, "0 s are too short to see what used the CPU"),
        (START, at(1.0, 0.0, counted_s=0.0), "the counters in /proc/stat do not advance"),
        (START, at(1.0, 1.0, cpus=3), "CPUs were added or removed during the measurement"),
    ],
)
def test_what_cannot_be_known_has_a_reason(before, after, reason):
    loss = cpu_loss(before, after)

    assert (loss.share, loss.reason) == (None, reason)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/stat")
def test_a_busy_process_on_every_core_is_seen_within_some_ticks():
    """They are started by a process that ends: children would count as this one."""
    cores = len(affinity())
    busy = "[sys.executable, '-c', 'while True: pass']"
    code = f"import subprocess, sys\nfor _ in range({cores}): print(subprocess.Popen({busy}, stdout=2).pid)"
    started = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.split()
    try:
        wait_until(lambda: all(sum(psutil.Process(int(process)).cpu_times()[:2]) > 0.1 for process in started))
        before, began_s = read_cpu_times(), time.monotonic()
        wait_until(lambda: time.monotonic() > began_s + 10 * TICK_S)
        loss = cpu_loss(before, read_cpu_times())
    finally:
        for process in started:
            os.kill(int(process), signal.SIGKILL)

    assert len(started) == cores
    if loss.share is None:
        pytest.skip(f"{loss.reason} on this machine")
    assert loss.share > 0.5
