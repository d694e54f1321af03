"""One check after the other: each fails alone, and the time holds."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.selftest import selftest_command
from gpuexplore.features.selftest.selftest_command import _carry_out
from gpuexplore.features.selftest.suite.contract import CheckFigure, CheckFinding, CheckVerdict, SelfCheck, judged
from tests.measure.fakes import CPU, GPU


class FakeBench:
    """A device that checks can be run on without a worker, and that can be lost."""

    def __init__(self, device=GPU, *, is_quick=False):
        self.device, self.is_quick, self.allowed, self.is_lost = device, is_quick, [], False

    def allow(self, seconds):
        self.allowed.append(seconds)

    def lost(self):
        return "the driver no longer lists it" if self.is_lost else None


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that tests move on by hand."""
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr(selftest_command, "time", SimpleNamespace(monotonic=lambda: now.s))
    return now


def passing(name="passing", **about):
    return SelfCheck(name, name, lambda bench: judged([], [CheckFigure("n", 1)]), **about)


def raising(error, name="raising"):
    def find(bench):
        raise error

    return SelfCheck(name, name, find)


def ended(checks, bench=None, **about):
    heard = []
    outcomes = _carry_out(checks, bench or FakeBench(), report=heard.append, **about)
    assert tuple(heard) == outcomes
    return {outcome.name: outcome for outcome in outcomes}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [(ValueError("no such thing"), "ValueError: no such thing"), (InvalidInput("size 0"), "size 0")],
)
def test_check_that_raises_has_failed_and_the_next_goes_on(error, sentence):
    found = ended([raising(error), passing()])

    assert (found["raising"].verdict, found["raising"].said) == (CheckVerdict.FAIL, (sentence,))
    assert found["passing"].verdict is CheckVerdict.PASS


def test_interruption_skips_what_is_left_and_keeps_what_was_found():
    found = ended([passing("first"), raising(KeyboardInterrupt()), passing("last")])

    assert [outcome.verdict.value for outcome in found.values()] == ["pass", "skipped", "skipped"]
    assert found["last"].said == ("interrupted",)


def test_check_gets_its_share_and_never_more_than_is_left_or_is_skipped_with_the_seconds_it_needs(clock):
    def find(_):
        clock.s += 80
        return CheckFinding(CheckVerdict.PASS)

    bench, slow = FakeBench(), SelfCheck("slow", "slow", find, share=0.5)
    total_s = 100 + selftest_command.RESERVE_S
    ended([slow, replace(slow, name="next", share=0.9)], bench, total_s=total_s)
    found = ended([slow, passing(needs_s=30)], total_s=total_s)["passing"]

    assert bench.allowed == [50, 20]
    assert (found.verdict, found.said) == (CheckVerdict.SKIPPED, ("out of time: it needs 30 s, and 20 s are left",))


def test_check_for_gpus_is_skipped_on_a_cpu_and_one_for_the_full_test_in_a_quick_one():
    on_cpu = ended([passing(kinds=("cuda",))], FakeBench(CPU))
    quick = ended([passing(in_quick=False)], FakeBench(is_quick=True))

    assert on_cpu["passing"].said == ("it needs a device of kind cuda, not cpu",)
    assert quick["passing"].said == ("not part of the quick test",)


def test_loss_of_the_gpu_is_the_failure_of_the_check_in_which_it_happened():
    bench = FakeBench()

    def lose(_):
        bench.is_lost = True
        return CheckFinding(CheckVerdict.PASS)

    found = ended([passing("before"), SelfCheck("during", "during", lose), passing("after")], bench)

    assert [outcome.verdict.value for outcome in found.values()] == ["pass", "fail", "skipped"]
    assert found["during"].said == ("the driver no longer lists it",)
    assert found["after"].said == ("the GPU was lost: the driver no longer lists it",)
