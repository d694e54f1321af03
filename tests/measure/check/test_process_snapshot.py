"""What an implementation changes in the process it is measured in is named and put back."""

import gc
import math
import os
import signal
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest

from gpuexplore.core.errors import IncorrectOutput
from gpuexplore.core.model import Accuracy
from gpuexplore.measure.check import correctness, process_snapshot
from gpuexplore.measure.check.process_snapshot import ProcessSnapshot, allow_tf32
from tests.waiting import wait_until


@pytest.fixture
def process():
    return ProcessSnapshot(threads=2)


def test_process_that_nobody_changed_passes(process):
    process.check()

    assert process.restored() == []


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (time, "perf_counter_ns"),
        (math, "hypot"),
        (np, "isfinite"),
        (np.linalg, "norm"),
        (correctness, "describe"),
        (Accuracy, "within"),
    ],
)
def test_replaced_name_is_told_and_put_back(process, owner, name):
    real = vars(owner)[name]
    setattr(owner, name, lambda *_: 0.0)

    with pytest.raises(IncorrectOutput, match=f"it changed the state of its process: {owner.__name__}.{name}$"):
        process.check()

    assert vars(owner)[name] is real
    process.check()


def test_deleted_name_is_put_back(process):
    real = np.linalg.norm
    del np.linalg.norm

    assert process.restored() == ["numpy.linalg.norm"]
    assert np.linalg.norm is real


def test_name_that_a_library_adds_is_no_change(process, monkeypatch):
    monkeypatch.setattr(np, "added_by_a_library", 1, raising=False)

    assert process.restored() == []


@pytest.mark.parametrize(
    ("change", "read", "told"),
    [
        (lambda: np.seterr(all="raise"), np.geterr, "numpy's error handling"),
        (gc.disable, gc.isenabled, "the garbage collector"),
        (lambda: sys.setswitchinterval(1), sys.getswitchinterval, "the thread switch interval"),
        (lambda: os.environ.update(OMP_NUM_THREADS="7"), lambda: os.environ.get("OMP_NUM_THREADS"), "the environment"),
        (lambda: setattr(sys, "stdout", None), lambda: sys.stdout, "sys.stdout"),
    ],
)
def test_changed_setting_is_told_and_put_back(process, change, read, told):
    before = read()
    change()

    assert process.restored() == [told]
    assert read() == before


@pytest.fixture
def alarm():
    """Return how to set the alarm clock, as a test runner does that ends what hangs; it is off afterwards."""
    rung = []
    usual = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))

    def alarm_in(*seconds):
        signal.setitimer(signal.ITIMER_REAL, *seconds)
        return rung

    yield alarm_in
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, usual)


def test_alarm_that_was_set_before_runs_on_and_blames_nobody(alarm):
    alarm(600)
    process = ProcessSnapshot(threads=2)

    wait_until(lambda: signal.getitimer(signal.ITIMER_REAL)[0] < 599.99)
    assert process.restored() == []


def test_alarm_that_has_rung_by_itself_blames_nobody_and_is_not_set_again(alarm):
    rung = alarm(0.05)
    process = ProcessSnapshot(threads=2)
    wait_until(lambda: rung)

    assert [process.restored(), process.restored()] == [[], []]
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_alarm_that_rings_again_and_again_runs_on(alarm):
    rung = alarm(0.05, 0.05)
    process = ProcessSnapshot(threads=2)
    wait_until(lambda: len(rung) > 1)
    assert process.restored() == []

    signal.setitimer(signal.ITIMER_REAL, 600)
    assert process.restored() == ["the alarm timer"]
    assert signal.getitimer(signal.ITIMER_REAL)[1] == pytest.approx(0.05)


@pytest.mark.parametrize(("before", "after"), [(600, 0), (600, 60), (0, 60)])
def test_alarm_that_an_implementation_sets_is_told_and_put_back(alarm, before, after):
    alarm(before)
    process = ProcessSnapshot(threads=2)
    alarm(after)

    assert process.restored() == ["the alarm timer"]
    assert signal.getitimer(signal.ITIMER_REAL)[0] == pytest.approx(before, abs=5)


def test_threads_of_a_library_are_those_from_before_or_those_it_is_pinned_to(monkeypatch):
    count = [8]
    monkeypatch.setattr(
        process_snapshot,
        "_thread_counts",
        lambda: [("a library", lambda: count[0], lambda to: count.append(to) or count.reverse())],
    )
    process = ProcessSnapshot(threads=2)

    found = []
    for now in (8, 2, 5):
        count[:] = [now]
        found.append(process.restored())

    assert found == [[], [], ["the threads of a library, 5 instead of 2"]]
    assert count[0] == 2


@pytest.mark.parametrize("is_allowed", [False, True])
def test_torch_that_a_library_loads_meanwhile_is_set_as_the_group_needs_it(monkeypatch, is_allowed):
    loaded = pytest.importorskip("torch")
    monkeypatch.setattr(loaded.backends.cudnn, "allow_tf32", is_allowed)
    with monkeypatch.context() as before:
        for name in ("torch", "gpuexplore.measure.arrays.device_arrays"):  # which loads torch
            before.delitem(sys.modules, name, raising=False)
        process = ProcessSnapshot(threads=2, is_tf32_allowed=is_allowed)
    loaded.backends.cudnn.allow_tf32 = not is_allowed

    process.check()
    allow_tf32(is_allowed)  # as a group does that goes on
    process.check()

    assert loaded.backends.cudnn.allow_tf32 is is_allowed


def test_many_changes_are_counted(process):
    real = {name: getattr(math, name) for name in ("sin", "cos", "tan", "exp", "log")}
    for name in real:
        setattr(math, name, None)

    with pytest.raises(IncorrectOutput, match=r" and 2 more$"):
        process.check()

    assert {name: getattr(math, name) for name in real} == real


def test_section_that_changes_something_fails_at_its_end(process):
    with pytest.raises(IncorrectOutput, match=r"math\.hypot"), process.guarding(nullcontext)():
        math.hypot = None

    assert math.hypot(3, 4) == 5


def test_section_that_changes_a_value_of_the_core_fails_at_its_end(process):
    real = Accuracy.within

    with pytest.raises(IncorrectOutput, match=r"Accuracy\.within"), process.guarding(nullcontext)():
        Accuracy.within = lambda *_: True

    assert Accuracy.within is real


def test_section_that_raises_is_put_right_and_raises_what_it_did(process):
    def section():
        math.hypot = None
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"), process.guarding(nullcontext)():
        section()

    assert math.hypot(3, 4) == 5
