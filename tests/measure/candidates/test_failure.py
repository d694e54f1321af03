"""Each exception becomes the status it means, with a reason; none is lost."""

import pytest

from gpuexplore.core.errors import Cancelled, IncorrectOutput, TooLarge, TooSlow, Unsupported
from gpuexplore.core.model import UNREADABLE, Accuracy, Result, Status
from gpuexplore.measure.candidates.failure import describe_error, failed
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


class SpeechlessError(Exception):
    """Fails to say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("\x1b[31m\x00 half \ud800"), "ValueError: \ufffd half \ufffd"),
        (SpeechlessError(), "SpeechlessError: SpeechlessError"),
        (ModuleNotFoundError(name="x.y"), "x is not installed: pip install 'x'"),
        (ModuleNotFoundError(name="dask"), "dask is not installed: pip install 'gpuexplore[dask]'"),
    ],
)
def test_words_that_nobody_could_store_are_made_readable(error, reason):
    assert failed(case(), error).reason == describe_error(error) == reason


def test_purposeful_error_is_described_by_its_text_alone():
    assert describe_error(TooSlow("about 9 s")) == "about 9 s"


def test_no_result_carries_a_reason_that_cannot_be_shown():
    assert Result(case(), Status.CRASHED, "ended \ud800").reason == "ended \ufffd"
    assert Result(case(), Status.CRASHED, "\x1b[0m").reason == UNREADABLE
