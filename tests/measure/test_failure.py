"""Each exception becomes the status it means, with a reason; none is lost."""

import pytest

from gpuexplore.errors import Cancelled, TooLarge, TooSlow, Unsupported
from gpuexplore.measure.failure import IncorrectOutput, failed
from gpuexplore.model import Accuracy, Status
from tests.measure.fakes import case, environment


class OutOfMemoryError(RuntimeError):
    """Named as torch's own, which must not be imported to be known."""


class CudaAPIError(Exception):
    """Named as Numba's."""


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (Unsupported("no tf32"), Status.UNSUPPORTED, "no tf32"),
        (ModuleNotFoundError("No module named 'x'"), Status.UNSUPPORTED, "No module named 'x'"),
        (TooSlow("about 9 s"), Status.SKIPPED, "about 9 s"),
        (TooLarge("needs 9 GiB"), Status.OUT_OF_MEMORY, "needs 9 GiB"),
        (MemoryError(), Status.OUT_OF_MEMORY, "MemoryError"),
        (OutOfMemoryError("tried to allocate"), Status.OUT_OF_MEMORY, "tried to allocate"),
        (RuntimeError("CUDA error: out of memory"), Status.OUT_OF_MEMORY, "CUDA error: out of memory"),
        (CudaAPIError("[2] CUDA_ERROR_OUT_OF_MEMORY"), Status.OUT_OF_MEMORY, "[2] CUDA_ERROR_OUT_OF_MEMORY"),
        (Cancelled("stop"), Status.CANCELLED, "stop"),
        (ValueError("bad"), Status.ERROR, "ValueError: bad"),
        (KeyError(), Status.ERROR, "KeyError: KeyError"),
    ],
)
def test_exception_becomes_its_status_with_a_reason(error, status, reason):
    result = failed(case(), error, environment())

    assert (result.status, result.reason) == (status, reason)
    assert result.measurement is None
    assert result.environment == environment()


def test_incorrect_output_keeps_how_wrong_it_was_and_no_measurement():
    result = failed(case(), IncorrectOutput("wrong", Accuracy(0.5, 1e-6)))

    assert (result.status, result.accuracy) == (Status.INCORRECT, Accuracy(0.5, 1e-6))
    assert result.measurement is None


def test_long_reason_is_cut():
    assert len(failed(case(), ValueError("x" * 10_000)).reason) == 500
