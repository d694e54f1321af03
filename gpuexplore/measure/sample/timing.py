"""Warm-up, rounds and the stopping rule: how calls become samples.

The contract, in order (see docs/statistics.md): warm up; then all candidates of a group take one round each, in random
order, until each has settled: the 95 % interval of its median is within 1 % of it, not before ten samples, or its
budget is spent. Every sample of a round that counts is kept.

A sample is what a caller in a loop would see. So a round begins with untimed calls, until a pause before it does not
show any more, and is long: 24 samples of a quarter of a millisecond, so that an interruption of 4 ms, a scheduler's
time slice, hits few of them. All other observations lie between the rounds.

A round that web servers of this host disturbed, by the CPU time they used and not by what its samples say, is taken
once more; the less disturbed take counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from math import inf, log
from operator import itemgetter
from random import Random

from gpuexplore.backends import Clock
from gpuexplore.core import (
    Accuracy,
    Case,
    IncorrectOutput,
    Measurement,
    interval_of_few,
    median,
    median_interval,
    paired_ratios,
)
from gpuexplore.measure.candidates.candidate import LEAST_S, WAKING_CALL_S, Candidate, wake
from gpuexplore.measure.conditions.environment import resident_bytes
from gpuexplore.measure.conditions.isolation import WAITED_ABOVE, Isolation, ProgressHooks, longest_wait_s

WARM_UP_S = 5e-3
WARM_UP_CALLS = 2
WARM_UP_IDLE_GPU_S = 0.2  # an idle GPU takes this long to raise its clocks
ROUND_SAMPLES = 24  # samples of one implementation before the next one's round
LONG_CALL_S = 5e-3
MIN_SAMPLES = 10
DISTURBED_SHARE = 0.02  # share of a core used by web servers above which a round is repeated
PRECISION = 0.01  # half width of the interval over the median
ENOUGH_ROUNDS = 3  # rounds that every case gets before any gets more
SLOW_CALLS = 3  # timed calls after the first one
NO_NEED = (0, 0.0)

# A guard of the state that a timed call must not change, the samples so far and the timer: restores changes, and then
# returns the name of the implementation.
Seal = Callable[[], str | None]

# One attempt of a round: CPU seconds used by web servers of this host; duration in seconds, including the calls that
# wake threads; the longest wait of a thread for a core, None is unknown; the samples.
Taken = tuple[float, float, float | None, Sequence[float]]


@dataclass(slots=True)
class Sampling:
    """The samples of one candidate while they are taken.

    Attributes:
        call_s: about how long a call takes, seconds.
        calls: of a sample; of a round, where the timer gives a sample of every call.
        per_round: how often a round asks the timer for samples.
        rounds: that were taken.
        spent_s: wall seconds of them, with waits and observations.
        other_values: inside it, a round that does not count computes with other values; checks its output at the end.
            Entered once, after `rounds_before_other_values` rounds.
        checked_call: takes one sample of a slow call and checks its output; returns its seconds, and the bytes by which
            the process grew meanwhile. None: calls are timed in rounds.
        core_speeds: of the slowest core between rounds, of its usual rate; empty where not observed.
        grown_bytes: by which this process grew during its rounds.
        lasted_s: seconds of the rounds that count, without what lies between them; in which
        waited_s: threads waited for a core, the longest-waiting one of each round; None is unknown.
        accuracy: of its first output; None: it was not compared with a reference.
        first_calls_s: seconds of first calls that were made for it; not of a worker's warm-up before.
    """

    candidate: Candidate
    call_s: float
    first_call_s: float
    calls: int = 1
    per_round: int = 1
    samples_s: list[float] = field(default_factory=list)
    rounds: int = 0
    spent_s: float = 0.0
    other_values: Callable[[], AbstractContextManager[None]] | None = None
    rounds_before_other_values: int = 0
    checked_call: Callable[[], tuple[float, int]] | None = None
    core_speeds: list[float] = field(default_factory=list)
    grown_bytes: int = 0
    lasted_s: float = 0.0
    waited_s: float | None = None
    accuracy: Accuracy | None = None
    first_calls_s: float = 0.0

    @property
    def waited_share(self) -> float | None:
        """The share of its rounds in which it waited for a core in use by others; None is unknown."""
        return min(1.0, self.waited_s / self.lasted_s) if self.waited_s is not None and self.lasted_s else None

    @property
    def samples_per_round(self) -> int:
        """Samples that a round adds."""
        return self.per_round * (self.calls if self.candidate.timer.one_sample_per_call else 1)

    def measurement(self) -> Measurement:
        """Return the measurement, without contrasts and phases."""
        batch = 1 if self.candidate.timer.one_sample_per_call else self.calls
        return Measurement(tuple(self.samples_s), self.first_call_s, batch, per_round=self.samples_per_round)

    @property
    def round_s(self) -> float:
        """About how many seconds a round takes: its samples, and the calls that wake threads."""
        return self.per_round * self.calls * self.call_s + max(LEAST_S, self.call_s)

    def take_round(self, clock: Clock, isolation: Isolation, progress: ProgressHooks) -> None:
        """Add one round of samples, with other libraries' threads asleep and the library's own awake."""
        began_ns = clock()
        if self.checked_call is not None:
            sample_s, grown_bytes = self.checked_call()
            self.samples_s.append(sample_s)
            self.grown_bytes += grown_bytes
        else:
            take = partial(self._take, clock, isolation, progress)
            samples_s: Sequence[float] = ()
            for values, count in self._values_of_round(progress):
                with values():  # one line for both: a call must not see in its stack whether it is checked
                    samples_s = self._undisturbed(take, count)
            self.samples_s += samples_s
        self.rounds += 1
        self.spent_s += (clock() - began_ns) * 1e-9

    def _values_of_round(
        self, progress: ProgressHooks
    ) -> Iterator[tuple[Callable[[], AbstractContextManager[None]], int]]:
        """Yield the values a round computes with and its count of samples: other values once, for one sample, first."""
        self.rounds_before_other_values -= 1
        if self.other_values is not None and self.rounds_before_other_values == -1:
            progress.running(self.candidate.case, None)  # making and comparing values may take longer than a round
            yield self.other_values, 1
        yield nullcontext, self.per_round

    def _undisturbed(self, take: Callable[[int], Taken], count: int) -> Sequence[float]:
        """Return the samples of a round; of two where the first was disturbed, the less disturbed ones."""
        before_bytes = resident_bytes()
        taken = take(count)
        disturbed_s, lasted_s, *_ = taken
        if disturbed_s > DISTURBED_SHARE * lasted_s:
            taken = min(taken, take(count), key=itemgetter(0))
        self.grown_bytes += resident_bytes() - before_bytes
        _, lasted_s, waited_s, samples_s = taken
        if waited_s is not None:
            self.waited_s = (self.waited_s or 0.0) + waited_s
            self.lasted_s += lasted_s
        return samples_s

    def _take(self, clock: Clock, isolation: Isolation, progress: ProgressHooks, count: int) -> Taken:
        isolation.wait_for_idle_threads()
        with isolation.exclude_servers(self.round_s) as disturbed_s, isolation.isolate_core():
            progress.running(self.candidate.case, self.round_s)
            waits_s = isolation.thread_waits()
            began_ns = clock()
            wake(self.candidate, self.call_s, clock)
            samples_s = [
                sample
                for _ in range(count)
                for sample in self.candidate.timer.sample(
                    self.candidate.run, calls=self.calls, flush=self.candidate.flush
                )
            ]
            lasted_s = (clock() - began_ns) * 1e-9
            return disturbed_s(), lasted_s, longest_wait_s(waits_s, isolation.thread_waits()), samples_s

    def is_precise(self) -> bool:
        """True if the interval of the median is narrow."""
        if len(self.samples_s) < MIN_SAMPLES:
            return False
        interval = median_interval(self.samples_s)
        return interval is not None and interval[1] - interval[0] <= 2 * PRECISION * median(self.samples_s)

    def settled(self) -> bool:
        """True if the median is precise enough, or the budget of the case is spent."""
        return self.is_precise() or self.has_spent()

    def has_spent(self) -> bool:
        """True if the budget of the case is spent."""
        return self.spent_s >= self.candidate.case.options.budget_s


def warm_up(candidate: Candidate, clock: Clock, at_least_s: float) -> tuple[float, float]:
    """Call until `at_least_s` and two calls have passed; return seconds of a typical and of the fastest call."""
    durations: list[float] = []
    start = clock()
    while len(durations) < WARM_UP_CALLS or (clock() - start) * 1e-9 < at_least_s:
        durations.append(candidate.first_call_s(clock))
    return sorted(durations)[(len(durations) - 1) // 2], min(durations)


def plan_rounds(samplings: Sequence[Sampling]) -> None:
    """Decide calls per sample and samples per round: those of a fast call last no less next to a slow one."""
    for sampling in samplings:
        timer = sampling.candidate.timer
        call_s = sampling.call_s
        is_timed_once = timer.one_sample_per_call or sampling.checked_call is not None or call_s >= WAKING_CALL_S
        sampling.per_round = 1 if is_timed_once else 2 if call_s >= LONG_CALL_S else ROUND_SAMPLES
        # flushes between the calls leave no batch to time
        batched = timer.one_sample_per_call or sampling.candidate.flush is None
        sampling.calls = timer.calls_per_round(call_s) if batched else 1


def sealed(samplings: Iterable[Sampling]) -> list[Seal]:
    """Return the seals of `samplings` in their present state."""
    return list(map(_seal, samplings))


def _seal(sampling: Sampling) -> Seal:
    candidate = sampling.candidate
    timer = candidate.timer
    clock_name = "_clock"
    clock = getattr(timer, clock_name, None)  # None: it has none of its own
    samples_s = tuple(sampling.samples_s)

    def broken() -> str | None:
        count = len(samples_s)
        same = tuple(sampling.samples_s[:count]) == samples_s and sampling.candidate is candidate
        same = same and candidate.timer is timer and getattr(timer, clock_name, None) is clock
        sampling.samples_s[:count] = samples_s
        sampling.candidate = candidate
        object.__setattr__(candidate, "timer", timer)
        if clock is not None:
            setattr(timer, clock_name, clock)
        return None if same else candidate.case.implementation

    return broken


def check_seals(seals: Iterable[Seal]) -> None:
    """Check that a round changed no samples that were taken before, and no timer.

    Raises:
        IncorrectOutput: it did; everything is restored.
    """
    if broken := [name for seal in seals if (name := seal())]:
        raise IncorrectOutput(f"it changed the samples or the timer of {', '.join(broken)}")


def take_rounds(
    samplings: Mapping[Case, Sampling], random: Random, *, clock: Clock, isolation: Isolation, progress: ProgressHooks
) -> Iterator[tuple[Case, Exception]]:
    """Take a round of each of a group's `samplings`, in random order, and observe the cores afterwards.

    Yields:
        Each case whose call raised, with the exception, before the next round.
    """
    for case in random.sample(list(samplings), len(samplings)):
        seals = sealed(samplings.values())
        try:
            samplings[case].take_round(clock, isolation, progress)
            check_seals(seals)
        except Exception as error:
            yield case, error
    observe_cores(samplings.values(), isolation)


def observe_cores(samplings: Iterable[Sampling], isolation: Isolation) -> None:
    """Record for each of `samplings` the speed of the cores that it computes on, where it is observed."""
    if isolation.core_speed is None:
        return
    for sampling in samplings:
        if sampling.candidate.device.kind == "cpu":
            speed = isolation.core_speed(sampling.candidate.threads, isolation.wait_for_idle_threads)
            sampling.core_speeds += [] if speed is None else [speed]


def sample_in_rounds(
    samplings: Mapping[Case, Sampling], random: Random, *, clock: Clock, isolation: Isolation, progress: ProgressHooks
) -> Iterator[tuple[Case, Exception | None]]:
    """Take rounds of all `samplings`, one of each after the other, until each is done or the run is cancelled.

    A case is done when all have settled, so that their rounds can be paired, when its budget is spent, or when its call
    raised.

    Yields:
        Each case that is done, with the exception of its call.
    """
    active = dict(samplings)
    while active and not progress.cancelled():
        for case, error in take_rounds(active, random, clock=clock, isolation=isolation, progress=progress):
            del active[case]
            yield case, error
        have_settled = all(sampling.settled() for sampling in active.values())
        for case in [case for case, sampling in active.items() if have_settled or sampling.has_spent()]:
            del active[case]
            yield case, None


# The need for further rounds: medians that are not known well enough, and pairs whose order is open. Cases of one group
# are compared with each other, by ratios round by round. A ratio is decided when the two ends of its interval are on
# one side of 1, the spread between processes included; or when more rounds cannot decide it.


def need(samplings: Sequence[Sampling]) -> tuple[int, float]:
    """Return the scheduling priority of a group: first the rounds that it lacks, then its widest interval.

    Equal to NO_NEED when it needs none.
    """
    lacking = max((_lacking(sampling) for sampling in samplings), default=0)
    narrow = 0.03  # half width of the interval over the median: far less than the spread between processes
    wide = [
        half for each in samplings if (half := _half_width(each)) > narrow * _variation(each) and not is_complete(each)
    ]
    pairs = [_pair_half_width(*pair) for pair in combinations(samplings, 2) if _is_open(*pair)]
    return lacking, max([*wide, *pairs], default=0.0)


def _half_width(sampling: Sampling) -> float:
    """Return half of the 95 % interval of the median over the median; infinite where there is none."""
    interval = interval_of_few(sampling.samples_s)
    return inf if interval is None else (interval[1] - interval[0]) / 2 / median(sampling.samples_s)


def _is_open(this: Sampling, other: Sampling) -> bool:
    """Return whether more rounds may decide which of two cases of a group is faster."""
    if is_complete(this) or is_complete(other):
        return False
    interval = _interval_of_ratios(this, other)
    if interval is None:
        return True
    low, high = map(log, interval)
    between_processes_log_sd = 0.04  # of a ratio
    log_sd = between_processes_log_sd * max(_variation(this), _variation(other))
    if low > log_sd or high < -log_sd:
        return False
    return high - low > log_sd  # more rounds cannot decide narrower intervals


def _variation(sampling: Sampling) -> float:
    """Return the factor by which its median varies more from process to process than on a quiet machine."""
    of_waiting = 3.0  # benchmarks/README.md
    return of_waiting if (sampling.waited_share or 0.0) > WAITED_ABOVE else 1.0


def _pair_half_width(this: Sampling, other: Sampling) -> float:
    interval = _interval_of_ratios(this, other)
    return inf if interval is None else log(interval[1] / interval[0]) / 2


def _interval_of_ratios(this: Sampling, other: Sampling) -> tuple[float, float] | None:
    per_round = (other.samples_per_round, this.samples_per_round)
    return interval_of_few(paired_ratios(other.samples_s, this.samples_s, per_round))


def _lacking(sampling: Sampling) -> int:
    wanted = SLOW_CALLS if sampling.checked_call else ENOUGH_ROUNDS
    return max(0, wanted - sampling.rounds)


def is_complete(sampling: Sampling) -> bool:
    """Return whether it gets no more rounds, regardless of its intervals."""
    return sampling.checked_call is not None and sampling.rounds >= SLOW_CALLS
