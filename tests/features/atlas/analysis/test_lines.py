"""Predicted lines: shapes in the proportions of one, from little work to much, each with its share of the peak."""

from itertools import pairwise

import pytest

from gpuexplore.analysis.prediction import calibrate, predict
from gpuexplore.core.model import Shape
from gpuexplore.features.atlas.analysis.answers import _growing_axes, _grown, case_of, line, shapes_between, work_of
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.operations import OPERATIONS

T4, H100 = (as_device(next(row for row in ACCELERATORS if row.key == key)) for key in ("t4", "h100-sxm5-80gb"))
SHAPE = Shape.of(b=256, d=1024, k=512)


@pytest.fixture(scope="module")
def calibration():
    return calibrate()


def test_an_attention_grows_in_its_sequence_alone():
    assert _growing_axes("attention") == {"s"}
    assert _growing_axes("linear") == {"b", "d", "k"}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_grows_in_some_axis_and_never_beyond_a_limit(operation):
    contract = OPERATIONS[operation]
    largest = _grown(operation, contract.shape_of_size(contract.default_sizes[0]), 2.0**30)

    assert _growing_axes(operation)
    assert all(largest[axis] <= contract.limits[axis] for axis in contract.axes)


def test_the_shapes_of_a_line_keep_the_proportions_and_reach_both_ends():
    shapes = shapes_between("linear", SHAPE, "bf16", (1e7, 1e13), count=9)
    works = [work_of("linear", "bf16")(shape) for shape in shapes]

    assert len(shapes) == 9
    assert works == sorted(works)
    assert works[0] == pytest.approx(1e7, rel=0.2)
    assert works[-1] == pytest.approx(1e13, rel=0.01)
    assert {round(shape["d"] / shape["b"]) for shape in shapes} == {4}


def test_a_line_ends_where_an_axis_reaches_its_limit():
    shapes = shapes_between("linear", SHAPE, "bf16", (1e7, 1e30), count=9)

    assert shapes[-1]["k"] <= OPERATIONS["linear"].limits["k"]
    assert shapes[-1]["d"] == OPERATIONS["linear"].limits["d"] or shapes[-1]["k"] == OPERATIONS["linear"].limits["k"]
    assert all(low != high for low, high in pairwise(shapes))


def test_work_is_flops_of_products_and_bytes_of_all_others():
    assert work_of("linear", "bf16")(SHAPE) == 2 * 256 * 1024 * 512
    assert work_of("copy", "fp32")(Shape.of(n=100)) == 800


def test_the_share_of_a_large_product_is_its_mfu_and_that_of_a_copy_its_bandwidth(calibration):
    large, n = Shape.of(m=8192, k=8192, n=8192), Shape.of(n=2**28)
    (product,) = line([predict(case_of("matmul", large, "fp16", T4), T4, calibration)])
    (copy,) = line([predict(case_of("copy", n, "fp32", T4), T4, calibration)])

    assert product.share(product.prediction.time_s) == pytest.approx(product.prediction.mfu)
    assert copy.share(2**31 / 320e9) == pytest.approx(1.0, rel=0.01)
    assert copy.rate(2.0) == 2**30


def test_data_in_a_cache_have_no_share_of_the_bandwidth_and_a_format_that_a_gpu_does_not_have_no_line(calibration):
    (small,) = line([predict(case_of("copy", Shape.of(n=1000), "fp32", H100), H100, calibration)])
    fp8 = line([predict(case_of("linear", SHAPE, "fp8", T4), T4, calibration)])

    assert small.share(1e-6) is None
    assert all(point.prediction.support != "unsupported" for point in fp8)
