from dataclasses import replace
from math import exp, hypot, log
from random import Random

import pytest

from gpuexplore.analysis.verdict import compare, rate_of, ratio_of, time_of
from gpuexplore.analysis.verdict.times import LEFT_IN_A_RATIO, UNSIZED, quotient
from gpuexplore.core.model import Flag
from tests.analysis.made import failed, ok


def deviation(estimate):
    return log(estimate.high / estimate.low) / 2


def measured(result, **about):
    return replace(result, measurement=replace(result.measurement, **about))


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (Flag("drifted", "x"), UNSIZED),
        (Flag("drifted", "x", 0.5), log(1.5)),
        (Flag("contended", "x", 0.5), log(1.5)),
        (Flag("contended", "x", 1.0), log(2)),
        (Flag("drifted", "x", 5.0), log(3)),
        (Flag("noisy", "x", 0.2), log(1.1)),
        (Flag("throttled", "x", 0.25), log(1.25)),
        (Flag("launch_bound", "x"), 0),
        (Flag("contention_unknown", "x"), 0),
    ],
)
def test_a_flag_widens_a_time_by_what_it_is_evidence_of(flag, expected):
    plain, flagged = time_of(ok(spread=0.0)), time_of(ok(spread=0.0, flags=[flag]))

    assert deviation(plain) == 0
    assert deviation(flagged) == pytest.approx(expected)
    assert flagged.value == plain.value


def test_what_samples_processes_and_flags_add_is_independent():
    result = measured(ok(spread=0.01, flags=[Flag("drifted", "x", 0.2)]), between_processes=0.1)
    found, alone = time_of(result), time_of(ok(spread=0.01))

    assert log(found.high / found.value) == pytest.approx(hypot(log(alone.high / alone.value), 0.1, log(1.2)))
    assert [doubt.name for doubt in found.doubts] == ["drifted", "processes", "samples"]


@pytest.mark.parametrize(("count", "most"), [(2, 0.2), (3, 0.2), (5, 0.2)])
def test_few_samples_have_a_careful_interval(count, most):
    assert 0.09 < deviation(time_of(ok(count=count))) <= most


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_an_interval_of_few_samples_holds_the_median_in_95_percent_however_wide(count):
    draw = Random(count)
    drawn = [tuple(exp(draw.gauss(0.0, 0.5)) for _ in range(count)) for _ in range(800)]
    found = [time_of(measured(ok(), samples_s=samples_s)) for samples_s in drawn]

    assert sum(estimate.low <= 1.0 <= estimate.high for estimate in found) > 0.93 * len(found)


def test_one_sample_has_no_interval_and_no_ratio_follows_from_it():
    single, several = ok(count=1, spread=0.0), ok(1e-1, implementation="numpy")

    assert (time_of(single).value, time_of(single).interval) == (1e-3, None)
    assert compare(time_of(single), 1.0).relation is None
    assert ratio_of(single, several) is ratio_of(several, single) is ratio_of(several, single, same_run=False) is None


def test_processes_carry_their_own_spread():
    medians = (1.0, 1.1, 0.9, 1.05, 0.95, 1.0)
    pooled = measured(ok(), samples_s=medians, processes=(1,) * 6, between_processes=0.5)

    assert time_of(pooled).interval == pytest.approx((0.918, 1.082), abs=1e-3)
    assert time_of(pooled).basis == "6 processes"


def test_ratios_of_a_group_are_by_round_and_what_hit_both_hardly_shows_in_them():
    fast, slow = ok(1e-3, spread=0.5), ok(2e-3, spread=0.5, implementation="numpy")

    assert ratio_of(slow, fast).interval == pytest.approx((2, 2))
    assert deviation(ratio_of(slow, fast, same_run=False)) > 0.5
    assert deviation(ratio_of(replace(slow, case=replace(slow.case, dtype="bf16")), fast)) > 0.5

    flags = [Flag("drifted", "x", 0.5)]
    fast, slow = ok(1e-3, flags=flags), ok(2e-3, flags=flags, implementation="numpy")

    assert deviation(ratio_of(slow, fast)) == pytest.approx(LEFT_IN_A_RATIO * log(1.5))
    assert deviation(ratio_of(slow, replace(fast, flags=()))) == pytest.approx(log(1.5))

    fast, slow = (measured(ok(implementation=name), between_ratios=0.03) for name in ("torch", "numpy"))

    assert deviation(ratio_of(slow, fast)) == pytest.approx(hypot(0.03, 0.03))

    flags = [Flag("contended", "x", 0.4), Flag("noisy", "x", 0.5)]
    fast, slow = ok(1e-3, spread=0.2, flags=flags), ok(5e-2, spread=0.2, flags=flags, dtype="bf16")

    assert compare(ratio_of(slow, fast), 10).relation == "above"


def test_waits_that_fill_most_of_the_rounds_are_not_shared_by_both():
    """As measured beside busy loops: 21 times by the medians, 3.5 by the fastest samples of both."""
    waited, less = (Flag("contended", "x", size) for size in (1.55, 0.71))
    slow, fast = ok(14.5e-3, flags=[waited], implementation="numpy"), ok(0.68e-3, flags=[less])

    assert deviation(ratio_of(slow, fast)) == pytest.approx(hypot(log(2.55), log(1.71)))


def test_a_rate_is_the_inverse_of_a_time_and_nothing_follows_from_what_was_not_measured():
    found = rate_of(ok(1e-3, spread=0.1), 1e9, "FLOP/s")

    assert (found.value, found.unit) == (pytest.approx(1e12), "FLOP/s")
    assert found.low < 1e12 < found.high

    assert time_of(failed()) is None
    assert rate_of(failed(), 1.0, "FLOP/s") is None
    assert ratio_of(failed(), ok()) is None
    assert quotient(None, time_of(ok())) is None
