"""Candidates that are no cases of an operation, timed in turns by the rules of all others."""

from collections.abc import Callable, Sequence
from random import Random

from gpuexplore.errors import Cancelled
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.conditions.spread import with_spread_of_calls
from gpuexplore.measure.sample.timing import (
    WARM_UP_IDLE_GPU_S,
    WARM_UP_S,
    Sampling,
    plan_rounds,
    sample_in_rounds,
    warm_up,
)
from gpuexplore.model import Measurement


def warmed(candidate: Candidate, check: Callable[[], None], time: Timekeeper) -> Sampling:
    """Return a candidate that was called, checked and warmed up.

    Args:
        check: raises where the call did not do what it should.
    """
    time.wait_for_idle_threads()
    first_call_s = candidate.first_call_s(time.clock)
    check()
    at_least_s = WARM_UP_S if candidate.device.kind == "cpu" else WARM_UP_IDLE_GPU_S
    with time.undisturbed(at_least_s), time.isolate_core():
        call_s, _ = warm_up(candidate, time.clock, at_least_s)
    return Sampling(candidate, call_s, first_call_s)


def sample_all(samplings: Sequence[Sampling], cancelled: Callable[[], bool], time: Timekeeper) -> None:
    """Take rounds of all until each has settled.

    Raises:
        Cancelled: the user asked to stop; or whatever a call raised.
    """
    plan_rounds(samplings)
    errors: list[Exception] = []
    sample_in_rounds(
        {sampling.candidate.case: sampling for sampling in samplings},
        time=time,
        random=Random(len(samplings)),
        cancelled=lambda: cancelled() or bool(errors),
        settle=lambda _, error: errors.append(error) if error else None,
    )
    if errors:
        raise errors[0]
    if cancelled():
        raise Cancelled("cancelled while it was being measured")


def measurement_of(sampling: Sampling) -> Measurement:
    """Return what was sampled, with how far processes lie apart."""
    return with_spread_of_calls(sampling.measurement(), sampling.candidate.device)
