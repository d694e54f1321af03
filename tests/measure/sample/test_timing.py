"""Warm-up, rounds and the stopping rule, with a clock that only the work moves."""

from contextlib import nullcontext
from dataclasses import replace
from math import ceil
from random import Random

import pytest

from gpuexplore.backends import MIN_BATCH_S, HostTimer
from gpuexplore.core.model import LARGEST_BUDGET_S
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.sample.timing import (
    DISTURBED_SHARE,
    LONG_CALL_S,
    MIN_SAMPLES,
    ROUND_SAMPLES,
    WARM_UP_CALLS,
    Sampling,
    plan_rounds,
    sample_in_rounds,
    take_rounds,
    warm_up,
)
from tests.measure.fakes import CPU, GPU, FakeClock, FakeEventTimer, FakeWork, candidate

NOISY_S = [1.0, 2.0, 3.0, 1.5, 2.5] * 10
LONG_S = 1.0  # so long that nothing has to be woken before it


def never():
    return False


class Bench:
    """Fake implementations on one clock, and what became of them."""

    def __init__(self, **durations_s):
        self.clock = FakeClock()
        self.waits = 0
        self.works = {name: FakeWork(self.clock, times) for name, times in durations_s.items()}
        self.settled = []
        self.samplings = {}

    def sampling(self, name, *, timer=None, flush=None, call_s=LONG_S, budget_s=LARGEST_BUDGET_S):
        one = candidate(self.works[name], name=name, timer=timer, flush=flush, budget_s=budget_s)
        self.samplings[one.case] = Sampling(one, call_s, first_call_s=1.0)
        return self.samplings[one.case]

    def wait(self):
        self.waits += 1

    @property
    def isolation(self):
        return Isolation(self.wait)

    def take_round(self, sampling, **isolation):
        sampling.take_round(self.clock, replace(self.isolation, **isolation), ProgressHooks())

    def run(self, *, cancelled=never, seed=1):
        progress = ProgressHooks(cancelled=cancelled)
        done = sample_in_rounds(
            self.samplings, Random(seed), clock=self.clock, isolation=self.isolation, progress=progress
        )
        for case, error in done:
            self.settled.append((case.implementation, error))
        return self.settled


@pytest.mark.parametrize(
    ("call_s", "at_least_s", "calls"),
    [(1.0, 0.0, WARM_UP_CALLS), (1.0, 1.5, WARM_UP_CALLS), (1e-3, 25e-3, 25), (1e-3, 0.2, 200), (5e-3, 25e-3, 5)],
)
def test_warm_up_lasts_until_both_the_time_and_two_calls_have_passed(call_s, at_least_s, calls):
    clock = FakeClock()
    work = FakeWork(clock, [call_s])

    warm_up(candidate(work), clock, at_least_s)

    assert work.calls == calls


def test_warm_up_returns_a_typical_call_and_not_the_slow_first_one():
    clock = FakeClock()

    assert warm_up(candidate(FakeWork(clock, [9.0, 2.0])), clock, 0.0) == (2.0, 2.0)


def test_steady_samples_stop_at_ten():
    bench = Bench(steady=[LONG_S])
    sampling = bench.sampling("steady")

    assert bench.run() == [("steady", None)]
    assert len(sampling.samples_s) == MIN_SAMPLES
    assert sampling.samples_s == pytest.approx([LONG_S] * MIN_SAMPLES)


@pytest.mark.parametrize(("spread", "precise"), [(0.009, True), (0.011, False)])
def test_interval_of_the_median_must_be_within_one_percent(spread, precise):
    bench = Bench(one=[1.0])
    sampling = bench.sampling("one")

    sampling.samples_s = [*[1 - spread] * 3, *[1.0] * 4, *[1 + spread] * 3]

    assert sampling.settled() == precise


def test_nine_samples_are_never_enough_however_steady():
    sampling = Bench(one=[1.0]).sampling("one")

    sampling.samples_s = [1.0] * (MIN_SAMPLES - 1)

    assert not sampling.settled()


def test_noisy_samples_stop_when_the_budget_is_spent_and_all_are_kept():
    bench = Bench(noisy=NOISY_S)
    sampling = bench.sampling("noisy", call_s=2.0, budget_s=20.0)

    bench.run()

    assert sampling.spent_s >= 20.0
    assert sampling.spent_s - sampling.samples_s[-1] < 20.0
    assert sampling.samples_s == pytest.approx(NOISY_S[: len(sampling.samples_s)])


def disturbed_by(*shares, lasted_s):
    """Return what tells that web servers used these shares of a core, from one take of a round to the next."""
    told = iter(shares)

    def undisturbed(_):
        return nullcontext(lambda: next(told) * lasted_s)

    return undisturbed


@pytest.mark.parametrize(
    ("shares", "kept", "calls"),
    [((0.0,), 1.0, 1), ((DISTURBED_SHARE / 2,), 1.0, 1), ((0.5, 0.0), 2.0, 2), ((0.5, 0.6), 1.0, 2)],
)
def test_a_round_that_pages_disturbed_is_taken_once_more_and_the_less_disturbed_take_counts(shares, kept, calls):
    bench = Bench(one=[1.0, 2.0])
    sampling = bench.sampling("one")

    bench.take_round(sampling, exclude_servers=disturbed_by(*shares, lasted_s=1.0))

    assert sampling.samples_s == pytest.approx([kept])
    assert bench.works["one"].calls == calls


def test_a_case_has_waited_as_long_as_that_of_its_threads_which_waited_longest_in_rounds_that_count():
    bench = Bench(steady=[1.0])
    sampling = bench.sampling("steady")
    waits = iter([{1: 0.0, 2: 5.0}, {1: 0.25, 2: 5.5, 3: 9.0}, {1: 0.25, 2: 5.5}, {1: 0.5, 2: 5.5}])

    bench.take_round(sampling, thread_waits=lambda: next(waits))
    assert sampling.waited_share == pytest.approx(0.5)
    bench.take_round(sampling, thread_waits=lambda: next(waits))
    assert sampling.waited_share == pytest.approx((0.5 + 0.25) / 2)


def test_where_nobody_counts_waits_the_share_is_unknown():
    bench = Bench(steady=[1.0])
    sampling = bench.sampling("steady")

    bench.take_round(sampling, thread_waits=dict)

    assert sampling.waited_share is None


def test_a_checked_call_is_a_round_of_its_own():
    bench = Bench(slow=[LONG_S])
    sampling = bench.sampling("slow")
    sampling.checked_call = lambda: (0.5, 2**20)

    bench.take_round(sampling)

    assert (sampling.samples_s, sampling.rounds, bench.works["slow"].calls) == ([0.5], 1, 0)
    assert sampling.grown_bytes == 2**20


@pytest.mark.parametrize(("device", "speeds"), [(CPU, [0.5]), (GPU, [])])
def test_cores_are_observed_after_a_round_of_each_and_not_for_a_gpu(device, speeds):
    bench = Bench(one=[LONG_S])
    sampling = bench.sampling("one")
    sampling.candidate = replace(sampling.candidate, device=device)
    seen = []
    isolation = replace(bench.isolation, core_speed=lambda threads, wait: seen.append(sampling.rounds) or 0.5)

    failed = take_rounds(bench.samplings, Random(1), clock=bench.clock, isolation=isolation, progress=ProgressHooks())

    assert list(failed) == []
    assert sampling.core_speeds == speeds
    assert seen == [1] * len(speeds)


def test_every_round_waits_for_idle_threads_first():
    bench = Bench(one=[LONG_S], other=[LONG_S])
    bench.sampling("one")
    bench.sampling("other")

    bench.run()

    assert bench.waits == 2 * MIN_SAMPLES


def test_flush_is_called_before_every_timed_call_and_is_not_in_the_samples():
    bench = Bench(one=[LONG_S])
    flush = FakeWork(bench.clock, [0.5])
    sampling = bench.sampling("one", flush=flush)

    bench.run()

    assert flush.calls == len(sampling.samples_s) == MIN_SAMPLES
    assert sampling.samples_s == pytest.approx([LONG_S] * MIN_SAMPLES)


def order_of_first_rounds(seed):
    bench = Bench(**{name: [LONG_S] for name in "abcdef"})
    order = []
    for name, work in bench.works.items():
        bench.sampling(name, timer=Told(work.clock, order, name))
    bench.run(seed=seed)
    return order


class Told(HostTimer):
    """The host's timer, which says whose turn it is."""

    def __init__(self, clock, order, name):
        super().__init__(clock)
        self.order, self.name = order, name

    def sample(self, run, *, calls, flush):
        self.order.append(self.name)
        return super().sample(run, calls=calls, flush=flush)


def test_everybody_has_one_turn_in_each_round_in_an_order_that_changes():
    order = order_of_first_rounds(seed=3)
    rounds = [order[start : start + 6] for start in range(0, len(order), 6)]

    assert [sorted(round_) for round_ in rounds] == [list("abcdef")] * MIN_SAMPLES
    assert len({tuple(round_) for round_ in rounds}) > 5


def test_order_is_the_same_for_the_same_seed():
    assert order_of_first_rounds(seed=3) == order_of_first_rounds(seed=3)
    assert order_of_first_rounds(seed=3) != order_of_first_rounds(seed=4)


@pytest.mark.parametrize(("budget_s", "rounds"), [(60.0, 15), (12.0, 12)])
def test_those_that_have_settled_take_turns_until_all_have_or_their_budget_is_spent(budget_s, rounds):
    bench = Bench(steady=[LONG_S], noisy=NOISY_S)
    steady, noisy = bench.sampling("steady", budget_s=budget_s), bench.sampling("noisy", call_s=1.0, budget_s=30.0)

    assert [name for name, _ in bench.run()] == ["steady", "noisy"]
    assert (len(steady.samples_s), len(noisy.samples_s)) == (rounds, 15)
    assert steady.is_precise()


def test_exception_ends_only_its_own_case():
    bench = Bench(broken=[LONG_S], fine=[LONG_S])
    bench.works["broken"].raises_at = 4
    bench.sampling("broken")
    fine = bench.sampling("fine")

    settled = dict(bench.run())

    assert isinstance(settled["broken"], ValueError)
    assert settled["fine"] is None
    assert len(fine.samples_s) == MIN_SAMPLES


def test_cancel_stops_after_the_round_in_progress_and_settles_nobody():
    bench = Bench(one=[LONG_S], other=[LONG_S])
    one, other = bench.sampling("one"), bench.sampling("other")
    answers = iter([False, False, True])

    assert bench.run(cancelled=lambda: next(answers)) == []
    assert len(one.samples_s) == len(other.samples_s) == 2


def test_cancel_before_the_first_round_measures_nothing():
    bench = Bench(one=[LONG_S])
    bench.sampling("one")

    bench.run(cancelled=lambda: True)

    assert bench.works["one"].calls == 0


def test_nothing_to_sample_is_no_error():
    assert Bench().run() == []
    plan_rounds([])


def test_host_batches_fit_the_implementation_and_short_rounds_are_equal():
    bench = Bench(fast=[3e-6], slow=[1e-3])
    fast, slow = bench.sampling("fast", call_s=3e-6), bench.sampling("slow", call_s=1e-3)

    plan_rounds([fast, slow])

    assert (fast.calls, slow.calls) == (ceil(MIN_BATCH_S / 3e-6), 1)
    assert fast.calls > 1
    assert fast.per_round == slow.per_round == ROUND_SAMPLES > 1


def test_a_fast_call_has_as_many_samples_a_round_beside_slow_ones_as_by_itself():
    bench = Bench(fast=[1e-6], slow=[LONG_CALL_S], slowest=[1.0])
    calls_s = {"fast": 1e-6, "slow": LONG_CALL_S, "slowest": 1.0}
    samplings = [bench.sampling(name, call_s=call_s) for name, call_s in calls_s.items()]

    plan_rounds(samplings)

    assert [sampling.samples_per_round for sampling in samplings] == [ROUND_SAMPLES, 2, 1]


def test_a_measurement_has_the_samples_of_a_round_and_the_calls_of_a_sample():
    bench = Bench(host=[1e-4], device=[1e-4])
    host = bench.sampling("host", call_s=1e-4)
    device = bench.sampling("device", timer=FakeEventTimer(bench.clock), call_s=1e-4)
    plan_rounds([host, device])
    bench.run()

    ours, theirs = host.measurement(), device.measurement()

    assert (ours.batch, ours.per_round) == (3, ROUND_SAMPLES)
    assert (theirs.batch, theirs.per_round) == (1, 10)
    assert len(ours.samples_s) == ROUND_SAMPLES * host.rounds
    assert len(theirs.samples_s) == 10 * device.rounds


def test_event_rounds_last_as_long_for_fast_calls_as_for_slow_ones():
    bench = Bench(fast=[1e-5], slow=[1e-4])
    timers = {name: FakeEventTimer(bench.clock) for name in bench.works}
    fast = bench.sampling("fast", timer=timers["fast"], call_s=1e-5)
    slow = bench.sampling("slow", timer=timers["slow"], call_s=1e-4)

    plan_rounds([fast, slow])
    bench.run()

    assert (fast.calls, slow.calls) == (100, 10)
    assert fast.per_round == slow.per_round == 1
    assert set(timers["fast"].rounds) == {100}
    assert set(timers["slow"].rounds) == {10}
