"""The end of a worker process by its exit code, and where none can be started."""

import pytest

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Status
from gpuexplore.jobs.engines import worker_process
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.jobs.engines.worker_process import _failure_of_exit, _oom_kills
from tests.measure.fakes import CPU


@pytest.fixture
def killed_by_linux(tmp_path, monkeypatch):
    """Return how to set the number of processes that Linux ended for want of memory."""
    vmstat = tmp_path / "vmstat"
    monkeypatch.setattr(worker_process, "VMSTAT", vmstat)
    return lambda count: vmstat.write_text(f"nr_free_pages 12\noom_kill {count}\n", encoding="ascii")


def test_worker_that_linux_ended_for_want_of_memory_is_out_of_memory(killed_by_linux):
    killed_by_linux(4)

    assert _failure_of_exit(-9, 3).status is Status.OUT_OF_MEMORY
    assert _failure_of_exit(-9, 4).status is Status.CRASHED
    assert _failure_of_exit(-11, 3).status is Status.CRASHED


def test_without_the_count_either_may_be_the_cause(killed_by_linux):
    assert _oom_kills() is None
    assert _failure_of_exit(-9, None).reason == "the worker was ended by SIGKILL: out of memory, or killed by a user"


def test_a_worker_needs_linux_and_says_what_measures_elsewhere(monkeypatch):
    monkeypatch.setattr(worker_process.sys, "platform", "darwin")
    engine = LocalEngine([CPU])
    try:
        with pytest.raises(GpuExploreError, match=r"needs Linux, but this is .*: in Python, gpuexplore\.run"):
            engine.start(CPU)
    finally:
        engine.close()
