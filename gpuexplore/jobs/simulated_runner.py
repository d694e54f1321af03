"""Stands in for `gpuexplore.measure.runner` on simulated devices: takes as long as a measurement, and computes nothing.

A call takes what its FLOPs take at 1 TFLOP/s; each result is flagged `simulated`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import sleep

from gpuexplore.backends import Clock
from gpuexplore.core.model import Case, Device, Environment, Flag, Measurement, Result, Status
from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.operations import operation_named

FIRST_SAMPLES = 3
FIRST_SHARE = 0.1  # of the budget, for the first pass


def warm_up(device: Device, hurried: Callable[[], bool]) -> None:
    """Do nothing: there is nothing to load."""


def measure_cases(
    cases: Sequence[Case],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,  # noqa: ARG001 nothing is computed
    progress: ProgressHooks,
) -> None:
    """Report a provisional result of each case, and a sampling budget later its final one.

    See `gpuexplore.measure.runner.measure_cases`.
    """
    environment = describe_environment(device, (), None)
    passed: list[Case] = []
    for case in cases:
        progress.report(case)
        if _has_slept(FIRST_SHARE * case.options.budget_s, clock, progress.cancelled):
            progress.report(replace(_result(case, FIRST_SAMPLES, environment), provisional=True))
            passed.append(case)
        else:
            cancelled = Result(case, Status.CANCELLED, "cancelled while it was simulated", environment=environment)
            progress.report(cancelled)
    for case in passed:
        rest_s = (1 - FIRST_SHARE) * case.options.budget_s
        whole = _has_slept(rest_s, clock, lambda: progress.cancelled() or progress.preempted())
        if progress.preempted():
            return
        progress.report(_result(case, 10 if whole else FIRST_SAMPLES, environment))


def _has_slept(seconds: float, clock: Clock, cancelled: Callable[[], bool]) -> bool:
    """Let `seconds` pass; return whether it was not cancelled meanwhile."""
    end_ns = clock() + seconds * 1e9
    while clock() < end_ns and not cancelled():
        sleep(0.01)
    return not cancelled()


def _result(case: Case, samples: int, environment: Environment) -> Result:
    call_s = max(operation_named(case.operation).flop_count(case.shape) / 1e12, 1e-6)
    flag = Flag("simulated", "simulated: nothing was computed; the time is that of its FLOPs at 1 TFLOP/s")
    measurement = Measurement((call_s,) * samples, first_call_s=call_s)
    return Result(case, Status.OK, measurement=measurement, flags=(flag,), environment=environment)
