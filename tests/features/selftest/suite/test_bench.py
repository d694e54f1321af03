"""The bench of a self-test: who has the device, and whether it is lost."""

import getpass
from dataclasses import replace

import pytest

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.features.selftest.suite import probes
from gpuexplore.features.selftest.suite.contract import Bench
from gpuexplore.hardware import nvml
from gpuexplore.jobs.locks import DIRECTORY_VARIABLE, device_lock
from gpuexplore.measure.candidates.failure import check_context
from tests.hardware.fake_nvml import FakeGpu, FakeNvml
from tests.measure.fakes import CPU, GPU


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """Return the bench of a GPU that nobody uses."""
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    return Bench(GPU, is_quick=True, folder=tmp_path)


def test_report_names_the_process_that_has_the_device_and_not_its_user(bench):
    assert bench.no_answer() == "out of time"
    with device_lock(GPU):
        told, holder = bench.no_answer(), device_lock(GPU).holder()

    assert told == f"out of time: cuda:0 is being used by process {holder.pid}"
    assert getpass.getuser() in str(holder), "the screen may name who it is"


def test_gpu_is_lost_for_the_self_test_when_it_is_for_the_core_that_measures_and_a_cpu_never(
    bench, monkeypatch, tmp_path
):
    board = FakeGpu("a made-up GPU", GPU.uuid, 2**30)
    monkeypatch.setattr(nvml, "load_nvml", lambda: FakeNvml([board]))
    assert bench.lost() is None

    board.lost = True
    with pytest.raises(GpuExploreError) as told:
        check_context(GPU)
    assert bench.lost() == str(told.value)

    assert Bench(replace(CPU, uuid="GPU-0"), is_quick=True, folder=tmp_path).lost() is None


def test_copy_is_of_the_cache_that_is_assumed_everywhere_where_nothing_tells_it(monkeypatch):
    class Seen(Exception):
        pass

    def keep(operation, shape, dtype, data):
        raise Seen(shape["n"])

    monkeypatch.setattr(probes, "make_inputs", keep)
    with pytest.raises(Seen) as seen:
        next(probes._probe_flush(replace(CPU, cache_bytes=None), None, "numpy", "numpy"))

    assert seen.value.args[0] * 8 == 64 * 2**20 // 2
