"""Errors that people meet are provoked: each says something, in torch's own words, and takes no memory."""

import resource
import warnings
from dataclasses import replace
from importlib import import_module

import pytest

from gpuexplore.activity import kind_named
from gpuexplore.core.errors import Cancelled, InvalidInput
from gpuexplore.core.serialization import decode
from gpuexplore.features.errors.measure import ERRORS, Provoked, _provoked, perform
from tests.analysis.made import device
from tests.measure.fakes import run_with

CPU = device()
EXPECTED = {
    "no-cuda": ("error", "AssertionError", "Torch not compiled with CUDA enabled"),
    "device-mismatch": ("error", "RuntimeError", "device"),
    "out-of-memory": ("error", "RuntimeError", "tried to allocate 1125899906842624 bytes"),
    "unsupported-dtype": ("error", "NotImplementedError", "not implemented for 'Float8_e4m3fn'"),
    "view-of-a-transpose": ("error", "RuntimeError", "Use .reshape(...) instead"),
    "deprecated-amp": ("warning", "FutureWarning", "is deprecated"),
}

torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.long


def performed(name, cancelled=False):
    payloads = []
    perform({"name": name}, CPU, **run_with(payloads.append, lambda: cancelled))
    return [decode(Provoked, payload) for payload in payloads]


@pytest.mark.parametrize("name", ERRORS)
def test_torch_says_what_the_error_is_about(name):
    if name == "no-cuda" and torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    (found,) = performed(name)
    kind, type_, words = EXPECTED[name]

    assert (found.name, found.device, found.torch, found.reason) == (name, "cpu", torch.__version__, None)
    first = found.said[0]
    assert first["kind"] == kind
    assert type_ in {first["type"], "AssertionError"}
    assert words in first["message"]


def test_old_names_of_mixed_precision_warn_only_the_one_who_provoked_it_and_do_not_fail():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (found,) = performed("deprecated-amp")

    assert caught == []
    assert {said["kind"] for said in found.said} == {"warning"}
    assert sum("deprecated" in said["message"] for said in found.said) == 2


def test_what_asks_for_memory_takes_none():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _provoked(ERRORS["out-of-memory"], CPU)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_an_error_that_this_machine_cannot_show_says_why(monkeypatch):
    from gpuexplore.features.errors import provocations

    quiet = replace(ERRORS["no-cuda"], function="quiet")
    monkeypatch.setattr(provocations, "quiet", len, raising=False)

    found = _provoked(quiet, CPU)
    assert (found.said, found.reason) == ((), "this machine has CUDA, so the call succeeds")
    assert _provoked(replace(quiet, otherwise=""), CPU).reason == "torch raised no error and no warning"


@pytest.mark.parametrize("arguments", [{}, {"name": "voodoo"}])
def test_an_unknown_error_is_named_with_those_there_are(arguments):
    with pytest.raises(InvalidInput, match="expected no-cuda, device-mismatch"):
        perform(arguments, CPU, **run_with(print))


def test_what_was_cancelled_is_not_provoked():
    with pytest.raises(Cancelled):
        performed("no-cuda", cancelled=True)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_the_code_that_is_shown_is_the_code_that_runs(error):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = performed(error.name)
        ended = next((said for said in found.said if said["kind"] == "error"), None)
        if ended is None:
            exec(error.code, {"torch": torch, "device": "cpu"})
        else:
            with pytest.raises(Exception) as raised:  # noqa: PT011 which one is the test
                exec(error.code, {"torch": torch, "device": "cpu"})
            assert (type(raised.value).__name__, str(raised.value)) == (ended["type"], ended["message"])


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_every_error_has_its_texts(error):
    for text in (error.title, error.meaning, error.instead, error.instead_code, error.code):
        assert text
    assert error.meaning.endswith(".")
    assert all(row[0] in "ABCDE" and row[1:].isdigit() for row in error.rows)
    compile(error.instead_code, error.name, "exec")


def test_the_queue_finds_what_performs_it():
    assert import_module(kind_named("provoke").module).perform is perform
