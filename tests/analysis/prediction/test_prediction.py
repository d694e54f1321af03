"""Predictions: what the notebooks' rows say, what is learned from one's own runs, and how sure each is."""

from dataclasses import replace
from itertools import product

import pytest

from gpuexplore.analysis.prediction import CALLS, Conditions, calibrate, predict, predict_each
from gpuexplore.analysis.prediction.calibration import calibrate as calibrated_on
from gpuexplore.analysis.prediction.calibration import from_published, from_results
from gpuexplore.analysis.prediction.gpu import fitted
from gpuexplore.analysis.prediction.priors import PRIORS, components_of, covariance
from gpuexplore.analysis.utilization import device_of
from gpuexplore.analysis.utilization.peak_sources import PUBLISHED
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Case, Flag, Options, Shape
from gpuexplore.hardware import ACCELERATORS, accelerator_named, as_device
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.recorded import recorded_results
from tests.analysis.made import calibration, case, device, ok
from tests.hardware.processors import OLD_ZEN_4, ZEN_4, ZEN_5, ceilings, measured_on
from tests.unchanged import heavy

NOTEBOOK = Shape.of(b=16384, d=32768, k=8192)
HERE = calibration()


def on(key, dtype, shape=NOTEBOOK, operation="linear", calibration=HERE):
    row = accelerator_named(key)
    assert row
    name = operation_named(operation).vendor_library.name
    return predict(Case(operation, shape, dtype, name, row.key), as_device(row), calibration)


def test_the_notebooks_t4_is_slower_in_bf16_and_would_have_been_fast_in_fp16():
    fp32, bf16, fp16 = (on("Tesla T4", dtype) for dtype in ("fp32", "bf16", "fp16"))
    assert operation_named("linear").flop_count(NOTEBOOK) == pytest.approx(8.796e12, rel=1e-4)
    assert fp32.time_s / 1.5 < 1.7327 < fp32.high_s
    assert bf16.time_s >= fp32.time_s
    assert bf16.low_s < 3.874 < bf16.high_s
    assert (bf16.support, fp16.support) == ("emulated", "native")
    assert fp16.peak.flop_per_s == 65e12
    assert fp16.high_s < min(fp32.low_s, bf16.low_s)


@pytest.mark.parametrize("key", ["t4", "v100-sxm2-16gb", "titan-rtx", "rtx-2080-ti"])
@pytest.mark.parametrize("size", [1024, 8192])
def test_products_in_an_emulated_format_are_no_faster_than_in_the_format_that_computes_them(key, size):
    shape = Shape.of(m=size, k=size, n=size)
    fp32, bf16 = (on(key, dtype, shape, "matmul") for dtype in ("fp32", "bf16"))

    assert bf16.support == "emulated"
    assert bf16.time_s >= fp32.time_s
    assert (bf16.low_s, bf16.high_s) >= (fp32.low_s, fp32.high_s)


def test_16_bits_on_vector_units_are_uncertain_where_nobody_measured_them():
    p100, t4 = on("p100-sxm2-16gb", "fp16"), on("Tesla T4", "fp16")
    assert p100.high_s / p100.low_s > 5 * t4.high_s / t4.low_s
    assert on("gtx-1650", "fp16").time_s > on("gtx-1650", "fp32").time_s


def test_a_prediction_says_what_it_is_calibrated_on():
    product = on("H100 SXM5 80GB", "bf16")
    assert "published measurements, the nearest on H100 SXM5 80GB" in product.basis
    assert product.nearest[0].device == "H100 SXM5 80GB"
    assert all(one.url.startswith("https://") and 0 < one.relevance <= 1 for one in product.nearest)
    assert [one.relevance for one in product.nearest] == sorted(
        (one.relevance for one in product.nearest), reverse=True
    )
    emulated = on("Tesla T4", "bf16")
    assert "noted in the table" in emulated.basis
    far = on("Radeon RX 7900 XTX", "fp16", Shape.of(b=1, h=1, s=100, d=256), "attention")
    assert far.basis == "no similar measurement: fitted to published measurements of other calls"


def test_what_would_make_a_prediction_better_is_a_command_until_it_was_measured_there():
    h200 = next(result for _, result in recorded_results() if result.environment.device.name == "NVIDIA H200")
    asked, device_there = replace(h200.case, device="h200-sxm-141gb"), as_device(accelerator_named("h200-sxm-141gb"))

    unseen = next(row for row in ACCELERATORS if row.key not in fitted().known["device"] and row.vendor == "NVIDIA")
    better = on(unseen.key, "fp32").better
    assert better.startswith("run `gpuexplore run linear")
    assert f" on {as_device(unseen).title}, which has no measurements yet" in better
    assert "on Tesla T4: your own results count most" in on("Tesla T4", "fp16").better
    assert predict(asked, device_there, HERE).better is None


def test_the_best_shape_of_a_search_is_faster_than_others_of_its_size():
    row = accelerator_named("H100 SXM5 80GB")
    asked = next(published for published in PUBLISHED if published.spec_key == row.key).case
    searched, other = (predict(asked, as_device(row), HERE, Conditions(searched=is_best)) for is_best in (True, False))
    assert 0.8 * other.time_s < searched.time_s < other.time_s


def test_calls_of_every_kind_take_longer_the_more_of_a_launch_is_in_them():
    asked, t4 = Case("matmul", Shape.of(m=64, k=64, n=64), "fp32", "torch", "t4"), as_device(accelerator_named("t4"))
    graph, queued, single, cold = (predict(asked, t4, HERE, Conditions(calls)).time_s for calls in CALLS)
    assert 1e-6 < graph < queued < single < 5e-5
    assert graph < cold < single


def test_many_cases_are_predicted_as_each_alone():
    asked = [
        (case(operation="matmul", shape=Shape.of(m=n, k=n, n=n), dtype=dtype, on=key), as_device(row))
        for n in (1, 100, 4096)
        for dtype in ("fp32", "fp16")
        for key in ("t4", "h100-sxm5-80gb")
        if (row := accelerator_named(key))
    ]
    each = [predict(*one, HERE) for one in asked]
    assert [one.time_s for one in predict_each(asked, HERE)] == pytest.approx([one.time_s for one in each])
    bare = predict_each(asked, HERE, explained=False)
    assert [one.interval_s for one in bare] == [one.interval_s for one in predict_each(asked, HERE)]
    assert not any(one.nearest or one.better for one in bare)
    assert any(one.nearest for one in each)
    assert len({one.time_s for one in each}) >= len(asked) - 2  # a product of 1 takes as long in fp16 as in fp32


def test_a_launch_bound_case_takes_no_less_than_its_work():
    found = on("H100 SXM5 80GB", "bf16", Shape.of(m=512, k=512, n=512), "matmul")
    assert found.bound == "overhead"
    assert found.low_s >= 2 * 512**3 / 989.4e12


@pytest.mark.parametrize("key", ["gtx-1650", "Tesla T4", "H100 SXM5 80GB"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_matrix_vector_product_takes_as_long_as_reading_its_matrix(key, dtype):
    found = on(key, dtype, Shape.of(m=100_000, n=100), "matvec")
    row = accelerator_named(key)
    assert row
    reading_s = 100_000 * 100 * FORMATS[dtype].bits / 8 / row.bandwidth_bytes_per_s
    assert found.bound == "memory"
    assert reading_s < found.time_s < 1.6 * reading_s


def test_ones_own_runs_make_a_prediction_near_them_certain():
    cpu = device(bandwidth=1e11)
    own = [ok(2 * size**3 / 5e11, size=size, spec={"cache_bytes": 1000}) for size in (512, 1024, 2048)]
    blind, taught = predict(case(size=1500), cpu, calibrate()), predict(case(size=1500), cpu, calibrate(own))
    assert taught.time_s == pytest.approx(2 * 1500**3 / 5e11, rel=0.1)
    assert taught.high_s / taught.low_s < blind.high_s / blind.low_s
    assert "3 results of this machine" in taught.basis
    assert taught.mfu == pytest.approx(0.5, rel=0.1)


def test_a_processor_learns_as_its_own_what_it_measured_and_not_what_another_of_its_name_did():
    measured = ok(12e-3, size=1024)

    def spread(target, place):
        found = predict(case(size=1024), target, calibrated_on(from_results([measured_on(place, measured)])))
        return found.high_s / found.low_s

    assert spread(ZEN_4, OLD_ZEN_4) == pytest.approx(spread(ZEN_4, ZEN_4))
    assert spread(ZEN_5, ZEN_4) > 1.2 * spread(ZEN_4, ZEN_4)
    assert spread(ZEN_5, OLD_ZEN_4) > 1.2 * spread(ZEN_4, OLD_ZEN_4)


def test_a_prediction_takes_nothing_from_another_processor_of_the_same_name():
    own, other = from_results([ok(9e-3, size=1024)]), from_results([measured_on(ZEN_4, ok(12e-3, size=1024))])
    asked = case(size=1024)

    assert predict(asked, ZEN_5, calibrated_on((*own, *other))) == predict(asked, ZEN_5, calibrated_on(own))
    assert predict(asked, ZEN_4, calibrated_on((*own, *other))) != predict(asked, ZEN_4, calibrated_on(own))


def test_the_recordings_that_ship_teach_another_processor_of_their_name_nothing():
    recorded = next(result.environment.device for _, result in recorded_results() if result.environment)
    rate = 2.2 * recorded.peak("fp64", "matrix").flop_per_s
    namesake = replace(recorded, identity=ZEN_5.identity, peaks=ceilings(2 * rate))
    others = [result for _, result in recorded_results() if device_of(result).name != recorded.name]
    of_others = calibrated_on((*from_published(), *from_results(others, "recorded")))

    for operation in ("matmul", "vector_add", "softmax"):
        asked = case(operation=operation, shape=operation_named(operation).shape_of_size(1024))
        assert predict(asked, namesake, HERE) == predict(asked, namesake, of_others)
        assert recorded.title not in predict(asked, namesake, HERE).basis
        assert "recorded" in predict(asked, recorded, HERE).basis


def test_a_prediction_says_which_processor_of_a_name_it_is_calibrated_on():
    found = predict(case(size=1024), ZEN_5, calibrated_on(from_results([measured_on(ZEN_5, ok(12e-3, size=1024))])))

    assert found.basis == "1 result of this machine, on AMD EPYC (Zen 5)"


def test_a_disturbed_run_counts_less():
    cpu, quiet = device(), ok(2 * 1024**3 / 5e11, size=1024)
    disturbed = replace(quiet, flags=(Flag("contended", "a test"),))
    sure, unsure = (predict(case(size=1024), cpu, calibrate([result])) for result in (quiet, disturbed))
    assert unsure.high_s / unsure.low_s > sure.high_s / sure.low_s


def test_what_is_unknown_is_none_with_its_reason():
    found = predict(case(), device(bandwidth=None), HERE)
    assert (found.time_s, found.low_s, found.high_s, found.flop_per_s, found.mfu) == (None,) * 5
    assert "memory bandwidth" in found.reason


@pytest.mark.parametrize("regime", PRIORS, ids="/".join)
def test_every_kind_of_case_is_uncertain_by_its_own_prior_first(regime):
    features = dict.fromkeys(("regime", "bound", "device", "vendor", "architecture", "rate_class"), "x")
    features |= {
        "dtype": "x",
        "implementation": "x",
        "family": "x",
        "unit": "x",
        "deviation": regime.deviation,
    }
    features |= {"log2_flops": 1.0, "log2_bytes": 1.0, "log2_watts_per_peak": None}
    assert covariance(components_of(regime), [features], [features])[0, 0] > regime.deviation**2


def is_an_answer(found):
    """Return whether a prediction has a time inside its interval, on a basis, or else a reason."""
    if found.time_s is None:
        return bool(found.reason)
    inside = 0 < found.low_s <= found.time_s <= found.high_s
    return inside and found.basis != "nothing" and (found.reason is None) == (found.support == "native")


@heavy("gpuexplore.operations.*")
@pytest.mark.long
def test_every_device_of_the_table_has_an_answer_for_every_operation_and_format():
    asked = []
    for target, operation, dtype in product(map(as_device, ACCELERATORS), OPERATIONS.values(), FORMATS):
        shape = operation.shape_of_size(operation.default_sizes[-1])
        asked.append((Case(operation.name, shape, dtype, operation.vendor_library.name, target.id), target))
    answers = predict_each(asked, HERE)

    assert [found for found in answers if not is_an_answer(found)] == []
    assert {found.time_s is None for found in answers} == {False, True}


def test_the_last_of_a_case_counts_on_each_device_and_nothing_that_draws_less_power():
    old, new = (ok(seconds, size=1024) for seconds in (5e-3, 4e-3))
    larger = replace(new, environment=replace(new.environment, device=replace(new.environment.device, cores=64)))
    zeros = replace(new, case=replace(new.case, options=Options(data="zeros")))
    impossible = ok(1e-6, size=1024)

    assert len(from_results([old, new])) == 1
    assert from_results([old, new]) == from_results([new])
    assert len(from_results([new, larger])) == 2
    assert from_results([zeros, impossible]) == ()


def measured_on_a_t4(seconds, **given):
    result = ok(seconds, on="t4", **given)
    t4 = replace(as_device(accelerator_named("t4")), kind="cuda")
    return replace(result, environment=replace(result.environment, device=t4))


def test_what_a_gpu_measured_moves_its_own_predictions_at_once_and_those_of_no_other():
    t4, asked = as_device(accelerator_named("t4")), case(shape=Shape.of(m=3000, k=3000, n=3000), on="t4")
    other = replace(asked, device="l4"), as_device(accelerator_named("l4"))
    before = predict(asked, t4, HERE)
    taught = calibrate([measured_on_a_t4(1.4 * before.time_s, shape=asked.shape)])

    after = predict(asked, t4, taught)
    near = predict(replace(asked, shape=Shape.of(m=2500, k=2500, n=2500)), t4, taught)
    assert after.time_s == pytest.approx(1.4 * before.time_s, rel=0.1)
    assert after.high_s / after.low_s < before.high_s / before.low_s
    assert near.time_s > 1.1 * predict(near.case, t4, HERE).time_s
    assert "1 result of this machine, on Tesla T4; " in after.basis
    assert after.better is None
    assert predict(*other, taught) == predict(*other, HERE)


@pytest.mark.parametrize("kernel", ["triton", "numba-cuda", "torch:mine"])
def test_slow_kernels_of_ours_and_of_users_make_no_library_slower(kernel):
    t4, asked = as_device(accelerator_named("t4")), case(shape=Shape.of(m=3000, k=3000, n=3000), on="t4")
    before = predict(asked, t4, HERE)
    taught = calibrate([measured_on_a_t4(10 * before.time_s, shape=asked.shape, implementation=kernel)])

    after = predict(asked, t4, taught)
    assert (after.time_s, after.low_s, after.high_s) == pytest.approx(
        (before.time_s, before.low_s, before.high_s), rel=0.02
    )
    of_kernel = replace(asked, implementation=kernel)
    assert predict(of_kernel, t4, taught).time_s > 1.5 * predict(of_kernel, t4, HERE).time_s


def test_a_device_with_a_fast_product_is_expected_to_be_fast_at_two():
    t4, asked = as_device(accelerator_named("t4")), case(shape=Shape.of(m=3000, k=3000, n=3000), on="t4")
    taught = calibrate([measured_on_a_t4(0.7 * predict(asked, t4, HERE).time_s, shape=asked.shape)])
    both = Case("batched_matmul", Shape.of(outer=1, inner=2, m=3000, k=3000, n=3000, right=2), "fp32", "torch", "t4")
    rows = Case("softmax", Shape.of(m=3000, n=3000), "fp32", "torch", "t4")
    by_batch, by_rows = (predict(each, t4, taught).time_s / predict(each, t4, HERE).time_s for each in (both, rows))
    assert 0.7 < by_batch < 0.95 < by_rows <= 1.0


def test_a_triton_kernel_is_predicted_as_it_was_measured_there():
    found = [
        result for _, result in recorded_results() if result.case.implementation == "triton" and result.measurement
    ]
    assert len(found) > 10
    for result in found:
        predicted = predict(result.case, result.environment.device, HERE)
        assert predicted.time_s == pytest.approx(result.measurement.median_s, rel=0.2), result.case
