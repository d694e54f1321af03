"""What the tests of the command line share: a home of their own, and how to read what a command prints."""

import pytest

from gpuexplore.cli import main
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.hardware.cpu_ceiling.cache import save_ceiling
from gpuexplore.hardware.cpu_ceiling.ceiling import Ceiling
from gpuexplore.measure import process_settings
from tests.cli import strict


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Give every test a home with a made-up ceiling, so that none has to be measured."""
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    for name, value in process_settings().items():  # main() sets them for good otherwise
        monkeypatch.setenv(name, value)
    cpu = cpu_device()
    save_ceiling(cpu, Ceiling(cpu.name, cpu.cores, {"fp64": 1e12, "fp32": 1e12}, 1e12, 1, "2026-01-02T03:04:05+00:00"))
    return tmp_path / "home"


@pytest.fixture
def answered(capsys):
    """Return how to run a command that prints JSON: its exit code and the object."""

    def answer(*words):
        code = main(words)
        return code, strict.loads(capsys.readouterr().out)

    return answer
