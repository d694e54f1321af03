"""PTX assembled, and kernels interpreted, in a process of its own, and what is said where that does not answer."""

import json
from types import SimpleNamespace

import pytest

from gpuexplore.core.errors import InvalidInput, TooLarge, TooSlow, Unsupported
from gpuexplore.features.machine_code import compiling, kernel_files
from gpuexplore.features.machine_code.compiling import COMPILER_BUSY, CPU, CPU_BUSY
from gpuexplore.jobs.locks import compiler_lock, device_lock
from gpuexplore.kernels.files import read_ptx
from tests.jobs.conftest import home
from tests.kernels.files.kept import SAXPY
from tests.measure.made_block import adding, block_run, request

MODULE = read_ptx(SAXPY.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(compiling, "COMPILER_WAIT_S", 0.1)
    monkeypatch.setattr(compiling, "CPU_WAIT_S", 0.1)
    monkeypatch.setattr(kernel_files.host, "is_installed", lambda *_: True)


def answering(monkeypatch, returncode=0, stdout="", stderr=""):
    done = SimpleNamespace(returncode=returncode, stdout=stdout.encode(), stderr=stderr.encode())
    monkeypatch.setattr(kernel_files, "run_preemptible", lambda *_, **__: done)


def test_what_the_process_refuses_is_refused_here_with_its_words(monkeypatch):
    answering(monkeypatch, stdout=json.dumps({"invalid": "line 4; error"}))
    with pytest.raises(InvalidInput, match="line 4; error"):
        kernel_files._assembled(MODULE, "9.0")
    answering(monkeypatch, stdout=json.dumps({"reason": "too old"}))
    with pytest.raises(Unsupported, match="too old"):
        kernel_files._assembled(MODULE, "9.0")


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
        kernel_files._assembled(MODULE, "9.0")


def test_a_process_that_takes_too_long_is_a_sentence(monkeypatch):
    monkeypatch.setattr(kernel_files, "LIMIT_S", 0.001)

    with pytest.raises(Unsupported, match=r"the compiler took longer than .* for this PTX"):
        kernel_files._assembled(MODULE, "9.0")


def run_adding():
    return kernel_files.interpret(request(adding()))


@pytest.mark.parametrize("work", [run_adding, lambda: kernel_files._assembled(MODULE, "9.0")])
@pytest.mark.parametrize(("lock", "said"), [(compiler_lock, COMPILER_BUSY), (lambda: device_lock(CPU), CPU_BUSY)])
def test_compilers_and_measurements_are_waited_for_and_no_longer_than_is_bearable(work, lock, said):
    with lock(), pytest.raises(Unsupported, match=said):
        work()


def test_without_a_compiler_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(kernel_files.host, "is_installed", lambda *_: False)

    with pytest.raises(Unsupported, match="not installed: pip install"):
        kernel_files._assembled(MODULE, "9.0")


@pytest.mark.long
def test_another_process_runs_the_kernel_and_tells_all_of_it():
    run, here = run_adding(), block_run()

    assert run.is_right
    assert [step.text for step in run.steps] == [step.text for step in here.steps]
    assert run.steps[0].accesses[0].addresses.tolist() == here.steps[0].accesses[0].addresses.tolist()


@pytest.mark.long
def test_what_it_refuses_is_refused_here_with_its_words():
    with pytest.raises(TooLarge, match="12,000,000 bytes"):
        kernel_files.interpret(request(adding(), n=1_000_000))


def test_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(kernel_files, "LIMIT_S", 0.01)

    with pytest.raises(TooSlow, match=r"took longer than 10.0 ms: choose a smaller shape"):
        run_adding()


def test_process_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(kernel_files, "PROCESS", "gpuexplore.no_such_module")

    with pytest.raises(Unsupported, match=r"the interpreter failed: .*no_such_module"):
        run_adding()
