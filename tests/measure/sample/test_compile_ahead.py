"""Kernels compiled by two processes before the first run: which, how their seconds are reported, and what may fail."""

import subprocess
import sys

import pytest

from gpuexplore.core.model import Case
from gpuexplore.hardware import discover
from gpuexplore.measure import KERNEL_CACHE_VARIABLE
from gpuexplore.measure.sample.compile_ahead import SMALL, call_once, compile_ahead
from gpuexplore.measure.sample.slow_cases import take_first_calls_s
from gpuexplore.operations import operation_named

CPU = next(device for device in discover() if device.kind == "cpu")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv(KERNEL_CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return tmp_path


def case(dtype, implementation="numba-cpu", size=64):
    return Case("copy", operation_named("copy").shape_of_size(size), dtype, implementation, CPU.id)


def notes(folder):
    return sorted(path.name.rpartition("copy-")[2] for path in folder.glob("compiled/*"))


def test_kernels_are_compiled_once_each_and_part_of_them_by_another_process(folder):
    cases = [case(dtype, size=size) for size in (64, 128) for dtype in ("fp32", "bf16")]

    compile_ahead(cases, CPU)

    assert notes(folder) == ["numba-cpu-bf16", "numba-cpu-fp32"]
    assert list(folder.glob("copy_*/*.nbi"))  # which only the other process writes there: this one began elsewhere
    assert all(take_first_calls_s(each) > 0 for each in cases[:2])


def test_compiled_kernels_are_not_compiled_again(folder, monkeypatch):
    for dtype in ("fp32", "bf16"):
        call_once(case(dtype), CPU, SMALL)
    monkeypatch.setattr(subprocess, "Popen", None)

    compile_ahead([case(dtype) for dtype in ("fp32", "bf16")], CPU)

    assert len(notes(folder)) == 2


@pytest.mark.parametrize(
    "cases",
    [
        [case("fp32")],
        [case("fp32"), case("fp32", size=128)],
        [case(dtype, "numpy") for dtype in ("fp32", "bf16")],
        [case(dtype, "numba-cuda") for dtype in ("fp32", "bf16")],
        [case(dtype, "unknown") for dtype in ("fp32", "bf16")],
    ],
    ids=["one kernel", "two sizes", "nothing to compile", "of a GPU", "unknown"],
)
def test_no_process_is_started_for(cases, folder, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)

    compile_ahead(cases, CPU)

    assert notes(folder) == []


def test_without_files_of_kernels_nothing_is_compiled_ahead(folder, monkeypatch):
    monkeypatch.delenv(KERNEL_CACHE_VARIABLE)
    monkeypatch.setattr(subprocess, "Popen", None)

    compile_ahead([case("fp32"), case("bf16")], CPU)

    assert notes(folder) == []


def test_other_process_that_ends_at_once_leaves_its_kernels_to_the_run(folder, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")

    compile_ahead([case("fp32"), case("bf16")], CPU)

    assert notes(folder) == ["numba-cpu-bf16"]


def test_kernel_that_fails_is_left_to_its_case(folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr("gpuexplore.measure.sample.compile_ahead.build_candidate", fail)

    assert call_once(case("fp32"), CPU, SMALL) == 0
    assert notes(folder) == []
