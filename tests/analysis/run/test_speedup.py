import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.analysis.run.speedup import about_as_fast, default_baseline, paired_speedup, ratio, speedup, speedups
from gpuexplore.model import Measurement
from tests.analysis.made import case, failed, ok

SAMPLES = st.lists(st.floats(1e-6, 1.0), min_size=6, max_size=40).map(lambda values: Measurement(tuple(values), 1.0))


def measured(*samples_s):
    return Measurement(tuple(samples_s), 1.0)


def test_rounds_are_paired_so_drift_cancels():
    drifting = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    found = paired_speedup(measured(*drifting), measured(*(3 * one for one in drifting)), "numpy")
    assert found.ratio == pytest.approx(3)
    assert found.ci95 == pytest.approx((3, 3))


def test_only_rounds_that_both_have_count():
    assert paired_speedup(measured(1.0), measured(4.0, 100.0, 100.0), "numpy").ratio == 4


def test_fewer_than_six_pairs_have_no_interval():
    found = paired_speedup(measured(1, 1, 1, 1, 1), measured(2, 2, 2, 2, 2, 2), "numpy")
    assert found.ci95 is None
    assert not found.distinct


def test_unpaired_interval_is_the_widest_that_both_allow():
    this, other = measured(1, 1, 1, 2, 2, 2), measured(4, 4, 4, 8, 8, 8)
    found = ratio(this, other, "fp32")
    assert found.ratio == 4
    assert found.ci95 == (2, 8)
    assert not found.paired


@given(SAMPLES, SAMPLES)
def test_the_ratio_lies_in_its_interval(this, other):
    for found in (paired_speedup(this, other, "a"), ratio(this, other, "a")):
        low, high = found.ci95
        assert low * (1 - 1e-12) <= found.ratio <= high * (1 + 1e-12)


@given(SAMPLES)
def test_nothing_is_faster_than_itself(one):
    assert paired_speedup(one, one, "a").ratio == 1


def test_an_implementation_is_the_baseline_of_its_own_dtype_and_shape():
    results = [ok(4e-3, implementation="numpy"), ok(1e-3), ok(1e-3, dtype="bf16"), ok(1e-3, size=64)]
    found = speedups(results, "numpy")
    assert found[case()].ratio == pytest.approx(4)
    assert found[case()].paired
    assert found[case(implementation="numpy")].ratio == 1
    assert set(found) == {case(), case(implementation="numpy")}


def test_a_dtype_is_the_baseline_of_the_same_implementation():
    found = speedups([ok(4e-3), ok(1e-3, dtype="bf16"), ok(1e-3, implementation="numpy", dtype="bf16")], "fp32")
    assert found[case(dtype="bf16")].ratio == pytest.approx(4)
    assert not found[case(dtype="bf16")].paired
    assert case(implementation="numpy", dtype="bf16") not in found


def test_a_baseline_that_cannot_run_on_the_device_is_taken_from_another_and_named():
    found = speedups([ok(4e-3, implementation="numpy"), ok(1e-3, on="cuda:0")], "numpy")[case(on="cuda:0")]
    assert found.baseline == "numpy on cpu"
    assert not found.paired


def test_a_failed_baseline_gives_no_speedup():
    assert speedups([failed(implementation="numpy"), ok()], "numpy") == {}


def test_a_speedup_of_what_was_not_measured_is_an_error():
    with pytest.raises(ValueError, match="two measured results"):
        speedup(ok(), failed())


def test_the_default_baseline_is_first_in_the_operation_not_in_the_run():
    assert default_baseline([ok(), ok(implementation="numpy")]) == "numpy"
    assert default_baseline([ok()]) == "torch"
    assert default_baseline([]) is None


def test_overlapping_intervals_are_about_as_fast():
    assert about_as_fast(ok(1e-3, spread=0.2, dtype="bf16"), ok(1.05e-3, spread=0.2))
    assert not about_as_fast(ok(1e-3, dtype="bf16"), ok(2e-3))


def test_few_samples_are_told_apart_by_their_ranges():
    assert not about_as_fast(ok(1e-3, count=3), ok(0.3, count=3, implementation="numpy"))
    assert about_as_fast(ok(1e-3, count=3), ok(1.001e-3, count=3, implementation="numpy"))
