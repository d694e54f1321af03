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


def run_adding():
    return kernel_files.interpret(request(adding()))


def assembled():
    return kernel_files._assembled(MODULE, "9.0")


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ({"stdout": json.dumps({"invalid": "line 4; error"})}, InvalidInput, "line 4; error"),
        ({"stdout": json.dumps({"reason": "too old"})}, Unsupported, "too old"),
        ({"returncode": -11}, Unsupported, "the compiler ended by signal 11 on this PTX"),
        ({"returncode": 1, "stderr": "Traceback\nMemoryError\n"}, Unsupported, "the compiler failed: MemoryError"),
        ({"returncode": 1}, Unsupported, "the compiler failed: no message"),
    ],
)
def test_what_the_process_refuses_or_leaves_without_an_answer_is_a_sentence(monkeypatch, answer, error, said):
    answering(monkeypatch, **answer)

    with pytest.raises(error, match=said):
        kernel_files._assembled(MODULE, "9.0")


@pytest.mark.parametrize(
    ("work", "setting", "error", "said"),
    [
        (assembled, ("LIMIT_S", 0.001), Unsupported, r"the compiler took longer than .* for this PTX"),
        (assembled, ("host.is_installed", lambda *_: False), Unsupported, "not installed: pip install"),
        (run_adding, ("LIMIT_S", 0.01), TooSlow, r"took longer than 10.0 ms: choose a smaller shape"),
        (run_adding, ("PROCESS", "gpuexplore.absent"), Unsupported, r"the interpreter failed: .*absent"),
    ],
)
def test_a_process_that_takes_too_long_fails_or_is_not_installed_is_a_sentence(monkeypatch, work, setting, error, said):
    name, value = setting
    monkeypatch.setattr(f"{kernel_files.__name__}.{name}", value)

    with pytest.raises(error, match=said):
        work()


@pytest.mark.parametrize("work", [run_adding, lambda: kernel_files._assembled(MODULE, "9.0")])
@pytest.mark.parametrize(("lock", "said"), [(compiler_lock, COMPILER_BUSY), (lambda: device_lock(CPU), CPU_BUSY)])
def test_compilers_and_measurements_are_waited_for_and_no_longer_than_is_bearable(work, lock, said):
    with lock(), pytest.raises(Unsupported, match=said):
        work()


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
