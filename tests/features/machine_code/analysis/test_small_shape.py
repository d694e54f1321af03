from math import prod

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.features.machine_code.analysis.block_steps import MOST_BLOCKS, small_shape
from gpuexplore.measure.check.interpreted import MOST_BYTES, check_size
from gpuexplore.operations import OPERATIONS

KERNELS = [
    pytest.param(operation, implementation.geometry, block, id=f"{operation.name}-{implementation.name}-{block}")
    for operation in OPERATIONS.values()
    for implementation in operation.implementations
    if implementation.geometry
    for block in implementation.geometry.blocks
]


@pytest.mark.parametrize(("operation", "geometry", "block"), KERNELS)
def test_every_kernel_has_a_small_shape_that_it_covers_and_the_interpreter_takes(operation, geometry, block):
    shape = small_shape(operation, geometry, block)
    launch = geometry.launch(operation.output(shape), block)
    check_size(operation, shape, "fp64" if "fp64" in operation.dtypes else "fp32")

    assert 1 <= launch.blocks <= MOST_BLOCKS
    assert launch.uncovered == 0
    assert prod(operation.output(shape)) * DTYPES["fp64"].storage.itemsize <= MOST_BYTES


def test_tiles_are_full_and_rows_long_enough_to_tell_a_stride():
    steps = {kernel.name: kernel.geometry for kernel in OPERATIONS["matmul"].implementations if kernel.geometry}
    matmul = OPERATIONS["matmul"]

    assert small_shape(matmul, steps["numba-cuda-naive"], (16, 16)) == Shape.of(m=32, k=32, n=32)
    assert small_shape(matmul, steps["numba-cuda-register"], (16, 16)) == Shape.of(m=128, k=32, n=128)
    assert small_shape(matmul, steps["numba-cuda-register"], (8, 8)) == Shape.of(m=64, k=32, n=64)
