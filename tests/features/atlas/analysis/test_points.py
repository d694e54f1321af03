"""Points: every measurement there is, with rates and shares that follow from its time and its device's row."""

from urllib.parse import urlsplit

import pytest

from gpuexplore.analysis.prediction.calls import CALLS
from gpuexplore.analysis.utilization.peak_sources import PUBLISHED
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Shape
from gpuexplore.features.atlas.analysis import (
    MOST_GPUS,
    USUAL_GPUS,
    citations,
    measured_gpus,
    measured_operations,
    points,
    usual_calls,
)
from gpuexplore.features.atlas.ui.picked import _usual_gpus, dtypes_of, usual_dtype, usual_shape
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded import recorded_results, recorded_run
from gpuexplore.recorded.published import published_measurements, sources
from gpuexplore.shapes import parse_shape

MOST_OF_A_PEAK = 1.2  # clocks above the rated one explain so much


@pytest.fixture(scope="module")
def every():
    return points()


def point_of(operation, spec_key, shape, dtype):
    return next(point for point in points(operation, [spec_key], [dtype]) if point.shape == shape)


def test_every_measurement_of_a_gpu_is_a_point(every):
    recorded = [result for _, result in recorded_results() if result.environment and result.measurement]
    on_gpus = [result for result in recorded if result.environment.device.spec_key]

    assert sum(point.origin == "published" for point in every) == len(published_measurements()) + len(PUBLISHED)
    assert sum(point.origin == "recorded" for point in every) == len(on_gpus) > 0


def test_every_point_has_a_row_a_time_a_kind_of_calls_and_whoever_measured_it(every):
    keys = {row.key for row in ACCELERATORS}

    assert {point.spec_key for point in every} <= keys
    assert min(point.time_s for point in every) > 0
    assert {point.calls for point in every} == set(CALLS)
    assert all(point.citation.text and point.citation.how and point.conditions for point in every)


def test_a_point_of_others_has_its_file_and_a_recorded_one_its_run(every):
    for point in every:
        assert (point.run_id is None) == (point.origin == "published")
        assert urlsplit(point.url or "https://").scheme == "https"
        assert point.origin == "published" or point.implementation
    assert {point.citation.name for point in every if not point.url} == {"gpuexplore"}
    found = next(point for point in every if point.run_id)
    assert found.time_s in [result.measurement.median_s for result in recorded_run(found.run_id).results]


def test_rates_and_mfu_of_a_product_follow_from_its_time():
    point = next(point for point in points("matmul", ["rtx-3090"], ["fp16"]) if point.calls == "single")
    m, k, n = point.shape

    assert point.flop_count == point.work == 2 * m * k * n
    assert point.byte_count == 2 * (m * k + k * n + m * n)
    assert point.rate == point.flop_per_s == pytest.approx(2 * m * k * n / point.time_s)
    assert point.bytes_per_s == pytest.approx(point.byte_count / point.time_s)
    assert point.mfu == pytest.approx(point.flop_per_s / point.device.peak("fp16", "matrix").flop_per_s)


def test_arithmetic_decides_large_products_and_memory_thin_ones():
    square = point_of("matmul", "h200-sxm-141gb", Shape.of(m=4096, k=4096, n=4096), "fp32")
    thin = next(point for point in points("linear", ["h100-sxm5-80gb"], ["bf16"]) if point.shape["b"] == 1)

    assert (square.bound, square.share) == ("compute", square.mfu)
    assert (thin.bound, thin.share) == ("memory", thin.bandwidth_utilization)


def test_an_operation_without_products_is_compared_with_memory():
    point = next(point for point in points("triad", ["v100-sxm2-16gb"]))

    assert (point.bound, point.mfu, point.work) == ("memory", None, point.byte_count)
    assert point.share == pytest.approx(point.bytes_per_s / 900e9)


def test_no_share_of_memory_is_told_of_what_a_cache_may_have_held(every):
    held = [point for point in every if point.byte_count <= (point.device.cache_bytes or 0)]

    assert {point.bandwidth_utilization for point in held if not point.cold} == {None}
    assert all(point.bandwidth_utilization for point in held if point.cold)


def test_no_rate_is_beyond_what_hardware_can_do(every):
    """A 3 x 3 convolution has algorithms with fewer multiplications than are counted."""
    told = [point for point in every if point.share and point.operation != "conv2d"]

    assert len(told) > 2000
    assert [point for point in told if point.share > MOST_OF_A_PEAK] == []


def test_filters_leave_what_is_asked_for():
    found = points("linear", ["t4", "p100-pcie-16gb"], ["fp16", "fp32"])

    assert {point.operation for point in found} == {"linear"}
    assert {point.spec_key for point in found} == {"t4", "p100-pcie-16gb"}
    assert {point.spec_key for point in points("reduce_sum")} == {"h100-sxm5-80gb"}
    assert points("reduce_sum", ["t4"]) == ()


@pytest.mark.parametrize("asked", [{"operation": "matmull"}, {"spec_keys": ["t5"]}, {"dtypes": ["fp7"]}])
def test_what_does_not_exist_is_named(asked):
    (named,) = asked.values()
    with pytest.raises(InvalidInput, match=named if isinstance(named, str) else named[0]):
        points(**asked)


def test_citations_name_every_collection_once(every):
    found = citations(every)

    assert len(found) == len(set(found))
    assert {source.title for source in sources()} < {citation.name for citation in found}
    assert {citation.licence for citation in found if citation.url} >= {"MIT", "Apache-2.0", "CC-BY-SA-4.0"}
    assert {point.operation for point in every} <= set(OPERATIONS)


ROWS = {row.key: row for row in ACCELERATORS}


def test_operations_and_gpus_are_ordered_by_what_was_measured_and_none_is_missing():
    operations = measured_operations()
    gpus = measured_gpus("linear")

    assert set(operations) == set(OPERATIONS)
    assert sum(operations.values()) == len(points())
    assert set(gpus) == set(ROWS)
    assert next(iter(operations)) == "linear"  # what links without an operation mean
    for counts in (list(operations.values())[1:], list(gpus.values())):
        assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_a_dtype_gpus_and_a_shape_to_begin_with(operation):
    dtype = usual_dtype(operation)
    gpus = _usual_gpus(operation, (dtype,))
    shape = usual_shape(operation, points(operation, gpus, [dtype]))

    assert dtype in dtypes_of(operation)
    assert 1 <= len(gpus) <= MOST_GPUS
    assert parse_shape(str(shape), OPERATIONS[operation]) == shape


def test_the_first_gpus_are_of_different_architectures_and_all_were_measured_at_the_first_shape():
    gpus = _usual_gpus("linear", ("bf16",))
    found = points("linear", gpus, ["bf16"])
    shape = usual_shape("linear", found)

    assert len({ROWS[gpu].architecture for gpu in gpus}) == len(gpus)
    assert {point.spec_key for point in found if point.shape == shape} == set(gpus)
    assert _usual_gpus("matvec", ("fp32",)) == USUAL_GPUS  # which was not measured


def test_calls_are_predicted_as_most_of_the_points_were_timed():
    assert usual_calls(points("attention")) == "graph"
    assert usual_calls(points("conv2d")) == "single"
    assert usual_calls(()) == "queued"
