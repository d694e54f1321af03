"""Processes that work for pages give way to measurements: they stand still, and go on where they were."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from gpuexplore.errors import Unsupported
from gpuexplore.jobs import beside
from gpuexplore.jobs.beside import run_beside
from gpuexplore.jobs.compiling import CPU
from gpuexplore.jobs.locks import asking_for_cpu, device_lock

COUNT = "import sys\nprint(sys.stdin.read(), flush=True)\nx = 0\nwhile x < {}: x += 1\nprint(x)"


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path))


def counting(to=10):
    return [sys.executable, "-c", COUNT.format(to)]


def working(command, **given):
    with device_lock(CPU) as cpu:
        return run_beside(command, timeout=60, cpu=cpu, **given)


def test_what_it_prints_and_how_it_ended_is_returned():
    with device_lock(CPU) as cpu:
        done = run_beside(counting(), input=b"given", timeout=60, cpu=cpu)

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"given", b"10"], b"")


def test_more_than_a_pipe_holds_reaches_a_process_that_reads_it_late(monkeypatch):
    monkeypatch.setattr(beside, "SLICE_S", 0.001)  # it has not started by then
    given = b"x" * 4 * 2**20

    assert working(counting(), input=given).stdout.split() == [given, b"10"]


def test_it_stands_still_while_a_measurement_has_the_cpu_and_goes_on_after_it():
    with ThreadPoolExecutor(1) as page:
        work = page.submit(working, counting(3_000_000), input=b"")
        while not psutil.Process().children():
            time.sleep(0.01)
        measuring = device_lock(CPU)
        with asking_for_cpu():
            measuring.acquire(timeout=20)
        (child,) = psutil.Process().children()
        before = sum(child.cpu_times()[:2])
        time.sleep(0.3)
        after = sum(child.cpu_times()[:2])
        assert child.status() == psutil.STATUS_STOPPED
        measuring.release()
        done = work.result(60)

    assert after == before
    assert done.stdout.split() == [b"3000000"]


def test_who_is_never_let_on_gives_up_and_leaves_no_process(monkeypatch):
    monkeypatch.setattr(beside, "GIVE_UP_S", 0.2)
    with ThreadPoolExecutor(1) as page, asking_for_cpu():
        work = page.submit(working, counting(10**12), input=b"")
        while not psutil.Process().children():
            time.sleep(0.01)
        with device_lock(CPU), pytest.raises(Unsupported, match="the CPU is being measured"):
            work.result(20)

    assert psutil.Process().children() == []


def test_who_works_too_long_is_ended_and_what_it_printed_is_told():
    with device_lock(CPU) as cpu, pytest.raises(subprocess.TimeoutExpired) as found:
        run_beside(counting(10**12), input=b"given", timeout=1.5, cpu=cpu)

    assert found.value.output == b"given\n"
    assert psutil.Process().children() == []


def test_two_ask_and_neither_waits_for_the_other():
    with asking_for_cpu(), asking_for_cpu():
        assert beside.cpu_is_asked_for()

    assert not beside.cpu_is_asked_for()
