"""An illegal access breaks the CUDA context of its process: only the case that made it is told off."""

import sys
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from gpuexplore.backends import load_backend
from gpuexplore.core.model import Result, Shape, Status
from gpuexplore.hardware import nvml
from gpuexplore.measure.candidates import failure
from gpuexplore.measure.candidates.failure import breaks_context
from gpuexplore.measure.runner import measure_group
from gpuexplore.measure.sample import contrast
from tests.hardware.fake_nvml import FakeGpu, FakeNvml
from tests.measure.evil import catalogue
from tests.measure.fakes import CPU, GPU, QUIET, FakeClock, case, run_with


@pytest.mark.parametrize(
    "reason",
    [
        "CudaAPIError: [700] Call to cuEventSynchronize results in UNKNOWN_CUDA_ERROR",
        "CudaAPIError: [CUresult.CUDA_ERROR_ILLEGAL_ADDRESS] Call to cuMemcpyDtoH_v2 results in an error",
        "CudaAPIError: [716] Call to cuCtxSynchronize results in CUDA_ERROR_MISALIGNED_ADDRESS",
        "CudaAPIError: [719] Call to cuCtxSynchronize results in CUDA_ERROR_LAUNCH_FAILED",
        "AcceleratorError: CUDA error: an illegal memory access was encountered",
        "AcceleratorError: CUDA error: misaligned address",
        "AcceleratorError: CUDA error: device-side assert triggered",
        "AcceleratorError: CUDA error: unspecified launch failure",
        "RuntimeError: CUDA error 714",
        "CUDARuntimeError: cudaErrorHardwareStackError: hardware stack error",
        "CUDARuntimeError: cudaErrorLaunchTimeout: the launch timed out and was terminated",
        "RuntimeError: Triton Error [CUDA]: an illegal instruction was encountered",
        "AcceleratorError: CUDA error: unknown error",
        "CudaAPIError: [999] Call to cuCtxSynchronize results in CUDA_ERROR_UNKNOWN",
        "AcceleratorError: CUDA error: uncorrectable ECC error encountered",
    ],
)
def test_error_after_which_no_call_succeeds_is_known_by_its_code_or_words(reason):
    assert breaks_context(reason, GPU)
    assert not breaks_context(reason, CPU)


@pytest.mark.parametrize(
    "reason",
    [
        "CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "CudaAPIError: [701] Call to cuLaunchKernel results in CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "ValueError: a of 700 x 719 elements",
        "AssertionError: assertion failed",
        "TypingError: no implementation of Function(<built-in function sum>)",
    ],
)
def test_error_of_one_call_leaves_the_context(reason):
    assert not breaks_context(reason, GPU)


@pytest.fixture
def gpu(monkeypatch):
    """Return a GPU whose implementations are the catalogue's, which run on the host."""
    catalogue.register(monkeypatch.setattr, monkeypatch.setitem)
    monkeypatch.setattr(failure, "_broken", {})
    monkeypatch.setattr(contrast, "_known", {})
    monkeypatch.setattr(load_backend("numpy"), "DEVICE_KINDS", ("cpu", "cuda"))
    return replace(GPU, cache_bytes=2**10, uuid=None)


def measured(device, *names, length=257):
    results = {}

    def take(event):
        if isinstance(event, Result):
            assert event.case.implementation not in results
            results[event.case.implementation] = event

    group = [case(name, shape=Shape.of(n=length), device=device.id) for name in names]
    measure_group(group, device, **run_with(take, clock=FakeClock(tick_ns=100_000), isolation=QUIET))
    return results


@pytest.mark.parametrize(("guilty", "error"), [("raising", "illegal instruction"), ("straying", "misaligned address")])
def test_in_one_process_nothing_is_measured_afterwards_and_every_case_says_why(gpu, guilty, error):
    first, second = measured(gpu, "fine", guilty, "numpy"), measured(gpu, "fine", guilty, length=300)

    assert first[guilty].status is Status.ERROR
    assert error in first[guilty].reason
    for result in (first["fine"], first["numpy"], second["fine"], second[guilty]):
        assert result.status is Status.CANCELLED
        assert result.reason == (
            f"not measured: {guilty} broke the CUDA context of this process, so no later call on cuda:0 can succeed"
        )
    assert measured(CPU, "fine")["fine"].status is Status.OK


def test_error_that_leaves_the_context_stops_nothing(gpu):
    results = measured(gpu, "fine", "tiring")

    assert (results["tiring"].status, results["fine"].status) == (Status.ERROR, Status.OK)


LOST = (
    "the driver has lost cuda:0 (a made-up GPU): it fell off the bus or hangs, and does not respond "
    "until the machine is rebooted; see `nvidia-smi` and `dmesg` (Xid) for the cause"
)


@pytest.fixture
def falling(gpu, monkeypatch):
    """Return a GPU, and its board: once that is lost, its driver says so and every call fails."""
    board = FakeGpu(gpu.name, "GPU-0", 2**30)
    monkeypatch.setattr(nvml, "load_nvml", lambda: FakeNvml([board]))
    return replace(gpu, uuid="GPU-0"), board


def test_gpu_that_is_lost_in_mid_run_ends_each_of_its_cases_with_a_sentence_and_none_of_another_device(
    falling, monkeypatch
):
    (device, board), calls = falling, count(1)

    def build(inputs, out, dtype):
        def run():
            board.lost = board.lost or (next(calls) == 20 and len(out) > 1)
            if board.lost:
                raise RuntimeError("CUDA error: unspecified launch failure")
            np.add(*inputs, out=out)

        return run

    for name in ("fine", "tiring"):
        monkeypatch.setattr(sys.modules[f"gpuexplore.operations.vector_add.evil_{name}"], "build", build)

    first, second = measured(device, "fine", "tiring"), measured(device, "fine", length=300)

    for result in (*first.values(), *second.values()):
        assert (result.status, result.reason) == (Status.ERROR, LOST)
    assert not breaks_context(LOST, device)  # a fresh process meets the same GPU
    assert measured(CPU, "numpy")["numpy"].status is Status.OK


def test_gpu_that_answers_is_not_lost(falling):
    device, board = falling

    assert measured(device, "fine")["fine"].status is Status.OK
    assert not board.lost
