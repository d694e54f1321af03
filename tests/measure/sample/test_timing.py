"""Warm-up, rounds and the stopping rule, with a clock that only the work moves."""

from contextlib import nullcontext
from dataclasses import replace
from math import ceil
from random import Random

import pytest

from gpuexplore.backends.timer import MIN_BATCH_S, HostTimer
from gpuexplore.measure.check.guard import limit_s
from gpuexplore.measure.conditions.core_speeds import Look
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.sample import timing
from gpuexplore.measure.sample.timing import (
    AGAIN_S,
    DISTURBED_SHARE,
    MIN_SAMPLES,
    MIN_SPAN_S,
    PATIENCE_S,
    PAUSE_S,
    ROUND_SAMPLES,
    WARM_UP_CALLS,
    Sampling,
    plan_rounds,
    sample_in_rounds,
    warm_up,
)
from gpuexplore.model import LARGEST_BUDGET_S
from gpuexplore.statistics import SMALLEST_SAMPLE_WITH_INTERVAL
from tests.measure.fakes import GPU, FakeClock, FakeEventTimer, FakeWork, candidate

NOISY_S = [1.0, 2.0, 3.0, 1.5, 2.5] * 10
LONG_S = 1.0  # so long that nothing has to be woken before it
SHORT_S = 1.4e-3  # ten samples of it end before the spread, whose multiple it is not


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
    def time(self):
        return Timekeeper(self.clock, self.wait)

    def run(self, *, cancelled=never, seed=1):
        def settle(case, error):
            self.settled.append((case.implementation, error))

        sample_in_rounds(self.samplings, time=self.time, random=Random(seed), cancelled=cancelled, settle=settle)
        return self.settled


@pytest.mark.parametrize(
    ("call_s", "at_least_s", "calls"),
    [(1.0, 0.0, WARM_UP_CALLS), (1.0, 2.5, WARM_UP_CALLS), (1e-3, 25e-3, 25), (1e-3, 0.2, 200), (5e-3, 25e-3, 5)],
)
def test_warm_up_lasts_until_both_the_time_and_three_calls_have_passed(call_s, at_least_s, calls):
    clock = FakeClock()
    work = FakeWork(clock, [call_s])

    warm_up(candidate(work), clock, at_least_s)

    assert work.calls == calls


def test_warm_up_returns_a_typical_call_and_not_the_slow_first_one():
    clock = FakeClock()

    assert warm_up(candidate(FakeWork(clock, [9.0, 2.0, 1.0])), clock, 0.0) == (2.0, 1.0)


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
    sampling.span_s = MIN_SPAN_S

    sampling.samples_s = [1 - spread, 1 - spread, *[1.0] * 6, 1 + spread, 1 + spread]

    assert sampling.settled() == precise


def test_nine_samples_are_never_enough_however_steady():
    sampling = Bench(one=[1.0]).sampling("one")
    sampling.span_s = MIN_SPAN_S

    sampling.samples_s = [1.0] * (MIN_SAMPLES - 1)

    assert not sampling.settled()


@pytest.mark.parametrize(("span_s", "settled"), [(0.0, False), (0.99 * MIN_SPAN_S, False), (MIN_SPAN_S, True)])
def test_steady_samples_do_not_settle_before_the_spread(span_s, settled):
    sampling = Bench(one=[1.0]).sampling("one")
    sampling.samples_s = [1.0] * MIN_SAMPLES

    sampling.span_s = span_s

    assert sampling.settled() == settled


def test_steady_short_calls_go_on_until_the_spread():
    bench = Bench(short=[SHORT_S])
    sampling = bench.sampling("short")

    bench.run()

    assert len(sampling.samples_s) == ceil(MIN_SPAN_S / SHORT_S) > MIN_SAMPLES
    assert sampling.span_s - SHORT_S < MIN_SPAN_S <= sampling.span_s


def test_turns_of_others_and_waits_for_idle_threads_count_for_the_spread_and_not_for_the_budget():
    bench = Bench(one=[SHORT_S], other=[SHORT_S])
    one = bench.sampling("one")
    bench.sampling("other")
    wait_s = 1e-3
    bench.wait = lambda: bench.clock.spend(wait_s)

    bench.run()

    assert one.spent_s == pytest.approx(len(one.samples_s) * SHORT_S)
    turns_between = len(one.samples_s) - 2  # of the other, at least
    assert one.span_s > one.spent_s + turns_between * (SHORT_S + wait_s)


def test_budget_ends_before_the_spread():
    bench = Bench(short=[SHORT_S])
    budget_s = 0.5 * MIN_SPAN_S
    sampling = bench.sampling("short", budget_s=budget_s)

    bench.run()

    assert len(sampling.samples_s) == ceil(budget_s / SHORT_S) > SMALLEST_SAMPLE_WITH_INTERVAL
    assert sampling.span_s < MIN_SPAN_S


def test_noisy_samples_stop_when_the_budget_is_spent_and_all_are_kept():
    bench = Bench(noisy=NOISY_S)
    sampling = bench.sampling("noisy", call_s=2.0, budget_s=20.0)

    bench.run()

    assert sampling.spent_s >= 20.0
    assert sampling.spent_s - sampling.samples_s[-1] < 20.0
    assert sampling.samples_s == pytest.approx(NOISY_S[: len(sampling.samples_s)])


def test_calls_longer_than_the_budget_still_get_an_interval():
    bench = Bench(slow=[1.0, 1.5])
    sampling = bench.sampling("slow", call_s=1.0, budget_s=0.2)

    bench.run()

    assert len(sampling.samples_s) == 6


def test_calls_longer_than_the_limit_stop_without_one():
    bench = Bench(slow=[5.0])
    sampling = bench.sampling("slow", call_s=5.0, budget_s=0.2)

    bench.run()

    limit = limit_s(sampling.candidate.case)
    assert len(sampling.samples_s) == ceil(limit / 5.0) < SMALLEST_SAMPLE_WITH_INTERVAL
    assert sampling.spent_s >= limit


def test_short_calls_are_woken_before_each_round_and_long_ones_are_not():
    bench = Bench(short=[9e-5, 1e-5], long=[LONG_S])
    short, long = bench.sampling("short", call_s=1e-5), bench.sampling("long")

    short.take_round(bench.time)
    long.take_round(bench.time)

    assert bench.works["short"].calls > len(short.samples_s) == 1
    assert (bench.works["long"].calls, len(long.samples_s)) == (1, 1)


def test_round_tells_whose_turn_it_is_and_about_how_long_it_takes():
    bench, turns = Bench(short=[1e-3], long=[LONG_S]), []
    short, long = bench.sampling("short", call_s=1e-3), bench.sampling("long")
    short.per_round = 5
    time = replace(bench.time, begin_turn=lambda case, expected_s: turns.append((case.implementation, expected_s)))

    short.take_round(time)
    long.take_round(time)

    assert turns == [("short", pytest.approx(6e-3)), ("long", 2 * LONG_S)]


def disturbed_by(*shares, lasted_s):
    """Return what tells that web servers used these shares of a core, from one take of a round to the next."""
    told = iter(shares)

    def undisturbed(_):
        return nullcontext(lambda: next(told) * lasted_s)

    return undisturbed


@pytest.mark.parametrize(
    ("shares", "kept"),
    [
        ((0.0,), 1e-3),
        ((DISTURBED_SHARE / 2,), 1e-3),
        ((0.5, 0.0), 2e-3),
        ((0.5, 0.1, 0.4, 0.3, 0.2, 0.6), 2e-3),
    ],
)
def test_a_round_that_pages_disturbed_is_taken_again_and_the_least_disturbed_take_counts(shares, kept):
    takes_s = [AGAIN_S / len(shares) + 1e-3 * number for number in range(1, len(shares) + 1)]
    bench = Bench(one=takes_s)
    sampling = bench.sampling("one")
    time = replace(bench.time, undisturbed=disturbed_by(*shares, lasted_s=AGAIN_S / len(shares)))

    sampling.take_round(time)

    assert sampling.samples_s == pytest.approx([AGAIN_S / len(shares) + kept])
    assert sampling.spent_s == pytest.approx(sampling.samples_s[0])
    assert bench.works["one"].calls == len(shares)


def test_waking_is_no_sample():
    bench = Bench(short=[9e-5, 1e-5])
    sampling = bench.sampling("short", call_s=1e-5)

    sampling.take_round(bench.time)

    assert sampling.samples_s == pytest.approx([1e-5])


@pytest.fixture
def patient(monkeypatch):
    """Count the pauses between looks, which take no time."""
    pauses = []
    monkeypatch.setattr(timing, "sleep", pauses.append)
    return pauses


def looked_at(bench, shares):
    """Return a sampling of one whose cores are seen at `shares`, then at the last of them."""
    left = list(shares)
    sampling = bench.sampling("one")
    time = replace(bench.time, look_at_cores=lambda threads, wait: Look(left.pop(0) if len(left) > 1 else left[0]))
    return sampling, time


def test_a_round_begins_when_no_core_is_slow(patient):
    sampling, time = looked_at(Bench(one=[LONG_S]), [0.5, 0.6, 1.0])
    sampling.take_round(time)

    assert patient == [PAUSE_S, PAUSE_S]
    assert sampling.looks == [Look(1.0)]
    assert sampling.patience_s == pytest.approx(PATIENCE_S - 2 * PAUSE_S)


def test_a_round_that_a_slow_core_spoiled_is_taken_again(patient):
    bench = Bench(one=[2.0 * SHORT_S, SHORT_S])
    sampling, time = looked_at(bench, [1.0, 0.5, 1.0])
    sampling.take_round(time)

    assert sampling.looks == [Look(1.0)]
    assert sampling.samples_s == [pytest.approx(SHORT_S)]
    assert patient == []


def test_patience_ends_and_then_rounds_count_as_they_are(patient):
    sampling, time = looked_at(Bench(one=[LONG_S]), [0.5])
    for _ in range(3):
        sampling.take_round(time)

    assert len(patient) == ceil(PATIENCE_S / PAUSE_S)
    assert sampling.looks == [Look(0.5)] * 3
    assert len(sampling.samples_s) == 3


def test_a_gpu_needs_no_look_at_the_cores(patient):
    bench = Bench(one=[LONG_S])
    sampling = bench.sampling("one")
    sampling.candidate = replace(sampling.candidate, device=GPU)
    sampling.take_round(replace(bench.time, look_at_cores=lambda threads, wait: pytest.fail("looked")))

    assert (sampling.looks, bench.waits) == ([], 1)


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


def test_those_that_have_settled_take_no_more_turns():
    bench = Bench(steady=[LONG_S], noisy=NOISY_S)
    steady, noisy = bench.sampling("steady"), bench.sampling("noisy", call_s=1.0, budget_s=30.0)

    assert [name for name, _ in bench.run()] == ["steady", "noisy"]
    assert len(steady.samples_s) == MIN_SAMPLES < len(noisy.samples_s)


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


def test_host_batches_fit_the_implementation_and_rounds_are_equal():
    bench = Bench(fast=[3e-6], slow=[1e-3])
    fast, slow = bench.sampling("fast", call_s=3e-6), bench.sampling("slow", call_s=1e-3)

    plan_rounds([fast, slow])

    assert (fast.calls, slow.calls) == (ceil(MIN_BATCH_S / 3e-6), 1)
    assert fast.calls > 1
    assert fast.per_round == slow.per_round == ROUND_SAMPLES > 1


def test_rounds_are_short_where_calls_are_long():
    bench = Bench(fast=[1e-6], slow=[1.0])
    fast, slow = bench.sampling("fast", call_s=1e-6), bench.sampling("slow")

    plan_rounds([fast, slow])

    assert fast.per_round == slow.per_round == 1


def test_event_rounds_are_equal_so_that_samples_can_be_paired():
    bench = Bench(fast=[1e-5], slow=[1e-4])
    timers = {name: FakeEventTimer(bench.clock) for name in bench.works}
    fast = bench.sampling("fast", timer=timers["fast"], call_s=1e-5)
    slow = bench.sampling("slow", timer=timers["slow"], call_s=1e-4)

    plan_rounds([fast, slow])
    bench.run()

    assert fast.calls == slow.calls == 10
    assert fast.per_round == slow.per_round == 1
    assert set(timers["fast"].rounds) == set(timers["slow"].rounds) == {10}
    assert {len(one.samples_s) % 10 for one in (fast, slow)} == {0}
    assert abs(len(fast.samples_s) - len(slow.samples_s)) <= 10


def rounds_of_two(seed):
    """Return whose turn it was, for two that are alike and settle when the spread is reached."""
    bench = Bench(one=[SHORT_S], other=[SHORT_S])
    order = []
    for name in bench.works:
        bench.sampling(name, timer=Told(bench.clock, order, name))
    bench.run(seed=seed)
    return order


def test_two_alike_end_at_most_one_round_apart_and_share_every_round_before():
    orders = [rounds_of_two(seed) for seed in range(20)]

    for order in orders:
        fewest = min(order.count("one"), order.count("other"))
        shared = [order[start : start + 2] for start in range(0, 2 * fewest, 2)]
        assert [sorted(one) for one in shared] == [["one", "other"]] * fewest
    assert {abs(one.count("one") - one.count("other")) for one in orders} == {0, 1}
