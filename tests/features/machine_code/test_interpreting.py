import pytest

from gpuexplore.core.errors import TooLarge, TooSlow, Unsupported
from gpuexplore.features.machine_code import compiling, kernel_files
from gpuexplore.features.machine_code.compiling import COMPILER_BUSY, CPU, CPU_BUSY
from gpuexplore.features.machine_code.kernel_files import interpret
from gpuexplore.jobs.locks import compiler_lock, device_lock
from tests.jobs.conftest import home
from tests.measure.made_block import adding, block_run, request


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    monkeypatch.setenv("GPUEXPLORE_LOCKS", str(tmp_path))
    monkeypatch.setattr(compiling, "COMPILER_WAIT_S", 0.1)
    monkeypatch.setattr(compiling, "CPU_WAIT_S", 0.1)


@pytest.mark.long
def test_another_process_runs_the_kernel_and_tells_all_of_it():
    run, here = interpret(request(adding())), block_run()

    assert run.is_right
    assert [step.text for step in run.steps] == [step.text for step in here.steps]
    assert run.steps[0].accesses[0].addresses.tolist() == here.steps[0].accesses[0].addresses.tolist()


@pytest.mark.long
def test_what_it_refuses_is_refused_here_with_its_words():
    with pytest.raises(TooLarge, match="12,000,000 bytes"):
        interpret(request(adding(), n=1_000_000))


def test_process_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(kernel_files, "LIMIT_S", 0.01)

    with pytest.raises(TooSlow, match=r"took longer than 10.0 ms: choose a smaller shape"):
        interpret(request(adding()))


def test_process_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(kernel_files, "PROCESS", "gpuexplore.no_such_module")

    with pytest.raises(Unsupported, match=r"the interpreter failed: .*no_such_module"):
        interpret(request(adding()))


@pytest.mark.parametrize(("lock", "said"), [(compiler_lock, COMPILER_BUSY), (lambda: device_lock(CPU), CPU_BUSY)])
def test_it_waits_for_compilers_and_measurements_and_no_longer_than_is_bearable(lock, said):
    with lock(), pytest.raises(Unsupported, match=said):
        interpret(request(adding()))
