"""What the worker promises, without a process of its own."""

import os
import resource
import subprocess
import sys

import pytest

from gpuexplore.core import pools
from gpuexplore.core.model import Device, Result, Status
from gpuexplore.core.serialization import write_json
from gpuexplore.hardware import TORCH_KINDS
from gpuexplore.jobs import worker
from gpuexplore.jobs.engines.worker_process import THREAD_VARIABLES, _worker_environment
from gpuexplore.jobs.journal import JOURNAL, TASK, Begun, Ended, WorkerTask, current_case_word, journal_reader
from gpuexplore.jobs.worker import perform
from tests.waiting import DEADLINE_S


@pytest.fixture(autouse=True)
def no_priority_here(monkeypatch):
    """Leave the priority of the process that runs the tests as it is."""
    monkeypatch.setattr(worker, "_raise_priority", lambda: None)


def test_every_case_ends_with_a_result_even_when_the_runner_raises(tmp_path, cases_of):
    fine, raising, late = cases = cases_of("fine", "raising", "fine-too")
    write_json(tmp_path / TASK, WorkerTask("tests.jobs.fake_runner", Device("fake", "fake", "x"), tuple(cases)))
    current_case_word(tmp_path, create=True)

    perform(tmp_path)

    begun, *events, ended = journal_reader(tmp_path)()
    results = {event.case: event.status for event in events if isinstance(event, Result)}
    assert isinstance(begun, Begun)
    assert results == {fine: Status.OK, raising: Status.ERROR, late: Status.ERROR}
    assert ended == Ended()


@pytest.mark.parametrize(
    ("device", "visible"),
    [
        (Device("cuda:1", "cuda", "GPU", uuid="GPU-12"), "GPU-12"),
        (Device("cuda:1", "cuda", "GPU"), "1"),
        (Device("cpu", "cpu", "CPU"), ""),
    ],
)
def test_worker_sees_its_own_device_only(device, visible):
    environment = _worker_environment(device)

    assert environment["CUDA_VISIBLE_DEVICES"] == visible
    assert environment["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert len({environment[thread_variable] for thread_variable in THREAD_VARIABLES}) == 1


@pytest.mark.parametrize("kind", TORCH_KINDS)
def test_worker_of_a_device_that_torch_numbers_sees_what_was_seen_when_it_was_found(kind):
    assert "CUDA_VISIBLE_DEVICES" not in _worker_environment(Device(f"{kind}:1", kind, "GPU", uuid="GPU-12"))


@pytest.mark.skipif(not worker.AUTOGROUP.exists(), reason="this system shares cores between processes only")
@pytest.mark.parametrize("led_by", ["the parent", "another"])
def test_the_session_of_a_supervisor_goes_first_and_that_of_a_shell_stays_as_it_is(led_by):
    told = (
        "import os; from gpuexplore.jobs import worker; worker._raise_priority();"
        "print(os.getpriority(os.PRIO_PROCESS, 0), worker.AUTOGROUP.read_text())"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {told!r}], check=True)"
    between = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {parent!r}], check=True)"
    command = [sys.executable, "-c", parent if led_by == "the parent" else between]
    nice, *_, of_session = subprocess.check_output(command, start_new_session=True, text=True).split()

    assert of_session == (nice if led_by == "the parent" else "0")


@pytest.mark.skipif(not worker.AUTOGROUP.exists(), reason="this system shares cores between processes only")
def test_worker_lets_pages_go_first_until_it_measures_and_goes_first_then():
    told = (
        "import os; from gpuexplore.jobs import worker; priority = lambda: os.getpriority(os.PRIO_PROCESS, 0);"
        "worker._lower_priority(); a = priority(), worker.AUTOGROUP.read_text().split()[-1]; worker._raise_priority();"
        "print(*a, priority(), worker.AUTOGROUP.read_text().split()[-1])"
    )
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {told!r}], check=True)"
    words = subprocess.check_output([sys.executable, "-c", parent], start_new_session=True, text=True).split()
    may = os.getuid() == 0

    assert words == ([*2 * [str(worker.LOADING_NICE)], *2 * [str(pools.PRIORITY)]] if may else ["0", "0", "0", "0"])


@pytest.mark.skipif(not pools.THREADS.is_dir(), reason="this system has no priority for each thread")
def test_threads_that_a_pool_has_already_go_first_too():
    told = (
        "import os, numpy as np; a = np.ones((300, 300)); a @ a; threads = os.listdir('/proc/self/task');"
        "from gpuexplore.jobs import worker; worker._raise_priority();"
        "print(len(threads), *{os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in threads})"
    )
    count, *found = map(int, subprocess.check_output([sys.executable, "-c", told], text=True).split())

    assert count > 1 or len(os.sched_getaffinity(0)) == 1
    assert found == [pools.PRIORITY if os.getuid() == 0 else os.getpriority(os.PRIO_PROCESS, 0)]


def test_limits_are_put_back_after_a_group():
    before = {which: resource.getrlimit(which) for which in worker.LIMITS}
    soft, hard = before[resource.RLIMIT_NOFILE]

    with worker._limits_put_back():
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))

    assert {which: resource.getrlimit(which) for which in worker.LIMITS} == before


def test_task_of_an_engine_that_ended_before_the_worker_began_is_left(tmp_path, cases_of):
    task = WorkerTask("tests.jobs.fake_runner", Device("fake", "fake", "x"), tuple(cases_of("fine")))
    write_json(tmp_path / TASK, task)
    command = (sys.executable, "-P", "-m", "gpuexplore.jobs.worker", "tests.jobs.fake_runner", "fake")

    subprocess.run(command, input=f"{tmp_path}\n", text=True, check=True, stdout=subprocess.PIPE, timeout=DEADLINE_S)

    assert not (tmp_path / JOURNAL).exists()
