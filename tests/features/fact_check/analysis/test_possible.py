"""A stated time against the roofs and the prediction of its device: an H100 computes 989 TFLOP/s in bf16 at most."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Peak
from gpuexplore.features.fact_check.analysis.possible import is_possible
from gpuexplore.hardware import target_named
from tests.features.calibrated import one_calibration

H100 = "NVIDIA H100 80GB HBM3"
PRODUCT = PredictionRequest("matmul", H100, sizes="4096", dtypes="bf16")  # 137 GFLOP: 139 µs at the peak
ADDITION = PredictionRequest("vector_add", H100, sizes="100000000", dtypes="fp32")  # 1.2 GB: 358 µs at 3.35 TB/s


@pytest.mark.parametrize(
    ("question", "time", "verdict", "reason"),
    [
        (PRODUCT, "90us", "above the roof", "it computes at most 989 TFLOP/s (bf16, dense, matrix units"),
        (PRODUCT, 190e-6, "as good as known", "nine in ten queued calls are predicted to take"),
        (PRODUCT, "10 ms", "possible", "nine in ten queued calls are predicted to take"),
        (ADDITION, "100us", "above the roof", "its memory gives at most 3.35 TB/s (memory, https"),
        (ADDITION, "0.4ms", "as good as known", "nine in ten queued calls are predicted to take"),
    ],
)
def test_a_time_is_judged_by_the_roofs_and_by_what_is_known(question, time, verdict, reason):
    found = is_possible(question, time, ())

    assert (found.verdict, bool(found)) == (verdict, verdict != "above the roof")
    assert reason in found.reason


def test_what_is_faster_than_known_and_below_the_roof_is_possible():
    found = is_possible(PredictionRequest("matmul", "Tesla T4", sizes="4096", dtypes="fp16"), "2.2ms", ())

    assert 137e9 / 65e12 < found.time_s < found.prediction.low_s

    assert found.verdict == "possible"
    assert found.reason.startswith("faster than is known, and below every limit")


@pytest.mark.parametrize(
    ("name", "rate", "explained"),
    [("matmul", "120TFLOP/s", True), ("matmul", "220TFLOP/s", False), ("vector_add", "120TFLOP/s", False)],
)
def test_a_rate_above_the_fp32_units_that_tf32_tensor_cores_reach_is_explained_by_them(name, rate, explained):
    asked = PredictionRequest(
        name, "a100", sizes="4096" if name == "matmul" else "1e8", dtypes="fp32"
    )  # 19.5 TFLOP/s in fp32, 156 TFLOP/s in tf32

    found = is_possible(asked, None, (), rate=rate)

    assert found.verdict == "above the roof"
    assert ("in tf32 (156 TFLOP/s, " in found.reason) is explained


@pytest.mark.parametrize(
    ("operation", "gpu", "dtype", "rate", "verdict", "said"),
    [
        ("copy", H100, "fp32", "3.9TB/s", "above the roof", "its memory gives at most 3.35 TB/s"),
        ("copy", H100, "fp32", "3.4TB/s", "possible", "1.3 % above the printed limit, as much as rounding explains"),
        ("matmul", "a100-sxm4-80gb", "bf16", "370TFLOP/s", "above the roof", "it computes at most 312 TFLOP/s"),
        ("matmul", "h100-pcie-80gb", "bf16", "830TFLOP/s", "above the roof", "8.3 % more at its highest clock"),
        ("matmul", H100, "bf16", "1.18PFLOP/s", "above the roof", "8.2 % more at its highest clock"),
        ("matmul", H100, "bf16", "1.04PFLOP/s", "as good as known", "above the clock it is quoted at"),
        ("matmul", "rtx-3090", "bf16", "85TFLOP/s", "as good as known", "above the boost clock it is"),
        ("matmul", "rtx-3090", "bf16", "90TFLOP/s", "above the roof", "it computes at most 71.0 TFLOP/s"),
    ],
)
def test_what_is_above_a_limit_is_never_said_to_be_below_it(operation, gpu, dtype, rate, verdict, said):
    size = "4000000000" if operation == "copy" else "8192"
    found = is_possible(PredictionRequest(operation, gpu, sizes=size, dtypes=dtype), None, (), rate=rate)

    assert found.verdict == verdict
    assert said in found.reason
    assert "below every limit" not in found.reason


@pytest.mark.parametrize(
    ("operation", "gpu", "dtype"),
    [
        *((operation, gpu, "fp16") for operation in ("layer_norm", "softmax") for gpu in ("gtx-1080-ti", "p40")),
        ("layer_norm", "b300-sxm-288gb", "fp64"),
        ("matmul", "a100-pcie-40gb", "tf32"),
        ("matmul", "p100-sxm2-16gb", "fp16"),
        ("matvec", "p100-sxm2-16gb", "fp16"),
        ("conv2d", "v100-sxm2-16gb", "fp32"),
    ],
)
def test_no_time_of_a_prediction_is_above_the_roof(operation, gpu, dtype):
    size = "128" if operation == "conv2d" else "16384"
    question = PredictionRequest(operation, gpu, sizes=size, dtypes=dtype)
    predicted = is_possible(question, "1s", ()).prediction

    assert predicted.mfu <= 1 or operation == "conv2d"
    for time_s in (predicted.low_s, predicted.time_s, predicted.high_s):
        assert is_possible(question, time_s, ()).verdict == "as good as known"


def test_rates_are_those_of_the_stated_time():
    product, addition = is_possible(PRODUCT, 1e-3, ()), is_possible(ADDITION, 1e-3, ())

    assert product.flop_per_s == 2 * 4096**3 / 1e-3
    assert product.bytes_per_s == pytest.approx(3 * 2 * 4096**2 / 1e-3)
    assert addition.bytes_per_s == pytest.approx(1.2e12)


@pytest.mark.parametrize(
    ("operation", "gpu", "size", "dtype", "time", "said"),
    [
        ("matmul", "cuda:0", "64", "fp32", "1us", "no limit"),
        ("matmul", "Tesla T4", "4096", "fp8", "1ms", "Tesla T4 has none for it"),
    ],
)
def test_without_a_limit_or_units_the_verdict_is_unknown(operation, gpu, size, dtype, time, said):
    bare = Device("cuda:0", "cuda", "a GPU of no table")
    found = is_possible(PredictionRequest(operation, gpu, sizes=size, dtypes=dtype), time, [bare])

    assert (found.verdict, bool(found)) == ("unknown", True)
    assert said in found.reason


@pytest.mark.parametrize(
    ("gpu", "megabytes", "verdict"),
    [
        ("mi300x", 180, "possible"),  # its Infinity Cache holds 256 MiB
        ("mi300x", 6000, "above the roof"),
        ("Apple M1", 180, "as good as known"),  # its cache is unknown, but no larger
        ("Apple M1", 6000, "above the roof"),
        ("rtx-3060-8gb", 180, "possible"),  # not known either: no Ampere has more than 40 MiB
        ("rtx-3060-8gb", 1200, "above the roof"),
    ],
)
def test_caches_behind_the_l2_and_unknown_ones_count_as_large_as_they_can_be(gpu, megabytes, verdict):
    rate = 1.25 * target_named(gpu, ()).bandwidth.bytes_per_s
    asked = PredictionRequest("vector_add", gpu, sizes=str(megabytes * 10**6 // 12), dtypes="fp32")

    assert is_possible(asked, None, (), rate=f"{rate / 1e9:.1f}GB/s").verdict == verdict


def test_no_call_is_shorter_than_a_launch_and_one_time_is_of_one_case():
    found = is_possible(PredictionRequest("vector_add", H100, sizes="64", dtypes="fp32"), "100ns", ())

    assert found.verdict == "above the roof"
    assert found.reason.endswith("5 times the stated time; possible only as one of several calls in a single launch")

    advice = "give one shape, one dtype, one gpu and one kind of calls"
    with pytest.raises(InvalidInput, match=f"2 cases for one time: {advice}"):
        is_possible(PredictionRequest("matmul", H100, sizes="64,128", dtypes="bf16"), "1ms", ())


def test_a_ceiling_that_was_measured_is_not_the_most_there_is():
    peak = Peak("fp32", "matrix", 1e12, "measured_ceiling", "a loop")
    here = Device("cpu", "cpu", "a CPU", peaks=(peak,), cache_bytes=10**9)
    rated = replace(here, peaks=(replace(peak, kind="datasheet"),))
    question = PredictionRequest("matmul", "cpu", sizes="1000", dtypes="fp32")  # 2 ms at the ceiling

    assert is_possible(question, "1.63ms", [here])
    assert not is_possible(question, "1.63ms", [rated])
    assert not is_possible(question, "0.5ms", [here])


@pytest.mark.parametrize(
    "time", ["", "90", "us", "-1us", "0s", "nan s", "1e99s", "0.5ns", 0.0, 10**400, float("inf"), float("nan")]
)
def test_what_is_no_time_is_named(time):
    with pytest.raises(InvalidInput, match="expected 1ns to 1000000s, with the unit: 90us"):
        is_possible(PRODUCT, time, ())
