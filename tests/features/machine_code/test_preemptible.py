"""Processes that work for pages give way to measurements: they are suspended, and go on where they were."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from types import SimpleNamespace

import psutil
import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.features.machine_code import compiling
from gpuexplore.features.machine_code.compiling import CPU, run_preemptible
from gpuexplore.jobs.locks import asking_for_cpu, device_lock
from tests.waiting import DEADLINE_S, wait_until

COUNT = "import sys\nprint(sys.stdin.read(), flush=True)\nx = 0\nwhile x < {}: x += 1\nprint(x)"
UNTIL = "import os, sys\nsys.stdin.read()\nopen({0!r}, 'w').close()\nwhile os.path.exists({0!r}): pass\nprint('on')"
LOOKS = 10


def counting(to=10):
    return [sys.executable, "-c", COUNT.format(to)]


def started():
    """Return the programs above that this process has started: others of its children are of other tests."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            found += [child] if "sys.stdin.read()" in " ".join(child.cmdline()) else []
    return found


def working(command, **given):
    with device_lock(CPU) as cpu:
        return run_preemptible(command, timeout=DEADLINE_S, cpu=cpu, **given)


def test_what_it_prints_and_how_it_ended_is_returned():
    with device_lock(CPU) as cpu:
        done = run_preemptible(counting(), input=b"given", timeout=DEADLINE_S, cpu=cpu)

    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"given", b"10"], b"")


def test_more_than_a_pipe_holds_reaches_a_process_that_reads_it_late(monkeypatch):
    monkeypatch.setattr(compiling, "SLICE_S", 0.001)  # it has not started by then
    given = b"x" * 4 * 2**20

    assert working(counting(), input=given).stdout.split() == [given, b"10"]


def test_it_stands_still_while_a_measurement_has_the_cpu_and_goes_on_after_it(tmp_path):
    at_work = tmp_path / "at work"
    with ThreadPoolExecutor(1) as page:
        work = page.submit(working, [sys.executable, "-c", UNTIL.format(str(at_work))], input=b"")
        wait_until(at_work.exists)
        measuring = device_lock(CPU)
        with asking_for_cpu():
            measuring.acquire(timeout=DEADLINE_S)
        (child,) = started()
        wait_until(lambda: child.status() == psutil.STATUS_STOPPED)
        before = sum(child.cpu_times()[:2])
        at_work.unlink()  # it would end, if it went on
        assert not work.done()
        after = sum(child.cpu_times()[:2])
        assert child.status() == psutil.STATUS_STOPPED
        measuring.release()
        done = work.result(DEADLINE_S)

    assert after == before
    assert done.stdout.split() == [b"on"]


def test_who_is_never_let_on_gives_up_and_leaves_no_process(monkeypatch):
    monkeypatch.setattr(compiling, "GIVE_UP_S", 0.2)
    with ThreadPoolExecutor(1) as page, asking_for_cpu():
        work = page.submit(working, counting(10**12), input=b"")
        wait_until(started)
        with device_lock(CPU), pytest.raises(Unsupported, match="the CPU is being measured"):
            work.result(DEADLINE_S)

    assert started() == []


def test_who_works_too_long_is_ended_and_what_it_printed_is_told(tmp_path, monkeypatch):
    printed = tmp_path / "printed"
    program = f"import sys\nprint(sys.stdin.read(), flush=True)\nopen({str(printed)!r}, 'w').close()\nwhile True: pass"
    looks = count(1)  # a clock that stands until something was printed
    monkeypatch.setattr(compiling, "time", SimpleNamespace(monotonic=lambda: next(looks) if printed.exists() else 0))
    with device_lock(CPU) as cpu, pytest.raises(subprocess.TimeoutExpired) as found:
        run_preemptible([sys.executable, "-c", program], input=b"given", timeout=LOOKS, cpu=cpu)

    assert found.value.output == b"given\n"
    assert started() == []


def test_two_ask_and_neither_waits_for_the_other():
    with asking_for_cpu(), asking_for_cpu():
        assert compiling.cpu_is_asked_for()

    assert not compiling.cpu_is_asked_for()
