"""What is said where there is no Linux."""

import pytest

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.jobs.engines import worker_process
from gpuexplore.jobs.engines.local import LocalEngine
from tests.measure.fakes import CPU


def test_a_worker_needs_linux_and_says_what_measures_elsewhere(monkeypatch):
    monkeypatch.setattr(worker_process.sys, "platform", "darwin")
    engine = LocalEngine([CPU])
    try:
        with pytest.raises(GpuExploreError, match=r"needs Linux, but this is .*: in Python, gpuexplore\.run"):
            engine.start(CPU)
    finally:
        engine.close()
