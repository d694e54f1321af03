"""Faults of worker processes that take a namespace of process numbers, or real time, to show."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuexplore.core.model import Result, Status
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.faults

REUSED_NUMBER = """
import os, subprocess, sys, time
from pathlib import Path
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.core.model import Case, Device, Result, Shape

def measured():
    events = []
    engine.measure([Case("matmul", Shape.of(n=1), "fp32", "fine", "fake")], events.append, lambda: False)
    return events[-1]

if __name__ == "__main__":
    engine = LocalEngine([Device("fake", "fake", "x")], runner="tests.jobs.fake_runner")
    worker = int(measured().measurement.min_s)
    os.kill(worker, 9)
    deadline_s = time.monotonic() + 2  # in which whoever started it may reap it
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    Path("/proc/sys/kernel/ns_last_pid").write_text(str(worker - 1))
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    print(measured().status, bystander.poll())
    bystander.kill()
    engine.close()
"""
NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")


@pytest.fixture
def in_namespace(tmp_path):
    """Return how to run a script where it can decide which number the next process gets."""
    if not _is_allowed():
        pytest.skip("namespaces of process numbers are not allowed here")

    def run(script):
        path = tmp_path / "script.py"
        path.write_text(script)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [*NAMESPACE, sys.executable, str(path)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=DEADLINE_S
        ).stdout

    return run


CGROUPS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))


@pytest.fixture
def small_cgroup(monkeypatch):
    """Make a control group of 200 MB, which a process may join."""
    for root, limit in CGROUPS:
        directory = Path(root) / f"gpuexplore-test-{os.getpid()}"
        try:
            directory.mkdir()
        except OSError:
            continue
        if (directory / limit).exists():
            (directory / limit).write_text("200000000")
            monkeypatch.setenv("SMALL_CGROUP", str(directory))
            yield
            directory.rmdir()
            return
        directory.rmdir()
    pytest.skip("control groups of memory cannot be made here")


def _is_allowed():
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


def test_process_that_got_the_number_of_an_idle_worker_that_died_lives_on(in_namespace):
    assert in_namespace(REUSED_NUMBER).strip() == "ok None"


def test_worker_that_linux_ends_for_want_of_memory_is_called_so_and_the_next_case_is_measured(
    small_cgroup, engine_with, cases_of
):
    events = []

    with engine_with() as engine:
        engine.measure(cases_of("fill-memory", "fine"), events.append, lambda: False)

    results = {event.case.implementation: event for event in events if isinstance(event, Result)}
    assert results["fill-memory"].status is Status.OUT_OF_MEMORY
    assert results["fill-memory"].reason == "Linux ended the worker: its memory was exhausted"
    assert results["fine"].status is Status.OK
