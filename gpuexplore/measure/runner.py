"""How cases become results: the one path every measurement takes, in whatever process.

`measure_group` takes the implementations of one operation, shape, dtype and device, because they are
sampled in turns. It raises nothing for a case: whatever goes wrong becomes its status and reason.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import Cancelled
from gpuexplore.measure.build import first_call_cost
from gpuexplore.measure.build.candidate import unsupported
from gpuexplore.measure.build.cuda_context import check_context, is_broken
from gpuexplore.measure.ceiling import with_fair_ceiling
from gpuexplore.measure.check.group import Group, open_group
from gpuexplore.measure.check.outputs import checked
from gpuexplore.measure.check.spot_checks import check_finished, check_reuse, check_single_calls, on_other_values
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.conditions.repeatability import spread_between_processes
from gpuexplore.measure.conditions.watch import SPEEDS, Watch
from gpuexplore.measure.flags import Measured, find_flags
from gpuexplore.measure.sample.contrast import SHORT_CALL_S, take_contrasts
from gpuexplore.measure.sample.overhead import call_overhead_s
from gpuexplore.measure.sample.phases import take_phases
from gpuexplore.measure.sample.prepare import Prepared, prepare
from gpuexplore.measure.sample.timing import MIN_SAMPLES, ROUND_SAMPLES, Sampling, plan_rounds, sample_in_rounds
from gpuexplore.model import Case, Device, Measurement, Result, Status
from gpuexplore.operations import OPERATIONS

Report = Callable[[Case | Result], None]
TIMEKEEPER = Timekeeper(look_at_cores=SPEEDS.look)
SEEDS = 2**32
WARM_UP_DTYPES = ("fp32", "bf16", "fp16")


def measure_group(
    cases: Sequence[Case],
    device: Device,
    *,
    report: Report,
    cancelled: Callable[[], bool] = lambda: False,
    time: Timekeeper = TIMEKEEPER,
) -> None:
    """Measure `cases`, which share `Case.group`, and report one `Result` for each.

    Args:
        cases: the implementations of one operation, shape, dtype and device.
        device: where they run; its peaks decide flags.
        report: called with a case when work on it starts, and with its result when it ends.
        cancelled: polled between rounds; what is not done then is reported as CANCELLED.
        time: the clock, the wait for idle pool threads, and who is told whose turn it is.
    """
    watch = Watch(device, time.wait_for_idle_threads)
    group = open_group(cases, device, time, secrets.randbelow(SEEDS))
    random = Random(group.seed)
    ready: dict[Case, Prepared] = {}
    for case in cases:
        report(case)
        try:
            ready[case] = _prepared(case, group, cancelled)
            watch.look_at_busy(ready[case].sampling.candidate.timer)
            _plan_spot_check(ready[case].sampling, group, random)
        except Exception as error:
            report(group.failed(case, error))
    plan_rounds([prepared.sampling for prepared in ready.values()])
    watch.begin_samples()

    def settle(case: Case, error: Exception | None) -> None:
        prepared = ready.pop(case)
        group.time.begin_turn(case, None)
        report(group.failed(case, error) if error else _finish(case, prepared, group, watch))

    sample_in_rounds(
        {case: prepared.sampling for case, prepared in ready.items()},
        time=group.time,
        random=random,
        cancelled=lambda: cancelled() or is_broken(device),
        settle=settle,
    )
    for case in ready:
        report(group.failed(case, Cancelled("cancelled while it was being measured")))


def _prepared(case: Case, group: Group, cancelled: Callable[[], bool]) -> Prepared:
    check_context(group.device)
    if cancelled():
        raise Cancelled("cancelled before it was measured")
    return prepare(case, group)


def _plan_spot_check(sampling: Sampling, group: Group, random: Random) -> None:
    """Have a round on other values and single calls checked between the samples, when no implementation can know."""
    sampling.spot_check = partial(check_single_calls, sampling.candidate, group)
    sampling.other_values = partial(on_other_values, sampling.candidate, group)
    sampling.rounds_before_spot_check = random.randrange(1, MIN_SAMPLES // ROUND_SAMPLES)


def _finish(case: Case, prepared: Prepared, group: Group, watch: Watch) -> Result:
    """Return the result of a settled case; the output of its timed calls is checked once more."""
    sampling = prepared.sampling
    try:
        after = watch.state()
        contrasts = take_contrasts(sampling, group)
        checked(sampling.candidate, group, group.timed_reference)
        check_single_calls(sampling.candidate, group)
        phases = take_phases(sampling, group)
        measurement = Measurement(tuple(sampling.samples_s), sampling.first_call_s, sampling.calls, contrasts, phases)
        if spread := spread_between_processes(case, group.device):
            measurement = replace(measurement, between_processes=spread.deviation, between_ratios=spread.of_ratios)
        check_finished(sampling.candidate, measurement.median_s)
        check_reuse(sampling.candidate, group, measurement.median_s)
        losses = watch.losses()
        device = with_fair_ceiling(sampling.candidate, measurement)
        environment = watch.described(group.environment, device, after)
        measured = Measured(
            case,
            measurement,
            environment,
            losses=losses,
            is_restless=watch.is_restless,
            looks=tuple(sampling.looks),
            grown_bytes=sampling.grown_bytes,
        )
        if measurement.median_s < SHORT_CALL_S:
            keep = partial(_keep, measured, prepared, group)
            measured = replace(measured, overhead_s=call_overhead_s(case, group, before=keep))
        return _result(measured, prepared, group)
    except Exception as error:
        return group.failed(case, error)


def _keep(measured: Measured, prepared: Prepared, group: Group) -> None:
    group.time.keep(_result(measured, prepared, group))


def _result(measured: Measured, prepared: Prepared, group: Group) -> Result:
    flags = find_flags(measured, group.operation, group.dtype)
    accuracy, environment = prepared.accuracy, measured.environment
    return Result(measured.case, Status.OK, None, measured.measurement, accuracy, flags, environment, group.seed)


def warm_up(device: Device) -> None:
    """Run every implementation that `device` supports once on one element, so that the first user need not wait."""
    SPEEDS.prepare()
    for case in _smallest_cases(device):
        group = open_group([case], device, TIMEKEEPER)
        candidate = group.build(case, case.shape, group.inputs(case.shape))
        first_call_cost.note(case, candidate.first_call_s(TIMEKEEPER.clock), candidate.first_call_s(TIMEKEEPER.clock))


def _smallest_cases(device: Device) -> Iterator[Case]:
    """Yield a case of one element for each default implementation of the first operation.

    That loads every library. Kernels of other operations are compiled when they are first asked for, which takes
    seconds each on a new installation and is reported as their first call.
    """
    operation = next(iter(OPERATIONS.values()))
    for implementation, dtype in product(operation.usual, WARM_UP_DTYPES):
        if unsupported(operation, implementation, dtype_named(dtype), device) is None:
            yield Case(operation.name, operation.shape_of_size(1), dtype, implementation.name, device.id)
