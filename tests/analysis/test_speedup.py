from dataclasses import replace
from math import exp, hypot, log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.analysis.run.analyze import is_tie
from gpuexplore.analysis.speedup import TIE_WITHIN, default_baseline, is_separable, speedup, speedups
from gpuexplore.core.model import Measurement
from tests.analysis.made import case, failed, ok
from tests.hardware.processors import ZEN_4, ZEN_5, measured_on

SAMPLES = st.lists(st.floats(1e-6, 1.0), min_size=6, max_size=40).map(lambda values: Measurement(tuple(values), 1.0))


def measured(*samples_s):
    return Measurement(tuple(samples_s), 1.0)


def paired_speedup(this, other):
    """Return the speedup of a measurement over another one of its rounds."""
    return speedup(replace(ok(), measurement=this), replace(ok(implementation="numpy"), measurement=other))


def ratio(this, other):
    """Return the speedup of a measurement over another one of other rounds."""
    return speedup(replace(ok(), measurement=this), replace(ok(dtype="bf16"), measurement=other))


def test_rounds_are_paired_so_drift_cancels_also_with_more_samples_a_round():
    drifting = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    found = paired_speedup(measured(*drifting), measured(*(3 * seconds for seconds in drifting)))
    assert found.ratio == pytest.approx(3)
    assert found.ci95 == pytest.approx((3, 3))

    slow = measured(*[10.0 * turn for turn in range(1, 7)])
    fast = replace(measured(*[float(turn) for turn in range(1, 7) for _ in range(24)]), per_round=24)
    found = paired_speedup(fast, slow)
    assert (found.ratio, found.ci95, found.by_round) == (10, (10, 10), None)
    assert paired_speedup(slow, fast).ci95 == pytest.approx((0.1, 0.1))

    longer = measured(*[4.0] * 6, *[5.0] * 5)
    found = paired_speedup(measured(*[1.0] * 6), longer)
    assert (found.ratio, found.ci95, found.by_round) == (4, (4, 4), None)


def test_speedup_is_the_ratio_of_medians_and_tells_where_the_rounds_disagree():
    this = measured(*[1.0] * 6, *[2.0] * 5)
    other = measured(*[3.0] * 5, *[2.0] * 6)
    found = paired_speedup(this, other)
    assert found.ratio == 2
    assert found.by_round is None

    apart = paired_speedup(measured(*[1.0] * 8, *[2.0] * 3), measured(*[3.0] * 8, *[9.0] * 13))
    assert (apart.ratio, apart.by_round) == (9, 3)
    assert apart.ci95 == (3, 9)


def test_interval_covers_processes_only_where_both_know_how_these_differ():
    narrow, wide = measured(*[1.0] * 6), measured(*[1.04] * 6)
    known = [replace(measurement, between_processes=0.5, between_ratios=0.05) for measurement in (narrow, wide)]

    within, between = paired_speedup(narrow, wide), paired_speedup(*known)

    assert (within.covers_processes, within.verdict.relation) == (False, "above")
    assert (between.covers_processes, between.verdict.relation) == (True, None)
    assert between.ci95 == pytest.approx((1.04 * exp(-0.05 * sqrt(2)), 1.04 * exp(0.05 * sqrt(2))))
    assert not paired_speedup(known[0], wide).covers_processes
    assert paired_speedup(known[0], known[0]).ci95 == (1, 1)  # whatever processes do


def test_pooled_measurements_are_paired_process_by_process():
    this = Measurement((1.0,) * 4 + (2.0,) * 4 + (1.5,) * 4, 1.0, processes=(4, 4, 4))
    found = paired_speedup(this, replace(this, samples_s=tuple(3 * value for value in this.samples_s)))
    assert found.ratio == pytest.approx(3)
    assert found.ci95 == pytest.approx((3, 3))
    assert found.covers_processes


def test_fewer_than_six_pairs_have_a_careful_interval():
    found = paired_speedup(measured(1, 1, 1, 1, 1), measured(2, 2, 2, 2, 2, 2))
    assert found.ci95 == pytest.approx((2 / 1.1, 2 * 1.1))
    assert found.verdict.relation == "above"


def test_unpaired_interval_takes_both_as_independent():
    this, other = measured(1, 1, 1, 2, 2, 2), measured(4, 4, 4, 8, 8, 8)
    found = ratio(this, other)
    assert found.ratio == 4
    assert found.ci95 == pytest.approx((4 * exp(-hypot(log(1.5), log(4 / 3))), 4 * exp(hypot(log(1.5), log(4 / 3)))))
    assert not found.paired


@given(SAMPLES, SAMPLES)
def test_the_ratio_lies_in_its_interval(this, other):
    for found in (paired_speedup(this, other), ratio(this, other)):
        low, high = found.ci95
        assert low * (1 - 1e-12) <= found.ratio <= high * (1 + 1e-12)


@given(SAMPLES)
def test_nothing_is_faster_than_itself(measurement):
    assert paired_speedup(measurement, measurement).ratio == 1


def test_an_implementation_or_a_dtype_is_the_baseline_of_its_like():
    results = [ok(4e-3, implementation="numpy"), ok(1e-3), ok(1e-3, dtype="bf16"), ok(1e-3, size=64)]
    found = speedups(results, "numpy")
    assert found[case()].ratio == pytest.approx(4)
    assert found[case()].paired
    assert found[case(implementation="numpy")].ratio == 1
    assert set(found) == {case(), case(implementation="numpy")}

    found = speedups([ok(4e-3), ok(1e-3, dtype="bf16"), ok(1e-3, implementation="numpy", dtype="bf16")], "fp32")
    assert found[case(dtype="bf16")].ratio == pytest.approx(4)
    assert not found[case(dtype="bf16")].paired
    assert case(implementation="numpy", dtype="bf16") not in found

    found = speedups([ok(4e-3, implementation="numpy"), ok(1e-3, on="cuda:0")], "numpy")[case(on="cuda:0")]
    assert found.baseline == "numpy on cpu"
    assert not found.paired


def test_without_a_measured_baseline_there_is_no_speedup():
    assert speedups([failed(implementation="numpy"), ok()], "numpy") == {}

    with pytest.raises(ValueError, match="two measured results"):
        speedup(ok(), failed())


def test_the_default_baseline_is_first_in_the_operation_not_in_the_run():
    assert default_baseline("matmul", ["torch", "numpy"]) == "numpy"
    assert default_baseline("matmul", ["torch"]) == "torch"
    assert default_baseline("matmul", []) is None


def sampled(*samples_s, **about):
    """Return a result with these samples."""
    return replace(ok(**about), measurement=measured(*samples_s))


def test_a_tie_is_of_medians_near_each_other_whose_intervals_overlap():
    assert is_tie(ok(1e-3, spread=0.2, dtype="bf16"), ok(1.05e-3, spread=0.2))
    assert not is_tie(ok(1e-3, dtype="bf16"), ok(2e-3))

    assert not is_tie(ok(1e-3, count=3), ok(0.3, count=3, implementation="numpy"))
    assert is_tie(ok(1e-3, count=3), ok(1.001e-3, count=3, implementation="numpy"))

    fast, slow = ok(1e-3, spread=1e-3, dtype="bf16"), ok(1.05e-3, spread=1e-3)
    assert is_separable(slow, fast)
    assert not is_tie(slow, fast)


def test_medians_far_apart_are_no_tie_though_their_samples_overlap():
    fast, slow = ok(49.8e-3, spread=0.6, dtype="bf16"), ok(83.2e-3, spread=0.6)
    assert fast.measurement.ci95_s[1] > slow.measurement.ci95_s[0]
    assert not is_separable(slow, fast)
    assert not is_tie(slow, fast)

    fast, slow = sampled(1e-3, 1e-3, 0.1), sampled(73e-3, 74e-3, 2e-3, implementation="numpy")
    assert not is_separable(slow, fast)
    assert not is_tie(slow, fast)
    assert not is_tie(fast, slow)

    fast, slow = sampled(1, 1, 1, 1, 9, 9, 9), sampled(1, 1, 1, 9, 9, 9, 9, implementation="numpy")
    assert speedup(slow, fast).ratio == pytest.approx(1 / 9)
    assert speedup(slow, fast).verdict.relation is None
    assert (fast.measurement.median_s, slow.measurement.median_s) == (1, 9)
    assert not is_tie(slow, fast)


@pytest.mark.parametrize(("factor", "tie"), [(0.99 * TIE_WITHIN, True), (1.01 * TIE_WITHIN, False)])
def test_a_tie_ends_at_its_factor_in_both_directions(factor, tie):
    fast, slow = ok(1e-3, spread=0.5, dtype="bf16"), ok(factor * 1e-3, spread=0.5)
    assert not is_separable(slow, fast)
    assert (is_tie(slow, fast), is_tie(fast, slow)) == (tie, tie)


def test_a_baseline_of_another_processor_of_the_same_name_is_not_paired_and_is_named():
    numpy, torch = ok(4e-3, implementation="numpy"), ok(1e-3)
    alike = speedups([measured_on(ZEN_4, numpy), measured_on(ZEN_4, torch)], "numpy")[case()]
    taken_over = speedups([measured_on(ZEN_5, numpy), measured_on(ZEN_4, torch)], "numpy")[case()]

    assert (alike.baseline, alike.paired) == ("numpy", True)
    assert (taken_over.baseline, taken_over.paired) == ("numpy on AMD EPYC (Zen 5)", False)

    recorded = measured_on(ZEN_5, ok(4e-3, implementation="numpy"))
    found = speedups([measured_on(ZEN_4, ok())], "numpy", [recorded])[case()]

    assert found.baseline == "numpy on AMD EPYC (Zen 5)"
