"""From a case, or another candidate, to something that can be sampled: guard, build, first call, check, warm up.

Every step that finds a case impossible raises. Of the times taken here only the first call is reported, as a
figure of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from random import Random

from gpuexplore.backends import Clock
from gpuexplore.core import Cancelled, Case, Device, Shape, Unsupported
from gpuexplore.measure.candidates.candidate import WAKING_CALL_S, Candidate, cache_mode, flush_bytes, unsupported
from gpuexplore.measure.check import (
    MIN_CALLS,
    AnyReference,
    Group,
    check_duration,
    check_memory,
    estimate_call_s,
    host_bytes,
    host_bytes_of_large,
    limit_s,
    needed_bytes,
)
from gpuexplore.measure.check.spot_checks import check_inputs, checked
from gpuexplore.measure.conditions.environment import free_bytes, resident_bytes
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.sample import slow_cases
from gpuexplore.measure.sample.timing import (
    WARM_UP_IDLE_GPU_S,
    WARM_UP_S,
    Sampling,
    plan_rounds,
    sample_in_rounds,
    warm_up,
)

HOST = Device("cpu", "cpu", "the host of a GPU")
PROBE_S = 2e-3
STEADY_S = 0.1  # a busy moment does not make a call of that length look ten times as long


def prepare(case: Case, group: Group, progress: ProgressHooks) -> Sampling:
    """Return `case` checked, warmed up and ready to be sampled.

    Raises:
        Unsupported, TooLarge, TooSlow, IncorrectOutput: the case is not to be timed, and why.
    """
    probed_s = _check_limits(case, group)
    candidate = group.build(case, case.shape, group.checked_reference.inputs)
    candidate.poison()
    group.isolation.wait_for_idle_threads()
    once_s = candidate.first_call_s(group.clock)
    first_calls_s = probed_s + once_s
    first_call_s = slow_cases.take_first_calls_s(case) + first_calls_s
    accuracy = checked(candidate, group, group.checked_reference)
    if group.timed_reference is not group.checked_reference:
        candidate = group.build(case, case.shape, group.timed_reference.inputs)
    if once_s >= WAKING_CALL_S and (slow := _slow(candidate, group, first_call_s, progress)):
        return replace(slow, accuracy=accuracy, first_calls_s=first_calls_s)
    at_least_s = WARM_UP_S if group.device.kind == "cpu" else WARM_UP_IDLE_GPU_S
    with group.isolation.exclude_servers(at_least_s), group.isolation.isolate_core():
        call_s, fastest_s = warm_up(candidate, group.clock, at_least_s)
    check_duration(case, fastest_s)  # the fastest: a busy moment must not skip a case
    candidate.poison()  # so that the check after sampling sees what the timed calls wrote
    return Sampling(candidate, call_s, first_call_s, accuracy=accuracy, first_calls_s=first_calls_s)


def _slow(candidate: Candidate, group: Group, first_call_s: float, progress: ProgressHooks) -> Sampling | None:
    """Return the sampling of a call that takes long, with its first samples; None where one of them does not.

    Waking threads does not show in such a call, so each timed one computes with values of its own and is checked. Two
    are, before the call counts as slow: on a busy machine some calls wait as long for a core.
    """
    take = partial(_checked_call, candidate, group, _references(group), progress)
    samples_s = list[float]()
    grown_bytes = 0
    while len(samples_s) < 2:
        sample_s, grown = take()
        samples_s.append(sample_s)
        grown_bytes += grown
        if samples_s[-1] < WAKING_CALL_S:
            candidate.load(group.timed_reference.inputs)
            return None
        check_duration(candidate.case, min(samples_s))
    return Sampling(
        candidate,
        min(samples_s),
        first_call_s,
        samples_s=samples_s,
        rounds=len(samples_s),
        spent_s=sum(samples_s),
        checked_call=take,
        grown_bytes=grown_bytes,
    )


def _references(group: Group) -> Iterator[AnyReference]:
    """Yield the references of timed calls that are checked one by one: values that no call has met."""
    if group.data != "normal":
        return repeat(group.timed_reference)
    return chain([group.other_reference], group.unseen_references())


def _checked_call(
    candidate: Candidate, group: Group, references: Iterator[AnyReference], progress: ProgressHooks
) -> tuple[float, int]:
    """Return seconds of a call on the next values over a poisoned output, checked after it; and bytes it kept."""
    reference = next(references)
    progress.running(candidate.case, None)
    candidate.load(reference.inputs)
    candidate.poison()
    group.isolation.wait_for_idle_threads()
    with group.isolation.exclude_servers(WAKING_CALL_S), group.isolation.isolate_core():
        before_bytes = resident_bytes()
        (sample_s,) = candidate.timer.sample(candidate.run, calls=1, flush=candidate.flush)
    candidate.backend.synchronize(candidate.case.device)
    grown_bytes = resident_bytes() - before_bytes
    checked(candidate, group, reference)
    check_inputs(candidate, reference.inputs)
    return sample_s, grown_bytes


def _check_limits(case: Case, group: Group) -> float:
    """Raise when the case cannot or must not be started; return seconds that the probe's first call cost."""
    implementation = group.operation.implementation_named(case.implementation)
    if reason := unsupported(group.operation, implementation, group.dtype, group.device):
        raise Unsupported(reason)
    # Raise TooLarge where the device, or the host that checks it, has less memory free than the case takes
    of_case = group.operation, case.shape, group.dtype.itemsize_bytes
    needed = needed_bytes(*of_case, group.device.kind)
    if cache_mode(case, group.device) == "cold" and group.device.kind != "cpu":
        needed += 2 * flush_bytes(group.device)  # a buffer is overwritten, another one read
    check_memory(needed, free_bytes(group.device), group.device)
    if group.device.kind != "cpu":
        on_host = (
            host_bytes(*of_case) if group.torch_device is None else host_bytes_of_large(group.operation, case.shape)
        )
        check_memory(on_host, free_bytes(HOST), HOST)
    costs_s: list[float] = []
    enough_s = limit_s(case) / MIN_CALLS
    estimate = partial(estimate_call_s, group.operation, case.shape, partial(_probed_s, case, group, costs_s), enough_s)
    call_s = estimate()
    if slow_cases.expected_s(case) <= enough_s < call_s:  # a busy moment makes a call look ten times as long
        call_s = min(call_s, estimate())
    if call_s > enough_s:
        slow_cases.note_call(case, call_s)
    check_duration(case, call_s)
    return sum(costs_s)


def _probed_s(case: Case, group: Group, costs_s: list[float], shape: Shape) -> float:
    """Return seconds of a call at `shape` that is not the first one, the fastest of three where it may have waited.

    Args:
        case: of whose implementation.
        group: of the case.
        costs_s: gets what the first call cost.
        shape: a small one.
    """
    candidate = group.build(case, shape, group.inputs(shape))
    group.isolation.wait_for_idle_threads()
    first_s = candidate.first_call_s(group.clock)
    with group.isolation.exclude_servers(first_s), group.isolation.isolate_core():
        call_s = candidate.first_call_s(group.clock)
        if PROBE_S < call_s < STEADY_S:  # a busy moment, or a call that takes long: the fastest of three counts
            call_s = min(call_s, *(candidate.first_call_s(group.clock) for _ in range(2)))
    costs_s.append(max(0.0, first_s - call_s))
    return call_s


# Candidates that are no cases of an operation, timed in rounds by the rules of all others.


def warmed(candidate: Candidate, check: Callable[[], None], clock: Clock, isolation: Isolation) -> Sampling:
    """Return a candidate that was called, checked and warmed up.

    Args:
        candidate: built.
        check: raises where the call did not do what it should.
        clock: in nanoseconds.
        isolation: of the calls.
    """
    isolation.wait_for_idle_threads()
    first_call_s = candidate.first_call_s(clock)
    check()
    at_least_s = WARM_UP_S if candidate.device.kind == "cpu" else WARM_UP_IDLE_GPU_S
    with isolation.exclude_servers(at_least_s), isolation.isolate_core():
        call_s, _ = warm_up(candidate, clock, at_least_s)
    return Sampling(candidate, call_s, first_call_s)


def sample_all(samplings: Sequence[Sampling], clock: Clock, isolation: Isolation, progress: ProgressHooks) -> None:
    """Take rounds of all until each has settled.

    Raises:
        Cancelled: the user asked to stop; or whatever a call raised.
    """
    plan_rounds(samplings)
    by_case = {sampling.candidate.case: sampling for sampling in samplings}
    random = Random(len(samplings))
    for _, error in sample_in_rounds(by_case, random, clock=clock, isolation=isolation, progress=progress):
        if error is not None:
            raise error
    if progress.cancelled():
        raise Cancelled("cancelled while it was being measured")
