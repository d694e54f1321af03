"""Candidates of an activity, sampled in the same rounds: checked before and after, with what disturbed them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuexplore.backends.timer import Clock
from gpuexplore.core.model import Environment, Flag, Measurement
from gpuexplore.hardware import cpu_loss, read, read_cpu_times
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.conditions.spread import with_spread_of_calls
from gpuexplore.measure.flags import condition_flags
from gpuexplore.measure.sample.prepare import sample_all, warmed

Checked = tuple[Candidate, Callable[[], None]]  # a candidate, and a check that raises if its last call was wrong


def measured_together(
    candidates: Sequence[Checked],
    environment: Environment,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> tuple[Environment, list[tuple[Measurement, tuple[Flag, ...]]]]:
    """Return the environment as it was afterwards, and of each candidate its measurement with its flags.

    Raises:
        Cancelled: the user asked to stop.
        IncorrectOutput: a check found another output than expected.
    """
    before = read_cpu_times()
    samplings = [warmed(candidate, check, clock, isolation) for candidate, check in candidates]
    sample_all(samplings, clock, isolation, progress)
    afterwards = replace(environment, after=read(environment.device))
    loss = cpu_loss(before, read_cpu_times())
    for _, check in candidates:
        check()
    measurements = [with_spread_of_calls(each.measurement(), each.candidate.device) for each in samplings]
    return afterwards, [(found, condition_flags(found, afterwards, loss)) for found in measurements]
