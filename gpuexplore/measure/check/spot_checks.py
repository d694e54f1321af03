"""Checks that timed calls compute: a round on other values between the samples, and single calls after them.

Samples repeat one computation on the same inputs, over an output that is already right. An implementation that works on
some calls only, keeps an earlier result, skips what is there, or defers its work looks fast then, and right. None of
that survives a single call on inputs with other values, with an output full of NaN. Benchmarks of generated kernels met
all of them: https://github.com/flashinfer-ai/flashinfer-bench-starter-kit/issues/21 keeps an output,
https://github.com/ScalingIntelligence/KernelBench/pull/82 changes inputs and works on another stream.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import numpy as np

from gpuexplore.core import Accuracy, IncorrectOutput, format_seconds
from gpuexplore.core.dtypes import Stored
from gpuexplore.measure.candidates.candidate import Candidate, Inputs, bits, device_arrays, wake_briefly
from gpuexplore.measure.check.correctness import Output, describe
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.inputs import AnyReference
from gpuexplore.measure.conditions.isolation import ProgressHooks, longest_wait_s

LATEST_S = 0.05  # wait for a thread that still works after its call


def check_single_calls(candidate: Candidate, group: Group) -> None:
    """Check a call on other values over a poisoned output, then one on those that are timed over what that one left.

    Two in a row: what works on every second call only fails at one of them, and what works only where it finds NaN at
    the second. The timer makes them, as it makes those that are timed. Leaves the values that are timed, and a
    poisoned output.

    Raises:
        IncorrectOutput: an output is wrong, or a call changed its inputs.
    """
    timed = group.timed_reference
    check_inputs(candidate, timed.inputs)
    _let_threads_end(group)
    candidate.poison()
    for reference in (group.other_reference, timed):
        candidate.load(reference.inputs)
        # Make a call; on a CPU its output is read before any other thread of Python can write to it
        seen = candidate.stored().reshape(-1) if candidate.device.kind == "cpu" else None
        with group.isolation.isolate_core():
            with _no_other_thread():
                candidate.timer.sample(candidate.run, calls=1, flush=None)
                late = seen is not None and _has_gaps(candidate, seen)
            candidate.backend.synchronize(candidate.case.device)
        if late and seen is not None:
            time.sleep(LATEST_S)
            if not _has_gaps(candidate, seen):  # elements that are never written are reported with the output
                raise IncorrectOutput("the output was still written after its call had returned")
        checked(candidate, group, reference)
        check_inputs(candidate, reference.inputs)
    candidate.poison()


def _let_threads_end(group: Group) -> None:
    """Wait until threads left by earlier calls have ended, LATEST_S at most: they would write during a later call."""
    end_s = time.monotonic() + LATEST_S
    while threading.active_count() > group.threads and time.monotonic() < end_s:
        time.sleep(1e-3)


def _has_gaps(candidate: Candidate, output: Stored) -> bool:
    """Return whether some of 64 elements of an output, read as a call returns, are not written yet."""
    return bool(np.isnan(candidate.dtype.widen(output[:: max(1, output.size // 64)])).any())


@contextmanager
def _no_other_thread() -> Iterator[None]:
    """Inside, another thread of Python runs only when this one waits, as a call does that is done by threads."""
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)


@contextmanager
def on_other_values(candidate: Candidate, group: Group, progress: ProgressHooks) -> Iterator[None]:
    """Inside, calls compute with other values, over an output that is right for those that are timed; it is checked.

    The stack of such a call is that of a timed one. Leaves the values that are timed.

    Raises:
        IncorrectOutput: the output is wrong, or a call changed its inputs.
    """
    other = group.other_reference
    check_inputs(candidate, group.timed_reference.inputs)
    candidate.load(other.inputs)
    yield
    progress.running(candidate.case, None)
    check_inputs(candidate, other.inputs)
    checked(candidate, group, other)
    candidate.load(group.timed_reference.inputs)


def check_reuse(candidate: Candidate, group: Group, call_s: float) -> None:
    """Check that a call on values it has not seen, over a poisoned output, takes no longer than those that were timed.

    Where it does, cold caches and sleeping threads may be why: then than one as cold that repeats the one before. The
    output of the call that settles it is checked, for what computes nothing is fast as well.

    Args:
        candidate: built and warm, with the values that are timed as its inputs.
        group: of its case.
        call_s: seconds of the fastest call that was timed.

    Raises:
        IncorrectOutput: it does, again and again: what was timed reuses earlier work. Or its output is wrong.
    """
    times = 2.0  # a call on the same values: nothing a cache or a clock does between the two
    slack_s = 5e-6
    fresh_s = 0.0
    repeated_s = 0.0
    for unseen, fresh_s, repeated_s in _attempts(candidate, group, call_s):
        if fresh_s <= times * repeated_s + slack_s:
            checked(replace(candidate, accepted={}), group, unseen)  # which is not used again
            candidate.load(group.timed_reference.inputs)
            return
    raise IncorrectOutput(
        f"a call takes {format_seconds(fresh_s)} on new values and {format_seconds(repeated_s)} on repeated "
        f"ones: the timed calls reuse earlier work"
    )


def _attempts(candidate: Candidate, group: Group, call_s: float) -> Iterator[tuple[AnyReference, float, float]]:
    """Yield unseen values, seconds of a call on them and of one that repeats values, for one attempt after the other.

    Values are made for each attempt, which takes far longer than a call: an attempt with few of them comes first.
    """
    attempts = 3  # before a slow call is blamed on the implementation and not on the machine
    values = group.unseen_references()
    pairs = _pairs(call_s)
    if candidate.device.kind == "cpu":  # elsewhere a call that the host launches and awaits is compared with its like
        for unseen in islice(values, pairs):
            wake_briefly(candidate, call_s)  # making values took long
            candidate.load(unseen.inputs)
            candidate.poison()
            fresh_s = candidate.first_call_s(group.clock)
            call_s = min(call_s, candidate.first_call_s(group.clock))  # load may have slowed all timed ones
            yield unseen, fresh_s, call_s
        yield from (_fastest(candidate, group, values, (call_s, _pairs(call_s))) for _ in range(attempts))
    else:
        counts = [min(count, pairs) for count in (1, 3, *[pairs] * attempts)]
        yield from (_fastest(candidate, group, values, (call_s, count)) for count in counts)


def _pairs(call_s: float) -> int:
    return 1 if call_s >= 40e-3 else 3 if call_s >= 1e-3 else 7


def _fastest(
    candidate: Candidate, group: Group, values: Iterator[AnyReference], calls: tuple[float, int]
) -> tuple[AnyReference, float, float]:
    """Return the last unseen values, seconds of the fastest call on any, and of the fastest that repeats one.

    The former without its threads' waits for cores in use by others: a busy neighbour keeps one for milliseconds.
    """
    call_s, pairs = calls
    again = 3 if call_s < 1e-3 else 1  # so that one preempted call does not hide reuse
    scratch = candidate.backend.empty(group.operation.output(group.shape), group.dtype, candidate.case.device)
    elsewhere = replace(candidate, out=scratch)
    fresh = []
    repeated = []
    unseen = next(values)
    for number in range(pairs):
        unseen = next(values) if number else unseen
        wake_briefly(candidate, call_s, least=5)  # making values emptied the caches: huge ones fill in some calls
        candidate.load(unseen.inputs)
        candidate.poison()
        fresh.append(_running_s(candidate, group)[0])
        for _ in range(again):
            wake_briefly(candidate, call_s)  # code that reuses work in later calls has seen these values by then
            candidate.load(unseen.inputs)
            elsewhere.poison()  # as long as the other call, so that threads and caches are in the same state
            repeated.append(_running_s(candidate, group)[1])
    return unseen, min(fresh), min(repeated)


def _running_s(candidate: Candidate, group: Group) -> tuple[float, float]:
    """Return seconds of a call, without the time that its longest-waiting thread certainly waited for a core in it.

    Waits of threads are read before and after: as much of a wait as the time around the call may lie outside it. The
    system counts a wait as it ends: one that is longer than the time between both readings began before. Reading makes
    the call after it slower, so calls that are compared both follow a reading. A GPU times its calls itself: on the
    host's clock launching and waiting, 40 µs, would hide what shorter kernels do.

    Returns:
        Without the wait, and as it was timed.
    """
    if candidate.device.kind != "cpu":
        (device_s,) = candidate.timer.sample(candidate.run, calls=1, flush=None)
        return device_s, device_s
    clock = group.clock
    began_ns = clock()
    waits_s = group.isolation.thread_waits()
    call_s = candidate.first_call_s(clock)
    waited_s = longest_wait_s(waits_s, group.isolation.thread_waits()) or 0.0
    around_s = (clock() - began_ns) * 1e-9 - call_s
    return (call_s - max(0.0, waited_s - around_s) if waited_s <= call_s + around_s else call_s), call_s


def check_inputs(candidate: Candidate, values: Inputs) -> None:
    """Check that the inputs still have `values`.

    Raises:
        IncorrectOutput: they do not.
    """
    if not candidate.holds(values):
        raise IncorrectOutput("it changed its inputs, so the next call computes other values")


# Correctness of an output: judged element by element, or by equal bits with an output that was judged.


def checked(candidate: Candidate, group: Group, reference: AnyReference) -> Accuracy:
    """Return the accuracy of the candidate's output, which is that of the same bits before.

    Raises:
        IncorrectOutput: the output, or an element of it, is further from the reference than rounding explains.
    """
    group.process.check()
    if candidate.stays_on_device:
        return _accepted(candidate, group, reference, device_arrays().DeviceOutput(candidate.out, group.dtype))
    stored = candidate.stored()
    if known := candidate.accepted.get(id(reference)):
        _, right, accuracy = known
        if np.array_equal(bits(stored), bits(right)):
            return accuracy
    accuracy = _accepted(candidate, group, reference, group.dtype.widen(stored))
    if stored.nbytes <= 2**26:  # comparing bits takes a tenth of the time of judging elements
        candidate.accepted[id(reference)] = (reference, stored.copy(), accuracy)
    return accuracy


def _accepted(candidate: Candidate, group: Group, reference: AnyReference, out: Output) -> Accuracy:
    accuracy = judge(out, reference, group.shape, group.growth(candidate.case.implementation, group.shape))
    if accuracy.within:
        return accuracy
    of_a_user = group.operation.implementation_named(candidate.case.implementation).of_a_user
    if (
        of_a_user and candidate.is_poisoned()
    ):  # it returned an array that was poisoned before the call, and wrote nothing
        reason = (
            "it returned an array that this call did not write: the result of an earlier call, or uninitialized memory"
        )
        raise IncorrectOutput(reason, accuracy)
    raise IncorrectOutput(describe(accuracy), accuracy)
