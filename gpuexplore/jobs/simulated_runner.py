"""Stands in for `gpuexplore.measure.runner` on simulated devices: takes as long as a measurement, and computes nothing.

A call takes what its FLOPs take at 1 TFLOP/s; each result is flagged `simulated`.
"""

from collections.abc import Callable, Sequence
from time import sleep

from gpuexplore.measure.conditions.environment import describe_environment
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.model import Case, Device, Flag, Measurement, Result, Status
from gpuexplore.operations import operation_named

RATE_FLOP_PER_S = 1e12
LEAST_S = 1e-6
SAMPLES = 10
POLL_S = 0.01
FLAG = Flag("simulated", "nothing was computed: its time is what its FLOPs take at 1 TFLOP/s")


def warm_up(device: Device) -> None:
    """Do nothing: there is nothing to load."""


def measure_group(
    cases: Sequence[Case],
    device: Device,
    *,
    report: Callable[[Case | Result], None],
    cancelled: Callable[[], bool],
    time: Timekeeper,
) -> None:
    """Report each case and, a sampling budget later, its result; see `gpuexplore.measure.runner.measure_group`."""
    environment = describe_environment(device, (), None)
    for case in cases:
        report(case)
        end_ns = time.clock() + case.options.budget_s * 1e9
        while time.clock() < end_ns and not cancelled():
            sleep(POLL_S)
        if cancelled():
            report(Result(case, Status.CANCELLED, "cancelled while it was simulated", environment=environment))
            continue
        measurement = Measurement((_call_s(case),) * SAMPLES, first_call_s=_call_s(case))
        report(Result(case, Status.OK, measurement=measurement, flags=(FLAG,), environment=environment))


def _call_s(case: Case) -> float:
    return max(operation_named(case.operation).flop_count(case.shape) / RATE_FLOP_PER_S, LEAST_S)
