"""A system whose /proc cannot be read, as in a hardened container: what is unknown is said, and measuring goes on."""

import psutil
import pytest

from gpuexplore.hardware.cpu import ACCOUNTING_UNREADABLE, cpu_device
from gpuexplore.hardware.cpu_ceiling.cache import with_ceiling
from gpuexplore.hardware.cpu_ceiling.ceiling import Ceiling
from gpuexplore.hardware.cpu_times import read_cpu_times
from gpuexplore.jobs.engines import worker_process
from gpuexplore.measure.conditions import environment


def unreadable(*_):
    raise FileNotFoundError(2, "No such file or directory", "/proc/meminfo")


@pytest.fixture
def _no_proc(monkeypatch):
    for name in ("virtual_memory", "pids"):
        monkeypatch.setattr(psutil, name, unreadable)


def test_device_says_that_nobody_watches_over_its_measurements_also_once_it_has_peaks(tmp_path):
    device = cpu_device(tmp_path)
    ceiling = Ceiling("a CPU", 1, {"fp64": 1e12, "fp32": 1e12}, 1e12, 1, "2026-01-02T03:04:05+00:00")

    assert device.notes == (ACCOUNTING_UNREADABLE,)
    assert device.identity is None
    assert read_cpu_times(tmp_path) is None
    assert with_ceiling(with_ceiling(device, ceiling), ceiling).notes.count(ACCOUNTING_UNREADABLE) == 1


def test_device_of_a_readable_system_says_nothing_of_the_kind():
    assert cpu_device().notes == ()


@pytest.mark.usefixtures("_no_proc")
def test_memory_is_what_the_c_library_states():
    device = cpu_device()

    assert 2**20 < environment.free_bytes(device) < device.memory_bytes


@pytest.mark.usefixtures("_no_proc")
def test_memory_is_unknown_where_nothing_states_it(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else -1)

    assert cpu_device().memory_bytes is None
    assert environment.free_bytes(cpu_device()) is None


@pytest.mark.usefixtures("_no_proc")
def test_processes_that_nobody_lists_are_left_with_a_warning(caplog):
    assert list(worker_process._marked("mark")) == []
    assert "The system lists no processes" in caplog.text
