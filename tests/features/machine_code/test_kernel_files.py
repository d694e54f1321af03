"""PTX of others assembled in a process of its own, and what is said where that process does not answer."""

import json
from types import SimpleNamespace

import pytest

from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.features.machine_code import compiling, kernel_files
from gpuexplore.features.machine_code.compiling import COMPILER_BUSY
from gpuexplore.jobs.locks import compiler_lock
from gpuexplore.kernels.files import read_ptx
from tests.jobs.conftest import home
from tests.kernels.files.kept import SAXPY

MODULE = read_ptx(SAXPY.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path))
    monkeypatch.setattr(compiling, "COMPILER_WAIT_S", 0.1)
    monkeypatch.setattr(kernel_files.host, "is_installed", lambda *_: True)


def answering(monkeypatch, returncode=0, stdout="", stderr=""):
    done = SimpleNamespace(returncode=returncode, stdout=stdout.encode(), stderr=stderr.encode())
    monkeypatch.setattr(kernel_files, "run_preemptible", lambda *_, **__: done)


def test_what_the_process_refuses_is_refused_here_with_its_words(monkeypatch):
    answering(monkeypatch, stdout=json.dumps({"invalid": "line 4; error"}))
    with pytest.raises(InvalidInput, match="line 4; error"):
        kernel_files.assembled(MODULE, "9.0")
    answering(monkeypatch, stdout=json.dumps({"reason": "too old"}))
    with pytest.raises(Unsupported, match="too old"):
        kernel_files.assembled(MODULE, "9.0")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"returncode": -11}, "the compiler ended by signal 11 on this PTX"),
        ({"returncode": 1, "stderr": "Traceback\nMemoryError\n"}, "the compiler failed: MemoryError"),
        ({"returncode": 1}, "the compiler failed: no message"),
    ],
)
def test_a_process_that_ends_without_an_answer_is_a_sentence(monkeypatch, answer, said):
    answering(monkeypatch, **answer)

    with pytest.raises(Unsupported, match=said):
        kernel_files.assembled(MODULE, "9.0")


def test_a_process_that_takes_too_long_is_a_sentence(monkeypatch):
    monkeypatch.setattr(kernel_files, "LIMIT_S", 0.001)

    with pytest.raises(Unsupported, match=r"the compiler took longer than .* for this PTX"):
        kernel_files.assembled(MODULE, "9.0")


def test_one_compiler_runs_at_a_time():
    with compiler_lock(), pytest.raises(Unsupported, match=COMPILER_BUSY):
        kernel_files.assembled(MODULE, "9.0")


def test_without_a_compiler_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(kernel_files.host, "is_installed", lambda *_: False)

    with pytest.raises(Unsupported, match="not installed: pip install"):
        kernel_files.assembled(MODULE, "9.0")
