"""Kernels compiled in a process of their own: once, with the reason where they cannot be."""

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.core.model import Device
from gpuexplore.features.machine_code import compiling
from gpuexplore.features.machine_code.compiling import Target, compiled_kernel, compiled_kernels
from gpuexplore.jobs.locks import compiler_lock, device_lock
from tests.jobs.conftest import home

TARGET = Target("matmul", "numba-cuda-shared", "fp32", "8.0", (16, 16))
OTHER = Target("matmul", "numba-cuda-shared", "fp32", "9.0", (16, 16))
OLD = Target("matmul", "numba-cuda-shared", "fp32", "3.7")
ANSWER = {
    "compute_capability": "8.0",
    "target": "sm_80",
    "toolkit": "13.0",
    "ptx": "text",
    "cubin": "f0VMRg==",
    "registers_per_thread": 40,
    "shared_bytes": 2048,
    "dynamic_shared_bytes": 1024,
    "local_bytes": 0,
    "spill_store_bytes": 4,
    "spill_load_bytes": 8,
}


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))


def lines_of(answers):
    return "".join(json.dumps(answer) + "\n" for answer in answers).encode()


@pytest.fixture
def asked(monkeypatch):
    """Stand in for the process; what is older than 7.5 it cannot do."""
    seen = []

    def run(command, *, input, **_):
        targets = json.loads(input)
        seen.append(targets)
        answers = [
            {"reason": "too old"} if target["compute_capability"] < "7.5" else {"compiled": ANSWER}
            for target in targets
        ]
        return SimpleNamespace(returncode=0, stdout=lines_of(answers), stderr=b"")

    monkeypatch.setattr(compiling, "run_preemptible", run)
    return seen


def test_a_kernel_is_compiled_once_and_kept(asked):
    first = compiled_kernel(TARGET)

    assert (first.registers_per_thread, first.spill_bytes, first.cubin) == (40, 12, b"\x7fELF")
    assert compiled_kernel(TARGET) == first
    assert len(asked) == 1


def test_several_targets_take_one_process_and_keep_their_order(asked):
    old, new = compiled_kernels([OLD, TARGET])

    assert (old, new.registers_per_thread) == ("too old", 40)
    assert len(asked) == 1


def test_a_reason_is_an_error_for_one_kernel_and_is_kept_for_a_minute_only(asked):
    for _ in range(2):
        with pytest.raises(Unsupported, match="too old"):
            compiled_kernel(OLD)
    assert len(asked) == 1

    minute_ago_s = time.time() - 61
    os.utime(compiling._path(OLD), (minute_ago_s, minute_ago_s))
    with pytest.raises(Unsupported, match="too old"):
        compiled_kernel(OLD)
    assert len(asked) == 2


@pytest.mark.parametrize(("target", "answer"), [(TARGET, "CompiledKernel"), (OLD, "str")])
def test_twenty_who_ask_at_once_share_one_compiler(asked, target, answer):
    with ThreadPoolExecutor(20) as askers:
        answers = list(askers.map(lambda _: compiled_kernels([target])[0], range(20)))

    assert {type(found).__name__ for found in answers} == {answer}
    assert asked == [[target_json(target)]]


def target_json(target):
    return json.loads(json.dumps(asdict(target)))


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (lambda: device_lock(Device("cpu", "cpu", "measured")), "the CPU is being measured: try again in a minute"),
        (compiler_lock, "other kernels are being compiled: try again in a minute"),
    ],
)
def test_nothing_is_compiled_while_the_cpu_is_measured_or_other_kernels_are_compiled(asked, monkeypatch, lock, said):
    for setting in ("CPU_WAIT_S", "COMPILER_WAIT_S"):
        monkeypatch.setattr(compiling, setting, 0.1)
    with lock():
        assert compiled_kernels([TARGET]) == [said]

    assert asked == []
    assert compiled_kernel(TARGET).registers_per_thread == 40


def test_a_file_that_was_cut_off_and_a_change_of_the_sources_or_the_compiler_compile_again(asked, monkeypatch):
    compiled_kernel(TARGET)
    compiling._path(TARGET).write_text("{", encoding="utf-8")
    assert compiled_kernel(TARGET).registers_per_thread == 40
    assert len(asked) == 2

    monkeypatch.setattr(compiling, "fingerprint", lambda: ["another"])
    compiled_kernel(TARGET)
    assert len(asked) == 3


def test_a_process_that_fails_gives_its_last_words(monkeypatch):
    failed = SimpleNamespace(returncode=1, stdout=b"", stderr=b"Traceback\nMemoryError: no room")
    monkeypatch.setattr(compiling, "run_preemptible", lambda *_, **__: failed)

    assert compiled_kernels([TARGET]) == ["the compiler failed: MemoryError: no room"]


def test_a_process_that_never_ends_is_given_up_and_what_it_compiled_is_kept(asked, monkeypatch):
    def run(*_, timeout, **__):
        raise subprocess.TimeoutExpired("python", timeout, output=lines_of([{"compiled": ANSWER}]) + b'{"compi')

    with monkeypatch.context() as patch:
        patch.setattr(compiling, "run_preemptible", run)
        first, second = compiled_kernels([TARGET, OTHER])

    assert first.registers_per_thread == 40
    assert second == "the compiler took longer than 2 min: try again when this machine is less busy"
    assert compiled_kernel(TARGET) == first
    assert asked == []


def test_without_the_compiler_the_install_line_is_the_reason(monkeypatch):
    monkeypatch.setattr(compiling.host, "is_installed", lambda *_: False)

    assert compiled_kernels([TARGET]) == ["the compiler is not installed: pip install 'gpuexplore[cuda13]'"]


@pytest.mark.long
def test_the_process_compiles_a_real_kernel_and_says_what_it_cannot():
    new, old = compiled_kernels([TARGET, OLD])

    assert new.registers_per_thread > 16
    assert new.shared_bytes == 2 * 16 * 16 * 4
    assert ".target sm_80" in new.ptx
    assert "compute capability 3.7" in old
