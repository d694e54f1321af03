"""What is shown first: what most was measured of, on GPUs of several architectures, at a shape they have in common."""

import pytest

from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.defaults import (
    MOST_GPUS,
    USUAL_GPUS,
    dtypes_of,
    measured_gpus,
    measured_operations,
    usual_calls,
    usual_dtype,
    usual_gpus,
    usual_shape,
)
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import parse_shape

ROWS = {row.key: row for row in ACCELERATORS}


def test_operations_are_ordered_by_what_was_measured_and_none_is_missing():
    counts = list(measured_operations().values())

    assert set(measured_operations()) == set(OPERATIONS)
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == len(points())


def test_every_gpu_of_the_table_can_be_chosen_the_measured_ones_first():
    counts = measured_gpus("linear")

    assert set(counts) == set(ROWS)
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_a_dtype_gpus_and_a_shape_to_begin_with(operation):
    dtype = usual_dtype(operation)
    gpus = usual_gpus(operation, (dtype,))
    shape = usual_shape(operation, points(operation, gpus, [dtype]))

    assert dtype in dtypes_of(operation)
    assert 1 <= len(gpus) <= MOST_GPUS
    assert parse_shape(str(shape), OPERATIONS[operation]) == shape


def test_the_first_gpus_are_measured_and_of_different_architectures():
    gpus = usual_gpus("linear", ("bf16",))

    assert {point.spec_key for point in points("linear", gpus, ["bf16"])} == set(gpus)
    assert len({ROWS[gpu].architecture for gpu in gpus}) == len(gpus)


def test_an_operation_that_nobody_measured_begins_with_usual_gpus():
    assert usual_gpus("matvec", ("fp32",)) == USUAL_GPUS


def test_the_first_shape_is_one_that_all_first_gpus_were_measured_at():
    gpus = usual_gpus("linear", ("bf16",))
    found = points("linear", gpus, ["bf16"])
    shape = usual_shape("linear", found)

    assert {point.spec_key for point in found if point.shape == shape} == set(gpus)


def test_calls_are_predicted_as_most_of_the_points_were_timed():
    assert usual_calls(points("attention")) == "graph"
    assert usual_calls(points("conv2d")) == "single"
    assert usual_calls(()) == "queued"
