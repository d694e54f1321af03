"""The notebook's MFU on a T4, from what it promised and from the datasheet: SOURCES of the figures are its own."""

import pytest

from gpuexplore.analysis.what_if.summary import entered_results, named_numbers, summarize
from gpuexplore.analysis.what_if.what_if import Known, what_if
from gpuexplore.analysis.what_if.workload import of_operation
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Origin, Shape
from gpuexplore.hardware import ACCELERATORS, accelerator_named, as_device
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import parse_shape
from tests.analysis.made import calibration

LINEAR = OPERATIONS["linear"]
WORKLOAD = of_operation(LINEAR, parse_shape("notebook-linear", LINEAR))
T4 = next(as_device(accelerator) for accelerator in ACCELERATORS if accelerator.key == "t4")
TIMES = {"fp32": 1.7327, "bf16": 3.874}
PROMISED = {"fp32": 8e12, "bf16": 16e12}


@pytest.fixture(scope="module")
def rows():
    known = Known(calibration(), times_s=TIMES)
    return {row.dtype: row for row in what_if(WORKLOAD, [T4], dtypes=list(FORMATS), baseline="fp32", known=known)}


def test_notebooks_layer_has_its_flops():
    assert WORKLOAD.flop_count == pytest.approx(8.796e12, rel=1e-4)


def test_fp32_is_compared_with_what_was_promised_and_with_the_datasheet(rows):
    fp32, _ = entered_results(WORKLOAD, list(rows.values()), PROMISED)

    assert fp32.flop_per_s == pytest.approx(5.077e12, rel=1e-3)
    assert fp32.of_promised == pytest.approx(0.635, abs=5e-4)
    assert fp32.of_peak == pytest.approx(5.077 / 8.1, abs=5e-4)
    assert fp32.row.peak.kind == "datasheet"
    assert (fp32.published, fp32.known_as) == (None, None)


@pytest.mark.parametrize(("tflops", "is_known"), [(271.2, True), (250, False)])
def test_a_time_that_was_published_is_known_as_that_and_not_compared_with_itself(tflops, is_known):
    a100, matmul = as_device(accelerator_named("A100 SXM4 80GB")), OPERATIONS["matmul"]
    work = of_operation(matmul, Shape.of(m=1024, k=5120, n=10240))
    times = {"bf16": work.flop_count / (tflops * 1e12)}
    rows = what_if(work, [a100], dtypes=["bf16"], baseline="bf16", known=Known(calibration(), times_s=times))
    (bf16,) = entered_results(work, rows, {})

    assert "stas00/ml-engineering" in (bf16.known_as if is_known else bf16.published).source
    assert (bf16.published is None) == is_known


def test_bf16_is_emulated_slower_and_compared_with_the_units_that_did_the_work(rows):
    _, bf16 = entered_results(WORKLOAD, list(rows.values()), PROMISED)

    assert bf16.of_promised == pytest.approx(0.142, abs=5e-4)
    assert (bf16.row.support, bf16.row.peak.dtype) == ("emulated", "fp32")
    assert bf16.of_peak == pytest.approx(2.271 / 8.1, abs=5e-4)
    assert bf16.row.speedup.value == pytest.approx(1.7327 / 3.874)
    headline = summarize(list(rows.values()), baseline="fp32").headline
    assert headline.endswith(". Tesla T4 has no bf16 matrix units: bf16 is computed at the fp32 rate.")


def test_fp16_is_predicted_from_its_peak(rows):
    fp16 = rows["fp16"]

    assert (fp16.origin, fp16.support, fp16.peak.flop_per_s) == (Origin.PREDICTED, "native", 65e12)
    assert fp16.time.low < fp16.time.value < fp16.time.high < TIMES["fp32"]


def test_a_promised_peak_without_a_time_is_compared_with_the_prediction_which_is_not_judged(rows):
    (found,) = [
        claim for claim in entered_results(WORKLOAD, list(rows.values()), {"fp16": 130e12}) if claim.row.dtype == "fp16"
    ]

    assert found.of_promised == pytest.approx(found.of_peak / 2)
    assert found.row.impossible is None


def test_numbers_by_name_are_read():
    assert named_numbers("times", " fp32:1.5, bf16:2e-3 ", FORMATS, "") == ({"fp32": 1.5, "bf16": 2e-3}, [])
    assert named_numbers("price", "cuda:0:2", ["cuda:0"], "") == ({"cuda:0": 2.0}, [])


@pytest.mark.parametrize(
    "word", ["fp4:1", "1.5", "fp32:x", "fp32:0", "fp32:-1", "fp32:inf", "fp32:nan", "fp32", "fp32:1e300", "fp32:\u0661"]
)
def test_a_number_that_cannot_be_used_is_named_and_the_others_count(word):
    found, problems = named_numbers("times", f"{word},fp16:1", FORMATS, "fp32:1.5")

    assert found == {"fp16": 1.0}
    assert len(problems) == 1
    assert f"times {word!r}" in problems[0]
    assert "fp32:1.5" in problems[0]


def test_two_numbers_for_one_name_are_named_and_the_first_counts():
    found, problems = named_numbers("times", "fp32:1.5,fp32:3,fp16:1,fp16:1", FORMATS, "fp32:1.5")

    assert found == {"fp32": 1.5, "fp16": 1.0}
    assert problems == ["times 'fp32:3': expected only one number for fp32; 1.5 is used"]


def test_a_pasted_text_does_not_bury_the_page_in_messages():
    _, problems = named_numbers("times", ",".join(f"x{number}:1" for number in range(500)), FORMATS, "fp32:1.5")

    assert len(problems) == 6
    assert problems[-1] == "times: 495 more are invalid"


def entered(key, operation, shape, **times_s):
    workload = of_operation(OPERATIONS[operation], parse_shape(shape, OPERATIONS[operation]))
    device = next(as_device(accelerator) for accelerator in ACCELERATORS if accelerator.key == key)
    known = Known(calibration(), times_s=times_s)
    return entered_results(
        workload, what_if(workload, [device], dtypes=list(times_s), baseline="fp32", known=known), {}
    )


def test_a_time_that_memory_or_arithmetic_forbids_is_impossible_on_that_device_alone():
    (b5,) = entered("gtx-1650", "matvec", "m=100000,n=100", fp32=10.4e-6)
    (slow,) = entered("gtx-1650", "matvec", "m=100000,n=100", fp32=400e-6)

    assert b5.row.impossible == "its memory gives at most 128 GB/s"
    assert slow.row.impossible is None

    (on_t4,) = entered("t4", "matmul", "m=2000,k=2000,n=2000", fp32=0.577e-3)
    (on_h100,) = entered("h100-sxm5-80gb", "matmul", "m=2000,k=2000,n=2000", fp32=0.577e-3)

    assert on_t4.row.impossible == "it computes at most 8.10 TFLOP/s"
    assert on_h100.row.impossible is None


def test_nothing_is_compared_with_a_time_that_is_impossible():
    workload = of_operation(OPERATIONS["matvec"], parse_shape("m=100000,n=100", OPERATIONS["matvec"]))
    device = next(as_device(accelerator) for accelerator in ACCELERATORS if accelerator.key == "gtx-1650")
    known = Known(calibration(), times_s={"fp32": 10.4e-6}, prices_per_hour={device.id: 1.0})
    found = what_if(workload, [device], dtypes=["fp32", "fp16"], baseline="fp32", known=known)
    fp32, fp16 = found

    assert (fp32.time.value, fp32.credible_time, fp32.energy_j, fp32.cost) == (10.4e-6, None, None, None)
    assert (fp32.speedup, fp16.speedup) == (None, None)
    assert fp16.credible_time == fp16.time
    summary = summarize(found, baseline="fp32")
    assert summary.headline.endswith("the time entered for fp32 is impossible, so nothing is compared with it.")
    assert summary.details[0] == (
        "**fp32** in 10.4 µs is impossible: its memory gives at most 128 GB/s. It is excluded from the comparison."
    )
    other = what_if(workload, [device], dtypes=["fp64", "fp32", "fp16"], baseline="fp64", known=known)
    assert "fp16 is predicted to be" in summarize(other, baseline="fp64").headline
