"""From cases to results: the one path every measurement takes, in whatever process.

`measure_cases` takes the cases of one device. First each gets a round of samples and a provisional result, so that the
whole chart stands early; then rounds go to the groups that need them most, until nothing more is to be decided or the
budget is spent. Groups whose calls take long come after the others. Implementations of one operation, shape and dtype
are sampled in turns. It raises nothing for a case: whatever goes wrong becomes its status and reason.
"""

import gc
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from random import Random

from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.errors import Cancelled
from gpuexplore.core.model import Case, Device, Result, Status
from gpuexplore.measure.candidates.candidate import Candidate, unsupported
from gpuexplore.measure.candidates.failure import IncorrectOutput, check_context, is_broken
from gpuexplore.measure.check.group import Group, groups_of, open_group
from gpuexplore.measure.check.guard import open_at_once
from gpuexplore.measure.check.spot_checks import check_reuse, check_single_calls, checked, on_other_values
from gpuexplore.measure.check.stress import check_often, weakness
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.conditions.spread import with_spread
from gpuexplore.measure.conditions.watch import SPEEDS, Watch
from gpuexplore.measure.flags import MeasuredCase, find_flags, with_fair_ceiling
from gpuexplore.measure.sample import slow_cases
from gpuexplore.measure.sample.compile_ahead import LARGE, SMALL, call_once
from gpuexplore.measure.sample.contrast import SHORT_CALL_S, call_overhead_s, take_contrasts, take_phases
from gpuexplore.measure.sample.needs import ENOUGH_ROUNDS, is_complete, need
from gpuexplore.measure.sample.prepare import prepare
from gpuexplore.measure.sample.timing import Sampling, check_seals, plan_rounds, sealed, take_turn
from gpuexplore.operations.first_visit import first_kernels

Report = Callable[[Case | Result], None]
IsCancelled = Callable[[], bool]
TIMEKEEPER = Timekeeper(look_at_cores=SPEEDS.look)
SEEDS = 2**32
FINISHING_CALLS = 6  # of a case, by which its last checks are estimated
FINISHING_S = 10e-3
SHORT_ROUND_S = 25e-3  # of which one more costs less than what a case is checked with
NONE = (0, 0.0)


@dataclass(slots=True)
class _Open:
    """A group that is being measured: its cases that are ready, and what is seen meanwhile."""

    group: Group
    watch: Watch
    report: Report
    random: Random
    ready: dict[Case, Sampling] = field(default_factory=dict)

    def need(self) -> tuple[int, float]:
        """Return how much it needs rounds; (0, 0.0) is not at all."""
        return need(tuple(self.ready.values()))

    def budget_s(self) -> float:
        """Return the seconds it may take, with what first calls took."""
        return sum(case.options.budget_s + sampling.first_calls_s for case, sampling in self.ready.items())

    def finishing_s(self) -> float:
        """Return about how many seconds its last checks take."""
        calls = (sampling for sampling in self.ready.values() if sampling.checked_call is None)
        return sum(FINISHING_S + FINISHING_CALLS * sampling.call_s for sampling in calls)

    def begin(self) -> None:
        """Plan the rounds, and note how things stand."""
        plan_rounds(list(self.ready.values()))
        self.watch.begin_samples()

    def turn(self, gets_one: Callable[[Sampling], bool]) -> None:
        """Take a round of each case that gets one; no call can tell why it does."""
        self.group.resume()
        active = {case: sampling for case, sampling in self.ready.items() if gets_one(sampling)}
        take_turn(active, self.group.time, self.random, self._fail)

    def report_provisional(self) -> None:
        """Report what is known of each case so far."""
        for sampling in self.ready.values():
            result = _provisional(sampling, self.group)
            slow_cases.note(result)
            self.report(result)

    def finish(self) -> None:
        """Check each case once more, and report its result."""
        self.group.resume()
        for case, sampling in self.ready.items():
            self.group.time.begin_turn(case, None)
            seals = sealed(self.ready.values())
            result = _finish(case, sampling, self.group, self.watch)
            try:
                check_seals(seals)
            except IncorrectOutput as error:
                result = self.group.failed(case, error)
            self.report(result)
        self.ready = {}

    def give_up(self) -> None:
        """Report that nothing more can be measured, nor checked."""
        for case in self.ready:
            self.report(self.group.failed(case, Cancelled("cancelled while it was being measured")))
        self.ready = {}

    def _fail(self, case: Case, error: Exception) -> None:
        del self.ready[case]
        self.group.time.begin_turn(case, None)
        self.report(self.group.failed(case, error))


def measure_cases(
    cases: Sequence[Case],
    device: Device,
    *,
    report: Report,
    cancelled: IsCancelled = lambda: False,
    time: Timekeeper = TIMEKEEPER,
) -> None:
    """Measure `cases` of one device; report for each a provisional `Result`, and later the one that stays.

    Args:
        cases: of any groups; they share their budgets.
        device: where they run; its peaks decide flags.
        report: called with a case when work on it starts, and with its results.
        cancelled: polled between rounds: what was not begun then is CANCELLED, the rest stays with the samples it has.
        time: the clock, the wait for idle pool threads, and who is told whose turn it is.
    """
    native_first = sorted(groups_of(cases), key=lambda group: group[0].dtype not in device.native)
    slow: list[Sequence[Case]] = []
    for groups in open_at_once(native_first, device):
        _measure_together(_without(slow, groups), device, report=report, cancelled=cancelled, time=time)
    for groups in open_at_once(slow, device):
        now = (group for group in groups if not time.leaves_off())
        _measure_together(now, device, report=report, cancelled=cancelled, time=time)


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
    report: Report,
    cancelled: IsCancelled = lambda: False,
    time: Timekeeper = TIMEKEEPER,
) -> None:
    """Measure `cases`, and report nothing provisional."""

    def report_final(event: Case | Result) -> None:
        if not (isinstance(event, Result) and event.provisional):
            report(event)

    measure_cases(cases, device, report=report_final, cancelled=cancelled, time=time)


def _measure_together(
    groups: Iterable[Sequence[Case]], device: Device, *, report: Report, cancelled: IsCancelled, time: Timekeeper
) -> None:
    began_ns = time.clock()
    opened = [_first_pass(group, device, report=report, cancelled=cancelled, time=time) for group in groups]
    budget_s = sum(group.budget_s() for group in opened)
    gc.freeze()  # what there is: a collection during a round then looks at little
    try:
        while opened and not cancelled() and not is_broken(device) and not time.leaves_off():
            spent_s = (time.clock() - began_ns) * 1e-9 + sum(group.finishing_s() for group in opened)
            neediest = max(opened, key=_Open.need)
            if neediest.need() == NONE or spent_s >= budget_s:
                break
            neediest.turn(_gets_more)
            if neediest.need() == NONE:
                neediest.turn(_lacks_other_values)
                neediest.finish()
                opened.remove(neediest)
        for group in sorted(opened, key=_Open.finishing_s):
            if time.leaves_off():
                break
            for _ in range(1, ENOUGH_ROUNDS):
                group.turn(_lacks_short_rounds)
            group.turn(_lacks_other_values)
            group.give_up() if is_broken(device) else group.finish()
    finally:
        gc.unfreeze()


def _is_new(sampling: Sampling) -> bool:
    return sampling.rounds == 0


def _gets_more(sampling: Sampling) -> bool:
    return not is_complete(sampling)


def _lacks_short_rounds(sampling: Sampling) -> bool:
    """Return whether it has fewer rounds than every case gets and a round is short, whatever preparing it took."""
    return sampling.rounds < ENOUGH_ROUNDS and sampling.round_s <= SHORT_ROUND_S


def _lacks_other_values(sampling: Sampling) -> bool:
    """Return whether no round computed with other values yet, as where the budget is spent; the next one does."""
    if sampling.other_values is None or sampling.rounds_before_other_values < 0:
        return False
    sampling.rounds_before_other_values = 0
    return True


def _first_pass(
    cases: Sequence[Case], device: Device, *, report: Report, cancelled: IsCancelled, time: Timekeeper
) -> _Open:
    """Return the group of `cases`, each with a round of samples, which was reported."""
    watch = Watch(device, time.wait_for_idle_threads)
    group = open_group(cases, device, time, secrets.randbelow(SEEDS))
    opened = _Open(group, watch, report, Random(group.seed))
    for case in cases:
        report(case)
        seals = sealed(opened.ready.values())
        try:
            sampling = _prepared(case, group, cancelled)
            check_seals(seals)
            watch.look_at_busy(sampling.candidate.timer)
            _plan_other_values(sampling, group, opened.random)
            opened.ready[case] = sampling
        except Exception as error:
            report(group.failed(case, error))
    opened.begin()
    opened.turn(_is_new)
    opened.report_provisional()
    return opened


def _prepared(case: Case, group: Group, cancelled: IsCancelled) -> Sampling:
    check_context(group.device)
    if cancelled():
        raise Cancelled("cancelled before it was measured")
    return prepare(case, group)


def _plan_other_values(sampling: Sampling, group: Group, random: Random) -> None:
    """Have a round on other values between the samples, when no implementation can know."""
    if sampling.checked_call is None:
        sampling.other_values = partial(on_other_values, sampling.candidate, group)
        sampling.rounds_before_other_values = random.randrange(1, ENOUGH_ROUNDS)


def _provisional(sampling: Sampling, group: Group) -> Result:
    measured = MeasuredCase(sampling.candidate.case, sampling.measurement(), group.environment)
    return replace(_result(measured, sampling, group), provisional=True)


def _finish(case: Case, sampling: Sampling, group: Group, watch: Watch) -> Result:
    """Return the result of a case; the output of its timed calls is checked once more."""
    try:
        after = watch.state()
        contrasts = take_contrasts(sampling, group)
        group.time.begin_turn(case, None)  # their rounds are over: what follows may take longer than one
        if sampling.checked_call is None:
            checked(sampling.candidate, group, group.timed_reference)
            check_single_calls(sampling.candidate, group)
        phases = take_phases(sampling, group)
        measurement = replace(sampling.measurement(), contrasts=contrasts, phases=phases)
        if sampling.checked_call is None:
            check_reuse(sampling.candidate, group, min(measurement.samples_s))
        weak_on, cores = _stressed(case, sampling.candidate, group, measurement.median_s)
        device = with_fair_ceiling(sampling.candidate, measurement)
        measured = MeasuredCase(
            case,
            measurement,
            watch.described(group.environment, device, after),
            losses=watch.losses(),
            is_restless=watch.is_restless,
            looks=tuple(sampling.looks),
            grown_bytes=sampling.grown_bytes,
            waited_share=sampling.waited_share,
            weakness=weak_on,
            cores=cores,
        )
        if measurement.median_s < SHORT_CALL_S:
            keep = partial(_keep, measured, sampling, group)
            measured = replace(measured, overhead_s=call_overhead_s(case, group, before=keep))
        return _result(measured, sampling, group)
    except Exception as error:
        return group.failed(case, error)


def _stressed(case: Case, candidate: Candidate, group: Group, call_s: float) -> tuple[str | None, float | None]:
    """Return on which inputs a user's implementation is wrong, and how many cores it uses: ours are tested before."""
    if not group.operation.implementation_named(case.implementation).of_a_user:
        return None, None
    candidate.load(group.timed_reference.inputs)
    cores = check_often(candidate, group, call_s)
    return weakness(case, group), cores


def _keep(measured: MeasuredCase, sampling: Sampling, group: Group) -> None:
    group.time.keep(_result(measured, sampling, group))


def _result(measured: MeasuredCase, sampling: Sampling, group: Group) -> Result:
    flags = find_flags(measured, group.operation, group.dtype)
    environment = measured.environment
    result = Result(
        measured.case, Status.OK, None, measured.measurement, sampling.accuracy, flags, environment, group.seed
    )
    return with_spread(result)


def warm_up(device: Device, hurried: IsCancelled = lambda: False) -> None:
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
            open_group([case], device, TIMEKEEPER)  # loads what is watched with it
            call_once(case, device, size)
