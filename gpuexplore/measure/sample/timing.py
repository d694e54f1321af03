"""Warm-up, rounds and the stopping rule: how calls become samples.

The contract, in order (see docs/measuring.md): warm up by time and by count; then all candidates of a
group take one round each, in random order, until each has settled: the 95 % interval of its median is
within 1 % of it, not before ten samples and 30 ms, or its budget is spent. Every sample of a
round that counts is kept.

A round that web servers of this host disturbed, by the CPU time they used and not by what its samples say, is taken
again; the least disturbed take counts.

A round is two samples, because samples of one round resemble each other more (1 %) than rounds do (4 %):
ten samples then come from five rounds, and the interval, which assumes independent samples, is not far too
narrow. A round begins with untimed calls, because the first ones after a pause find threads asleep and
caches cold: torch's product of 32 x 32 takes 800, 4, 1.3 times as long, after ten calls 1.01 times; its product
of 1024 x 1024 takes 18 % longer. They count towards the budget.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from random import Random
from time import sleep

from gpuexplore.backends.timer import Call, Clock
from gpuexplore.measure.build.candidate import Candidate
from gpuexplore.measure.build.waking import WAKE_S, WAKING_CALL_S, wake
from gpuexplore.measure.check.guard import limit_s
from gpuexplore.measure.conditions.core_speeds import Look
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.conditions.memory import resident_bytes
from gpuexplore.model import Case
from gpuexplore.statistics import SMALLEST_SAMPLE_WITH_INTERVAL, median, median_interval

WARM_UP_S = 25e-3
ROUND_SAMPLES = 2  # samples of one implementation before it is another's turn
LONG_ROUND_SAMPLES = 5  # where the untimed call before them takes long
LONG_CALL_S = 5e-3
WARM_UP_IDLE_GPU_S = 0.2  # an idle GPU takes this long to raise its clocks
WARM_UP_CALLS = 3
MIN_SAMPLES = 10
MIN_SPAN_S = 30e-3  # from the first round to the last: disturbances last for milliseconds, and recur
DISTURBED_SHARE = 0.02  # of a core, which web servers used during a round: it is taken again
AGAIN_S = 0.25  # so long at most, for long calls span disturbances anyhow
PATIENCE_S = 0.3  # for slow cores, of all rounds of a case: most neighbours are gone by then
PAUSE_S = 5e-3  # between two looks at them
PRECISION = 0.01  # half width of the interval over the median


@dataclass(frozen=True, slots=True)
class _Take:
    """The samples of a round as they were taken once.

    Attributes:
        lasted_s: seconds, those of the calls that wake threads included.
        disturbed_s: CPU seconds that web servers of this host used meanwhile.
        slowest: what was seen of the slowest core just before or after; None is unknown.
    """

    samples_s: Sequence[float]
    lasted_s: float
    disturbed_s: float
    slowest: Look | None = None

    @property
    def is_disturbed(self) -> bool:
        return self.disturbed_s > DISTURBED_SHARE * self.lasted_s

    @property
    def is_slow(self) -> bool:
        """Whether a core was slow that it computed on."""
        return self.slowest is not None and self.slowest.is_slow


@dataclass(slots=True)
class Sampling:
    """The samples of one candidate while they are taken.

    Attributes:
        spot_check: called once between two rounds, after `rounds_before_spot_check` of them.
        other_values: inside it, a round that does not count computes with other values; checks its output at the end.
        looks: at the cores, one for each round that counts; none where nothing is known.
        patience_s: seconds that are left to wait for slow cores.
        grown_bytes: by which this process grew during its rounds.
    """

    candidate: Candidate
    call_s: float
    first_call_s: float
    calls: int = 1
    per_round: int = 1
    samples_s: list[float] = field(default_factory=list)
    spent_s: float = 0.0
    span_s: float = 0.0
    started_ns: int | None = None
    spot_check: Call | None = None
    other_values: Callable[[], AbstractContextManager[None]] = nullcontext
    rounds_before_spot_check: int = 0
    looks: list[Look] = field(default_factory=list)
    patience_s: float = PATIENCE_S
    grown_bytes: int = 0

    @property
    def round_s(self) -> float:
        """About how many seconds a round takes: its samples, and the calls that wake threads."""
        return self.per_round * self.calls * self.call_s + max(WAKE_S, self.call_s)

    def take_round(self, time: Timekeeper) -> None:
        """Add one round of samples, with other libraries' threads asleep and the library's own awake."""
        self.started_ns = time.clock() if self.started_ns is None else self.started_ns
        taken: list[_Take] = []
        for values, samples in self._values_of_round(time):
            with values():  # one line for both: a call must not tell from its stack whether it is checked
                taken.append(self._best_take(time, samples))
        best = taken[-1]
        self.samples_s += best.samples_s
        self.looks += [best.slowest] if best.slowest else []
        self.spent_s += best.lasted_s
        self.span_s = (time.clock() - self.started_ns) * 1e-9

    def _values_of_round(self, time: Timekeeper) -> Iterator[tuple[Callable[[], AbstractContextManager[None]], int]]:
        """Yield what a round computes with and its samples: once, before the values that are timed, others for one."""
        self.rounds_before_spot_check -= 1
        if self.spot_check is not None and self.rounds_before_spot_check == -1:
            time.begin_turn(self.candidate.case, None)  # making and comparing values may take longer than a round
            yield self.other_values, 1
            time.begin_turn(self.candidate.case, None)
            self.spot_check()
        yield nullcontext, self.per_round

    def _best_take(self, time: Timekeeper, samples: int) -> "_Take":
        """Take the samples of a round, again where it was disturbed; return the least disturbed ones."""
        before_bytes = resident_bytes()
        takes: list[_Take] = []
        while not takes or self._is_worth_another(takes):
            before, taken, after = self._quiet(time), self._take(time, samples), self._look(time)
            slowest = min((look for look in (before, after) if look), key=lambda look: look.share, default=None)
            takes.append(replace(taken, slowest=slowest))
        self.grown_bytes += resident_bytes() - before_bytes
        return min(takes, key=lambda take: (take.is_slow, take.disturbed_s))

    def _is_worth_another(self, takes: Sequence["_Take"]) -> bool:
        last = takes[-1]
        if last.is_slow and self.patience_s > 0:
            self.patience_s -= last.lasted_s
            return True
        return last.is_disturbed and sum(take.lasted_s for take in takes) < AGAIN_S

    def _quiet(self, time: Timekeeper) -> Look | None:
        """Wait until no core is slow, while patience lasts; return how fast they run then."""
        if time.look_at_cores:
            time.begin_turn(self.candidate.case, self.round_s + max(0.0, self.patience_s))
        look = self._look(time, before=True)
        while look and look.is_slow and self.patience_s > 0:
            began_ns = time.clock()
            sleep(PAUSE_S)
            look = self._look(time)
            self.patience_s -= max(PAUSE_S, (time.clock() - began_ns) * 1e-9)
        return look

    def _look(self, time: Timekeeper, *, before: bool = False) -> Look | None:
        if time.look_at_cores and self.candidate.device.kind == "cpu":
            return time.look_at_cores(self.candidate.threads, time.wait_for_idle_threads)
        if before:
            time.wait_for_idle_threads()
        return None

    def _take(self, time: Timekeeper, samples: int) -> "_Take":
        with time.undisturbed(self.round_s) as disturbed_s, time.isolate_core():
            time.begin_turn(self.candidate.case, self.round_s)
            start = time.clock()
            wake(self.candidate, self.call_s)
            samples_s = [
                sample
                for _ in range(samples)
                for sample in self.candidate.timer.sample(
                    self.candidate.run, calls=self.calls, flush=self.candidate.flush
                )
            ]
            return _Take(samples_s, (time.clock() - start) * 1e-9, disturbed_s())

    def settled(self) -> bool:
        """Whether the median is known well enough, or the budget is spent."""
        case, count = self.candidate.case, len(self.samples_s)
        if count >= MIN_SAMPLES and self.span_s >= MIN_SPAN_S and _is_precise(self.samples_s):
            return True
        has_interval = count >= SMALLEST_SAMPLE_WITH_INTERVAL
        return self.spent_s >= (case.options.budget_s if has_interval else limit_s(case))


def warm_up(candidate: Candidate, clock: Clock, at_least_s: float) -> tuple[float, float]:
    """Call until `at_least_s` and three calls have passed; return seconds of a typical and of the fastest call."""
    durations: list[float] = []
    start = clock()
    while len(durations) < WARM_UP_CALLS or (clock() - start) * 1e-9 < at_least_s:
        durations.append(candidate.first_call_s(clock))
    return median(durations), min(durations)


def plan_rounds(samplings: Sequence[Sampling]) -> None:
    """Decide calls per sample and samples per round: equal for all of a group, so that samples can be paired."""
    slowest_s = max((sampling.call_s for sampling in samplings), default=0.0)
    for sampling in samplings:
        timer = sampling.candidate.timer
        several = LONG_ROUND_SAMPLES if slowest_s >= LONG_CALL_S else ROUND_SAMPLES
        sampling.per_round = 1 if timer.one_sample_per_call or slowest_s >= WAKING_CALL_S else several
        batched = (
            timer.one_sample_per_call or sampling.candidate.flush is None
        )  # flushes between the calls leave no batch to time
        sampling.calls = (
            timer.calls_per_round(slowest_s if timer.one_sample_per_call else sampling.call_s) if batched else 1
        )


def sample_in_rounds(
    samplings: Mapping[Case, Sampling],
    *,
    time: Timekeeper,
    random: Random,
    cancelled: Callable[[], bool],
    settle: Callable[[Case, Exception | None], None],
) -> None:
    """Take rounds of all `samplings` in random order; call `settle` with each case that is done.

    A case is done when it has settled, or when its call raised: then the exception goes along.
    Returns early, with the unsettled ones left, when `cancelled` says so.
    """
    active = dict(samplings)
    while active and not cancelled():
        for case in random.sample(list(active), len(active)):
            error = _try_round(active[case], time)
            if error or active[case].settled():
                del active[case]
                settle(case, error)


def sample_alone(candidate: Candidate, call_s: float, time: Timekeeper, looks: list[Look]) -> tuple[float, ...]:
    """Return seconds per call of one candidate, by the rounds and the stopping rule of all others.

    Args:
        call_s: about how long a call takes.
        looks: gets what was seen of the cores in each round.
    """
    alone = Sampling(candidate, call_s, first_call_s=0.0)
    plan_rounds([alone])
    while not alone.settled():
        alone.take_round(time)
    looks += alone.looks
    return tuple(alone.samples_s)


def _try_round(sampling: Sampling, time: Timekeeper) -> Exception | None:
    try:
        sampling.take_round(time)
    except Exception as error:
        return error
    return None


def _is_precise(samples_s: Sequence[float]) -> bool:
    interval = median_interval(samples_s)
    return interval is not None and interval[1] - interval[0] <= 2 * PRECISION * median(samples_s)
