"""Other work is seen in any of the windows, and what cannot be seen is not called quiet."""

import pytest

from gpuexplore.core.model import Telemetry
from gpuexplore.hardware import CpuLoss
from gpuexplore.measure.conditions.isolation import WAITED_ABOVE, WAITS, contention, is_contended
from tests.measure.fakes import CPU, GPU, environment

QUIET, BUSY = CpuLoss(0.0), CpuLoss(0.25)
BLIND = CpuLoss(reason="10 ms are too short")


def found(*losses, device=CPU, others=None):
    """Return the name and the evidence of the flag."""
    flag = contention(environment(device, after=Telemetry(foreign_processes=others)), losses)
    return (flag.name, flag.evidence) if flag else None


@pytest.mark.parametrize(("count", "text"), [(1, "1 other process used cuda:0"), (2, "2 other processes used cuda:0")])
def test_contended_by_processes_on_the_gpu(count, text):
    assert found(QUIET, device=GPU, others=count) == ("contended", text)


def test_a_gpu_whose_processes_are_unknown_is_not_called_quiet():
    assert found(QUIET, device=GPU, others=0) is None
    assert found(QUIET, device=GPU) == (
        "contention_unknown",
        "the driver does not list the other processes on cuda:0",
    )


@pytest.mark.parametrize("losses", [(BUSY, QUIET), (QUIET, BUSY), (BLIND, BUSY)])
def test_one_window_with_other_work_is_enough(losses):
    assert found(*losses) == ("contended", "other work took 25.0 % of the CPU during the measurement")


@pytest.mark.parametrize("losses", [(QUIET, QUIET), (BLIND, QUIET)])
def test_one_window_that_could_be_judged_is_enough_to_be_quiet(losses):
    assert found(*losses) is None


def test_without_a_window_that_can_be_judged_the_reason_is_told():
    assert found(BLIND, BLIND) == ("contention_unknown", "10 ms are too short")
    assert found() == ("contention_unknown", "not checked")


def test_what_rounding_makes_of_nothing_is_not_other_work():
    assert found(CpuLoss(share=0.09, step=0.05)) is None
    assert found(CpuLoss(share=0.11, step=0.05))[0] == "contended"


@pytest.mark.parametrize(("share", "contended"), [(None, False), (0.0, False), (0.05, False), (0.3, True)])
def test_a_twentieth_of_the_cpu_is_too_much(share, contended):
    assert is_contended(share) is contended


@pytest.mark.parametrize(
    ("waited_share", "size"),
    [
        (None, 0.5),
        (0.0, 0.05),
        (WAITED_ABOVE / 2, 0.05 + WAITS / 2),
        (WAITED_ABOVE, 0.05 + WAITS),
        (0.5, 0.05 + WAITS),
        (0.75, 0.05 + WAITS + 2),
        (1.0, 0.05 + WAITS + 99),
    ],
)
def test_the_size_of_contention_is_what_the_rounds_of_a_case_felt_of_it(waited_share, size):
    flag = contention(environment(CPU), [CpuLoss(0.5)], waited_share)

    assert flag.size == pytest.approx(size)
    assert flag.evidence.startswith("other work took 50.0 % of the CPU during the measurement")
    assert ("its own rounds waited" in flag.evidence) == (waited_share is not None)


def test_on_many_cores_the_wait_of_a_thread_tells_what_the_share_does_not():
    assert found(CpuLoss(share=0.01, waited_share=0.5, preempted=12)) == (
        "contended",
        "threads waited 50.0 % of the time for cores used by other work, and interrupted this process 12 times",
    )
    assert found(CpuLoss(share=0.01, waited_share=0.04)) is None
