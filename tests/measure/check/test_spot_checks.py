"""Calls on other values and over a poisoned output tell what computes from what only looks right."""

import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from gpuexplore.core.errors import IncorrectOutput
from gpuexplore.core.model import Case, Shape
from gpuexplore.measure.check import spot_checks
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import open_group
from gpuexplore.measure.check.process_snapshot import ProcessSnapshot
from gpuexplore.measure.check.spot_checks import check_reuse, check_single_calls
from tests.measure.fakes import CPU, QUIET, FakeClock
from tests.waiting import DEADLINE_S

CASE = Case("vector_add", Shape.of(n=100), "fp32", "numpy", "cpu")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def group(clock):
    return open_group([CASE], CPU, clock=clock, isolation=QUIET)


@pytest.fixture
def candidate(group):
    found = group.build(CASE, CASE.shape, group.timed_reference.inputs)
    found.run()
    return found


def test_honest_call_passes_and_leaves_the_timed_values_and_a_poisoned_output(candidate, group):
    check_single_calls(candidate, group)

    assert candidate.holds(group.timed_reference.inputs)
    assert np.isnan(candidate.output()).all()


@pytest.fixture
def patience(monkeypatch):
    """Wait for threads as long as a busy machine takes; asked for before the group, which watches such settings."""
    monkeypatch.setattr(spot_checks, "LATEST_S", DEADLINE_S)


def test_threads_of_earlier_calls_end_before_a_call_is_checked(patience, candidate, group):
    """On a busy machine one of them wrote what the checked call had left to a thread of its own."""
    ended = []
    threading.Timer(0.2, ended.append, ["an earlier call's thread"]).start()

    check_single_calls(candidate, group)

    assert ended


def test_threads_that_stay_are_waited_for_no_longer_than_any_late_write(group):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        began_s = time.monotonic()
        spot_checks._let_threads_end(group)

    assert time.monotonic() - began_s >= spot_checks.LATEST_S


def test_a_thread_that_ends_before_a_busy_machine_runs_its_caller_again_is_found(candidate, group):
    pool, ended = ThreadPoolExecutor(1), []

    def put_off():
        pool.submit(lambda: ended.append(np.add(*candidate.inputs, out=candidate.out)))
        until = time.perf_counter() + 0.03  # the caller is not run: the interpreter would turn to the thread meanwhile
        while time.perf_counter() < until:
            pass

    pool.submit(int).result()
    put_off()
    assert ended
    usual_s = sys.getswitchinterval()
    with pytest.raises(IncorrectOutput, match="still written after its call had returned"):
        check_single_calls(replace(candidate, run=put_off), group)
    assert sys.getswitchinterval() == usual_s


def test_a_call_that_waits_for_its_threads_passes(candidate, group):
    with ThreadPoolExecutor(2) as pool:

        def in_halves():
            halves = [
                pool.submit(np.add, *(array[part] for array in candidate.inputs), out=candidate.out[part])
                for part in (slice(0, 50), slice(50, None))
            ]
            for half in halves:
                half.result()

        check_single_calls(replace(candidate, run=in_halves), group)
        assert candidate.holds(group.timed_reference.inputs)


def test_the_same_bits_are_judged_once_and_others_each_time(candidate, group, monkeypatch):
    judged = []
    monkeypatch.setattr(spot_checks, "judge", lambda *of: judged.append(of) or judge(*of))
    group = replace(group, process=ProcessSnapshot(None))  # which would put it back
    candidate.run()

    for _ in range(3):
        spot_checks.checked(candidate, group, group.timed_reference)
    assert len(judged) == 1

    candidate.out[3] = np.nextafter(candidate.out[3], np.float32(np.inf))
    spot_checks.checked(candidate, group, group.timed_reference)
    assert len(judged) == 2

    candidate.out[3] = 0
    with pytest.raises(IncorrectOutput):
        spot_checks.checked(candidate, group, group.timed_reference)
    with pytest.raises(IncorrectOutput):
        spot_checks.checked(candidate, group, group.other_reference)


def test_other_values_differ_from_the_timed_ones(group):
    for timed, other in zip(group.timed_reference.inputs, group.other_reference.inputs, strict=True):
        assert (timed != other).all()


def test_inputs_that_changed_before_are_told(candidate, group):
    candidate.inputs[0][3] += 1

    with pytest.raises(IncorrectOutput, match="changed its inputs"):
        check_single_calls(candidate, group)


@pytest.mark.parametrize("timed_s", [1e-3, 8e-3])  # the latter beside others, who made all timed calls slower
@pytest.mark.parametrize("fresh_s", [1e-3, 1.9e-3, 2.1e-3, 1.0])
def test_call_that_takes_longer_on_values_it_has_not_seen_reuses_work(candidate, group, clock, fresh_s, timed_s):
    seen = []

    def run():
        values = candidate.inputs[0].tobytes()
        clock.spend(1e-3 if values in seen else fresh_s)
        seen.append(values)
        candidate.run()

    if fresh_s < 2e-3:
        check_reuse(replace(candidate, run=run), group, timed_s)
        assert candidate.holds(group.timed_reference.inputs)
        return
    with pytest.raises(IncorrectOutput, match="the timed calls reuse earlier work"):
        check_reuse(replace(candidate, run=run), group, timed_s)


@pytest.mark.parametrize("waited", [True, False])
def test_what_a_call_waited_for_a_core_that_others_had_is_not_blamed_on_it(candidate, group, clock, waited):
    seen, waited_s = [], [0.0]

    def run():
        values = candidate.inputs[0].tobytes()
        if values not in seen:
            clock.spend(4e-3)
            waited_s[0] += 4e-3 * waited
        clock.spend(1e-3)
        seen.append(values)
        candidate.run()

    beside_others = replace(group, isolation=replace(group.isolation, thread_waits=lambda: {1: waited_s[0], 2: 0.0}))
    if waited:
        check_reuse(replace(candidate, run=run), beside_others, 1e-3)
        return
    with pytest.raises(IncorrectOutput, match="reuse earlier work"):
        check_reuse(replace(candidate, run=run), beside_others, 1e-3)


def test_what_threads_waited_for_before_a_call_is_not_taken_from_it(candidate, group, clock):
    seen, waited_s = [], [0.0]

    def run():
        values = candidate.inputs[0].tobytes()
        clock.spend(1e-3 if values in seen else 4e-3)
        seen.append(values)
        candidate.run()

    def thread_waits():
        clock.spend(3.5e-3)
        waited_s[0] += 3.5e-3
        return {1: waited_s[0]}

    beside_others = replace(group, isolation=replace(group.isolation, thread_waits=thread_waits))
    with pytest.raises(IncorrectOutput, match="reuse earlier work"):
        check_reuse(replace(candidate, run=run), beside_others, 1e-3)


@pytest.mark.parametrize("waited_s", [1.1e-3, 9e-3])
@pytest.mark.parametrize("wait_counts_in", ["fresh", "repeated"])
def test_a_wait_that_began_before_a_call_blames_nobody(candidate, group, clock, waited_s, wait_counts_in):
    """Pool threads that waited since long before get their core in the call, and all of it is counted there."""
    seen, waits_s = [], [0.0]

    def run():
        values = candidate.inputs[0].tobytes()
        if (values in seen) == (wait_counts_in == "repeated"):
            waits_s[0] += waited_s
        clock.spend(1e-3 if values in seen else 2.2e-3)  # above the first limit: a pair decides
        seen.append(values)
        candidate.run()

    beside_others = replace(group, isolation=replace(group.isolation, thread_waits=lambda: {1: waits_s[0]}))
    if wait_counts_in == "fresh" and waited_s < 2.2e-3:
        check_reuse(replace(candidate, run=run), beside_others, 1e-3)  # it may have waited as long
        return
    with pytest.raises(IncorrectOutput, match=r"takes 2\.20 ms .* and 1\.00 ms on repeated"):
        check_reuse(replace(candidate, run=run), beside_others, 1e-3)


def test_call_behind_a_look_at_the_threads_is_compared_with_one_behind_another_look(gpu, clock):
    """On a GPU a short call took 2.4 times as long there as without: an H200's honest products were called wrong."""
    looked = [False]

    def look():
        looked[0] = True
        return {}

    def run():
        clock.spend(100e-6 if looked[0] else 40e-6)
        looked[0] = False
        found.run()

    case = replace(CASE, device=gpu.id)
    group = open_group([case], gpu, clock=clock, isolation=replace(QUIET, thread_waits=look))
    found = group.build(case, case.shape, group.timed_reference.inputs)

    check_reuse(replace(found, run=run), group, 5e-6)

    assert found.holds(group.timed_reference.inputs)


@pytest.mark.parametrize("remembers_from", [2, 3])
def test_reuse_is_found_on_a_gpu_although_a_repeated_call_was_interrupted(gpu, clock, remembers_from):
    met, repeats = Counter(), [0]

    def run():
        values = found.inputs[0].tobytes()
        met[values] += 1
        repeats[0] += met[values] >= remembers_from
        is_interrupted = repeats[0] % 5 == 1
        clock.spend(200e-6 if met[values] < remembers_from or is_interrupted else 10e-6)
        found.run()

    case = replace(CASE, device=gpu.id)
    group = open_group([case], gpu, clock=clock, isolation=QUIET)
    found = group.build(case, case.shape, group.timed_reference.inputs)

    with pytest.raises(IncorrectOutput, match="the timed calls reuse earlier work"):
        check_reuse(replace(found, run=run), group, 10e-6)


@pytest.mark.parametrize("device_kind", ["cpu", "cuda"])
def test_honest_call_is_settled_with_one_set_of_new_values(gpu, clock, device_kind):
    """They take far longer to make than a call: ten million numbers, 0.2 s."""
    device, met = CPU if device_kind == "cpu" else gpu, set()
    case = replace(CASE, device=device.id)
    group = open_group([case], device, clock=clock, isolation=QUIET)
    found = group.build(case, case.shape, group.timed_reference.inputs)

    def run():
        met.add(found.inputs[0].tobytes())
        clock.spend(40e-6)
        found.run()

    check_reuse(replace(found, run=run), group, 38e-6)

    assert len(met - {group.timed_reference.inputs[0].tobytes()}) == 1


def test_call_that_computes_nothing_on_values_it_has_not_seen_is_not_taken_for_a_fast_one(candidate, group, clock):
    with pytest.raises(IncorrectOutput, match="the output contains NaN"):
        check_reuse(replace(candidate, run=lambda: clock.spend(1e-9)), group, 1e-3)


def test_unseen_values_are_new_each_time_however_short_the_rows(clock):
    case = Case("softmax", Shape.of(m=50, n=2), "fp32", "numpy", "cpu")
    group = open_group([case], CPU, clock=clock, isolation=QUIET)
    values = group.unseen_references()
    met = [group.timed_reference, group.other_reference, *(next(values) for _ in range(9))]

    assert len({reference.inputs[0].tobytes() for reference in met}) == len(met)


def test_caches_that_fill_in_several_calls_after_values_were_made_are_not_blamed(candidate, group, clock, monkeypatch):
    made = group.unseen_references
    calls = []

    def emptied():
        for values in made():
            calls.clear()
            yield values

    def run():
        calls.append(1)
        clock.spend({1: 5e-3, 2: 3e-3}.get(len(calls), 1e-3))
        candidate.run()

    monkeypatch.setattr(group, "unseen_references", emptied)

    check_reuse(replace(candidate, run=run), group, 1e-3)

    assert candidate.holds(group.timed_reference.inputs)


def test_one_disturbed_call_is_not_blamed_on_the_implementation(candidate, group, clock):
    calls = []

    def run():
        calls.append(1)
        clock.spend(1.0 if len(calls) < 4 else 1e-3)
        candidate.run()

    check_reuse(replace(candidate, run=run), group, 1e-3)

    assert candidate.holds(group.timed_reference.inputs)
