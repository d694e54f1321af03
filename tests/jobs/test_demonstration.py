"""A mistake is made in a process of its own, while nothing else is measured on its device."""

import pytest

from gpuexplore.errors import GpuExploreError, Unsupported
from gpuexplore.jobs import demonstration
from gpuexplore.jobs.locks import device_lock
from gpuexplore.model import Device

CPU = Device("cpu", "cpu", "the CPU of a test")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path / "locks"))


def test_the_process_answers_with_an_observation():
    seen = demonstration.run_here("flops-n3", CPU)

    assert (seen.mistake, seen.wrong.value, seen.right.value) == ("flops-n3", 1e8, 2e8)
    assert not device_lock(CPU).is_held()


def test_what_cannot_be_made_is_told_with_its_reason():
    with pytest.raises(Unsupported, match="'no-clock': accepted are"):
        demonstration.run_here("no-clock", CPU)


def test_a_process_that_fails_is_told_with_its_last_words(monkeypatch):
    monkeypatch.setattr(demonstration, "PROCESS", "gpuexplore.no_such_module")

    with pytest.raises(GpuExploreError, match=r"flops-n3 failed: .*no_such_module"):
        demonstration.run_here("flops-n3", CPU)


def test_a_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(demonstration, "LIMIT_S", 0.01)

    with pytest.raises(GpuExploreError, match=r"flops-n3 took longer than 10\.0 ms"):
        demonstration.run_here("flops-n3", CPU)


def test_a_device_that_is_measured_all_the_time_is_not_disturbed(monkeypatch):
    monkeypatch.setattr(demonstration, "WAIT_S", 0.01)

    with device_lock(CPU), pytest.raises(GpuExploreError, match="cpu is being measured"):
        demonstration.run_here("flops-n3", CPU)
