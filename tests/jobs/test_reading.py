"""Files of strangers end the process that reads them, and never the one that asked."""

import os
import time
from pathlib import Path

import pytest

from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.jobs import reading
from gpuexplore.jobs.reading import read_apart
from gpuexplore.jobs.run_sources import runs_in
from tests.kernels.files.kept import TWO

THERE = "tests.jobs.read_apart"


@pytest.fixture(autouse=True)
def found_here(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))


def test_a_function_is_called_in_another_process_that_steps_back():
    length, pid, nice = read_apart(f"{THERE}:length_of", b"12345")

    assert (length, nice >= reading.NICE) == (5, True)
    assert pid != os.getpid()


def test_what_it_raises_on_purpose_is_raised_here():
    with pytest.raises(Unsupported, match="said by the file"):
        read_apart(f"{THERE}:refusing", b"")


@pytest.mark.parametrize("function", ["greedy", "endless", "broken"])
def test_too_much_memory_or_time_and_a_failure_are_a_sentence(function):
    began_s = time.monotonic()

    with pytest.raises(InvalidInput, match="cannot be read" if function == "broken" else "takes more than"):
        read_apart(f"{THERE}:{function}", b"", cpu_s=1 if function == "endless" else reading.CPU_S)
    assert time.monotonic() - began_s < 60


def test_files_of_pages_come_back_whole():
    assert read_apart("gpuexplore.kernels.files:read_kernel_file", TWO.read_bytes()).kernels[1].name == "reversed"
    with pytest.raises(InvalidInput, match="not a JSON object"):
        runs_in("a.json", b"[1]")
