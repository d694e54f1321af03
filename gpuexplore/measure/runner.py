"""From cases to results: the one path every measurement takes, in whatever process.

`measure_cases` takes the cases of one device. Cases of one operation, shape and dtype are a group. Each group is

1. prepared: built, guarded, checked, warmed up, and given a first round of samples, so that a provisional result of
   every case stands early;
2. sampled in rounds, one of each implementation after the other, which go to the groups that need them most until
   nothing more is to be decided or the budget is spent;
3. concluded: each case is checked once more, flagged and reported; before the first, peaks that are not known yet
   are measured.

Groups whose calls take long come after the others. It raises nothing for a case: whatever goes wrong becomes its status
and reason.

Candidates of an activity, sampled in the same rounds: checked before and after, with what disturbed them.
"""

import gc
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from random import Random
from time import perf_counter_ns

from gpuexplore.backends import Clock
from gpuexplore.core import (
    Cancelled,
    Case,
    Device,
    Environment,
    Experiment,
    Flag,
    IncorrectOutput,
    Measurement,
    Result,
    Status,
    require,
)
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.hardware import cpu_loss, device_named, read, read_cpu_times
from gpuexplore.measure.candidates.candidate import Candidate, unsupported
from gpuexplore.measure.candidates.failure import check_context, is_broken
from gpuexplore.measure.check import Group, groups_of, open_at_once, open_group
from gpuexplore.measure.check.spot_checks import check_reuse, check_single_calls, checked, on_other_values
from gpuexplore.measure.check.stress import check_often, weakness
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.conditions.spread import with_spread, with_spread_of_calls
from gpuexplore.measure.conditions.watch import SPEEDS, Watch
from gpuexplore.measure.flags import MeasuredCase, condition_flags, find_flags, with_fair_ceiling
from gpuexplore.measure.sample import slow_cases
from gpuexplore.measure.sample.compile_ahead import LARGE, SMALL, call_once
from gpuexplore.measure.sample.contrast import SHORT_CALL_S, call_overhead_s, take_contrasts, take_phases
from gpuexplore.measure.sample.prepare import prepare, sample_all, warmed
from gpuexplore.measure.sample.timing import (
    ENOUGH_ROUNDS,
    NO_NEED,
    Sampling,
    check_seals,
    is_complete,
    need,
    plan_rounds,
    sealed,
    take_rounds,
)
from gpuexplore.operations import first_kernels

ISOLATION = Isolation(core_speed=SPEEDS.look)


@dataclass(slots=True)
class _OpenGroup:
    """A group that is being measured: its cases that are ready, and the observations meanwhile."""

    group: Group
    watch: Watch
    progress: ProgressHooks
    random: Random
    ready: dict[Case, Sampling] = field(default_factory=dict)

    def need(self) -> tuple[int, float]:
        """Return the scheduling priority; NO_NEED when no more rounds are needed."""
        return need(tuple(self.ready.values()))

    def budget_s(self) -> float:
        """Return the seconds it may take, first calls included."""
        return sum(case.options.budget_s + sampling.first_calls_s for case, sampling in self.ready.items())

    def finishing_s(self) -> float:
        """Return about how many seconds its last checks take: six calls of each case, and 10 ms."""
        calls = (sampling for sampling in self.ready.values() if sampling.checked_call is None)
        return sum(10e-3 + 6 * sampling.call_s for sampling in calls)

    def take_round(self, takes_part: Callable[[Sampling], bool]) -> None:
        """Take a round of each open case; a call cannot detect the purpose of the round."""
        self.group.resume()
        active = {case: sampling for case, sampling in self.ready.items() if takes_part(sampling)}
        group = self.group
        rounds = take_rounds(active, self.random, clock=group.clock, isolation=group.isolation, progress=self.progress)
        for case, error in rounds:
            del self.ready[case]
            self.progress.running(case, None)
            self.progress.report(self.group.failed(case, error))

    def report_provisional(self) -> None:
        """Report the result of each case as far as it is known."""
        for sampling in self.ready.values():
            group = self.group
            measured = MeasuredCase(
                sampling.candidate.case, sampling.measurement(), group.environment, group.operation, group.dtype
            )
            result = replace(_result(measured, sampling, group), provisional=True)
            slow_cases.note(result)
            self.progress.report(result)

    def conclude(self) -> None:
        """Check each case once more, and report its result."""
        self.group.resume()
        for case, sampling in self.ready.items():
            self.progress.running(case, None)
            seals = sealed(self.ready.values())
            result = _conclude(case, sampling, self)
            try:
                check_seals(seals)
            except IncorrectOutput as error:
                result = self.group.failed(case, error)
            self.progress.report(result)
        self.ready = {}

    def cancel(self) -> None:
        """Report that no case can be measured any more, nor checked."""
        for case in self.ready:
            self.progress.report(self.group.failed(case, Cancelled("cancelled while it was being measured")))
        self.ready = {}


def measure_cases(
    cases: Sequence[Case],
    device: Device,
    *,
    progress: ProgressHooks,
    clock: Clock = perf_counter_ns,
    isolation: Isolation = ISOLATION,
) -> None:
    """Measure `cases` of one device; report for each a provisional `Result`, and later the one that stays.

    Args:
        cases: of any groups; they share their budgets.
        device: where they run; its peaks decide flags.
        progress: gets a case when work on it starts, and its results. Cancelled between rounds, what was not begun then
            is CANCELLED, the rest stays with the samples it has.
        clock: in nanoseconds.
        isolation: from other threads and processes.
    """
    measure = partial(_measure_together, device=device, clock=clock, isolation=isolation, progress=progress)
    native_first = sorted(groups_of(cases), key=lambda group: group[0].dtype not in device.native)
    slow: list[Sequence[Case]] = []
    for groups in open_at_once(native_first, device):
        measure(_without(slow, groups))
    for groups in open_at_once(slow, device):
        measure(group for group in groups if not progress.preempted())


def _without(slow: list[Sequence[Case]], groups: Sequence[Sequence[Case]]) -> Iterator[Sequence[Case]]:
    """Yield `groups` but for those that are `slow` by what was measured until then, which are added there."""
    for group in groups:
        if slow_cases.are_slow(group):
            slow.append(group)
        else:
            yield group


def measure_group(
    cases: Sequence[Case],
    device: Device,
    *,
    progress: ProgressHooks,
    clock: Clock = perf_counter_ns,
    isolation: Isolation = ISOLATION,
) -> None:
    """Measure `cases`, and report nothing provisional."""

    def report_final(event: Case | Result) -> None:
        if not (isinstance(event, Result) and event.provisional):
            progress.report(event)

    measure_cases(cases, device, progress=replace(progress, report=report_final), clock=clock, isolation=isolation)


def sweep(
    experiment: Experiment,
    devices: Sequence[Device],
    *,
    report: Callable[[Case | Result], None],
    lock: Callable[[Device], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> None:
    """Measure every case of `experiment` in this process, device by device; report one final `Result` for each.

    Args:
        experiment: what is asked for.
        devices: those of this machine.
        report: called with cases and final results, as by `measure_group`.
        lock: returns the lock of a device, which is held while it is measured on.

    Raises:
        InvalidInput: fresh processes are asked for.
    """
    require(
        experiment.options.repeat <= 1,
        "repeat",
        experiment.options.repeat,
        "1: only `gpuexplore run` starts fresh processes",
    )
    for device in [device_named(name, devices) for name in experiment.devices]:
        cases = [case for case in experiment.cases() if case.device == device.id]
        with lock(device):
            measure_group(cases, device, progress=ProgressHooks(report))


def _measure_together(
    groups: Iterable[Sequence[Case]], *, device: Device, clock: Clock, isolation: Isolation, progress: ProgressHooks
) -> None:
    """Prepare `groups`, sample them in rounds, and conclude."""
    began_ns = clock()
    opened = [_prepare(group, device, clock=clock, isolation=isolation, progress=progress) for group in groups]
    gc.freeze()  # existing objects: a garbage collection during a round then visits few
    try:
        _sample_by_need(opened, began_ns, device, progress)
        _learn_peaks(opened, device, progress)
        for group in sorted(opened, key=_OpenGroup.finishing_s):
            if progress.preempted():
                break
            for _ in range(1, ENOUGH_ROUNDS):
                group.take_round(_lacks_short_rounds)
            group.take_round(_lacks_other_values)
            group.cancel() if is_broken(device) else group.conclude()
    finally:
        gc.unfreeze()


def _learn_peaks(opened: Sequence[_OpenGroup], device: Device, progress: ProgressHooks) -> int:
    """Note the device's peaks, late, as pages draw the first chart meanwhile; return the nanoseconds it took.

    Where they are new, provisional results are reported once more.
    """
    began_ns = perf_counter_ns()
    known = progress.with_peaks(device)
    for each in opened:
        if each.group.device != known:
            each.group.device = known
            each.group.environment = replace(each.group.environment, device=known)
            each.report_provisional()
    return perf_counter_ns() - began_ns


def _sample_by_need(opened: list[_OpenGroup], began_ns: int, device: Device, progress: ProgressHooks) -> None:
    """Give rounds to the group that needs them most until the budget is spent; conclude groups that need none."""
    budget_s = sum(group.budget_s() for group in opened)
    while opened and not progress.cancelled() and not is_broken(device) and not progress.preempted():
        elapsed_s = (opened[0].group.clock() - began_ns) * 1e-9
        spent_s = elapsed_s + sum(group.finishing_s() for group in opened)
        neediest = max(opened, key=_OpenGroup.need)
        if neediest.need() == NO_NEED or spent_s >= budget_s:
            break
        neediest.take_round(lambda sampling: not is_complete(sampling))
        if neediest.need() == NO_NEED:
            neediest.take_round(_lacks_other_values)
            began_ns += _learn_peaks(opened, device, progress)  # no part of the budget
            neediest.conclude()
            opened.remove(neediest)


def _lacks_short_rounds(sampling: Sampling) -> bool:
    """Return whether it has fewer rounds than every case gets and a round is short, however long preparing took."""
    short_s = 25e-3  # one more costs less than the checks of a case
    return sampling.rounds < ENOUGH_ROUNDS and sampling.round_s <= short_s


def _lacks_other_values(sampling: Sampling) -> bool:
    """Return whether no round computed with other values yet, as where the budget is spent; the next one does."""
    if sampling.other_values is None or sampling.rounds_before_other_values < 0:
        return False
    sampling.rounds_before_other_values = 0
    return True


def _prepare(
    cases: Sequence[Case], device: Device, *, clock: Clock, isolation: Isolation, progress: ProgressHooks
) -> _OpenGroup:
    """Return the group of `cases`, each with a round of samples, which was reported."""
    watch = Watch(device, isolation.wait_for_idle_threads)
    group = open_group(cases, device, clock=clock, isolation=isolation, seed=secrets.randbelow(2**32))
    opened = _OpenGroup(group, watch, progress, Random(group.seed))
    for case in cases:
        progress.report(case)
        seals = sealed(opened.ready.values())
        try:
            check_context(device)
            if progress.cancelled():
                raise Cancelled("cancelled before it was measured")
            sampling = prepare(case, group, progress)
            check_seals(seals)
            watch.look_at_busy(sampling.candidate.timer)
            if (
                sampling.checked_call is None
            ):  # a round on other values between the samples, at a time that no call can predict
                sampling.other_values = partial(on_other_values, sampling.candidate, group, progress)
                sampling.rounds_before_other_values = opened.random.randrange(1, ENOUGH_ROUNDS)
            opened.ready[case] = sampling
        except Exception as error:
            progress.report(group.failed(case, error))
    plan_rounds(list(opened.ready.values()))
    watch.begin_samples()
    opened.take_round(lambda sampling: sampling.rounds == 0)
    opened.report_provisional()
    return opened


def _conclude(case: Case, sampling: Sampling, opened: _OpenGroup) -> Result:
    """Return the result of a case; the output of its timed calls is checked once more."""
    group = opened.group
    watch = opened.watch
    progress = opened.progress
    try:
        after = watch.state()
        contrasts = tuple(take_contrasts(sampling, group, progress))
        progress.running(case, None)  # their rounds are over: the following checks may take longer than a round
        if sampling.checked_call is None:
            checked(sampling.candidate, group, group.timed_reference)
            check_single_calls(sampling.candidate, group)
        phases = take_phases(sampling, group, progress)
        measurement = replace(sampling.measurement(), contrasts=contrasts, phases=phases)
        if sampling.checked_call is None:
            check_reuse(sampling.candidate, group, min(measurement.samples_s))
        weak_on, cores = _stressed(case, sampling.candidate, group, measurement.median_s)
        device = with_fair_ceiling(group.device, sampling.candidate, group.operation, measurement)
        measured = MeasuredCase(
            case,
            measurement,
            watch.described(group.environment, device, after),
            group.operation,
            group.dtype,
            losses=watch.losses(),
            has_busy_idle_threads=watch.has_busy_idle_threads,
            core_speeds=tuple(sampling.core_speeds),
            grown_bytes=sampling.grown_bytes,
            waited_share=sampling.waited_share,
            weakness=weak_on,
            cores=cores,
        )
        result = _result(measured, sampling, group)
        if measurement.median_s >= SHORT_CALL_S:
            return result
        overhead_s = call_overhead_s(case, group, progress, before=lambda: progress.checkpoint(result))
        return _result(replace(measured, overhead_s=overhead_s), sampling, group)
    except Exception as error:
        return group.failed(case, error)


def _stressed(case: Case, candidate: Candidate, group: Group, call_s: float) -> tuple[str | None, float | None]:
    """Return the inputs on which a user's implementation is wrong, and the cores it uses: ours are tested before."""
    if not group.operation.implementation_named(case.implementation).of_a_user:
        return None, None
    candidate.load(group.timed_reference.inputs)
    cores = check_often(candidate, group, call_s)
    return weakness(case, group), cores


def _result(measured: MeasuredCase, sampling: Sampling, group: Group) -> Result:
    return with_spread(
        Result(
            measured.case,
            Status.OK,
            measurement=measured.measurement,
            accuracy=sampling.accuracy,
            flags=find_flags(measured),
            environment=measured.environment,
            seed=group.seed,
        )
    )


def warm_up(device: Device, hurried: Callable[[], bool] = lambda: False) -> None:
    """Run the implementations of a first visit on small cases, so that the first user need not wait.

    Args:
        device: of this process.
        hurried: asked between two of them; once true, the rest is left.
    """
    SPEEDS.prepare()
    for (operation, implementation, dtype), size in product(first_kernels(device), (SMALL, LARGE)):
        if hurried():
            return
        if unsupported(operation, implementation, dtype_named(dtype), device) is None:
            case = Case(operation.name, operation.shape_of_size(size), dtype, implementation.name, device.id)
            open_group([case], device, clock=perf_counter_ns, isolation=ISOLATION)  # loads what is watched with it
            call_once(case, device, size)


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
