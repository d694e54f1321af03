"""The state of devices as fakes tell it."""

import os

import pytest

from gpuexplore.core.model import Device, Telemetry
from gpuexplore.hardware import governor, nvml, read
from gpuexplore.hardware.telemetry import _read_cpu, _read_gpu
from tests.hardware.fake_nvml import FakeGpu, FakeNvml


def gpu(**facts):
    return FakeNvml([FakeGpu("NVIDIA L4", "GPU-1", 1, **facts)])


def test_a_gpu_tells_its_clock_and_nothing_it_does_not_know():
    assert _read_gpu(gpu(), "GPU-1") == Telemetry(clock_hz=1410e6, foreign_processes=0)
    assert _read_gpu(gpu(), "GPU-2") == Telemetry()


def test_throttle_reasons_are_words_and_idling_is_none():
    assert _read_gpu(gpu(reasons=0x1 | 0x4 | 0x40), "GPU-1").throttle_reasons == (
        "software power cap",
        "hardware thermal slowdown",
    )


def test_this_process_is_not_foreign_to_itself_and_ids_of_another_namespace_say_nothing():
    others = gpu(pids=(os.getpid(), 1))
    assert _read_gpu(others, "GPU-1").foreign_processes in (0, 1)  # 0 where this test's parent is process 1
    assert _read_gpu(gpu(pids=(2**31 - 1,)), "GPU-1").foreign_processes is None


def test_a_cpu_tells_its_fastest_clock_with_cpufreq(tmp_path):
    assert (_read_cpu(tmp_path).clock_hz, governor(tmp_path)) == (None, None)
    for core, khz in enumerate(("1500000", "4200000")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(khz)
        (folder / "scaling_governor").write_text("powersave\n")
    assert _read_cpu(tmp_path).clock_hz == 4.2e9
    assert governor(tmp_path) == "powersave"


def test_this_machines_cpu_is_read_without_an_error():
    assert isinstance(read(Device("cpu", "cpu", "here")), Telemetry)


@pytest.mark.parametrize(("sm_mhz", "clock_hz"), [(1980, 1.98e9), (None, None)])
def test_highest_clock_is_the_drivers_and_unknown_where_it_does_not_tell(monkeypatch, sm_mhz, clock_hz):
    monkeypatch.setattr(nvml, "load_nvml", lambda: FakeNvml([FakeGpu("a GPU", "GPU-0", 2**30, sm_mhz=sm_mhz)]))

    assert nvml.highest_clock_hz("GPU-0") == clock_hz
    assert nvml.highest_clock_hz("GPU-1") is None
