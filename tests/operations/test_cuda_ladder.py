"""CUDA kernels as launches: every grid covers its output, the ladder climbs."""

from math import prod

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Shape
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.operations import OPERATIONS

KERNELS = [
    pytest.param(operation, implementation, id=f"{operation.name}-{implementation.name}")
    for operation in OPERATIONS.values()
    for implementation in operation.implementations
    if implementation.geometry
]
EACH_KERNEL = pytest.mark.parametrize(("operation", "implementation"), KERNELS)
LADDER = ("naive", "coalesced", "shared", "register", "vector", "warptile", "tensorcore", "wgmma")
RANDOM_SHAPES = 200


def outputs(operation):
    """Yield output shapes of random, mostly odd shapes up to the limits of an operation, and of the smallest one."""
    generator = np.random.default_rng(7)
    yield operation.output(Shape(tuple((axis, 1) for axis in operation.axes)))
    found = 0
    while found < RANDOM_SHAPES:
        longest = [min(limit, 5000) for limit in operation.limits.values()]
        lengths = [int(2 ** generator.uniform(0, np.log2(length))) for length in longest]
        shape = Shape(tuple(zip(operation.axes, lengths, strict=True)))
        if operation.problem(shape) is None:
            found += 1
            yield operation.output(shape)


@EACH_KERNEL
def test_grid_covers_every_element_of_the_output(operation, implementation):
    for output in outputs(operation):
        for block in (None, *implementation.geometry.blocks):
            launch = implementation.geometry.launch(output, block)

            assert launch.uncovered == 0, (output, block)
            assert prod(launch.block) <= 1024
            assert min(launch.grid) >= 1
            assert max(launch.grid[1:]) <= max(65535, prod(output[:-2])), "of so many matrices the kernel says it"


@pytest.mark.parametrize("name", [f"numba-cuda-{name}" for name in LADDER])
def test_largest_product_is_within_the_limits_of_a_grid(name):
    geometry = OPERATIONS["matmul"].implementation_named(name).geometry
    for block in geometry.blocks:
        assert max(geometry.launch((65536, 65536), block).grid[1:]) <= 65535


def test_a_grid_that_is_too_small_would_be_seen():
    geometry = Geometry(((16, 16),), tile=lambda block: (block[1], block[0]))

    assert geometry.launch((33, 17)).grid == (2, 3, 1)
    assert geometry.launch((33, 17), grid=(2, 2)).uncovered == 17
    assert geometry.launch((33, 17), grid=(1, 3)).uncovered == 33


@EACH_KERNEL
def test_unknown_block_is_answered_with_the_known_ones(operation, implementation):
    listed = ",".join(map(str, implementation.geometry.blocks[0]))
    with pytest.raises(InvalidInput, match=f"block '7,7,7': expected {listed}"):
        implementation.geometry.launch((64,) * len(operation.output(operation.shape_of_size(2))), (7, 7, 7))


def test_ladder_climbs_from_one_thread_an_element_to_tensor_cores():
    rungs = [
        implementation
        for implementation in OPERATIONS["matmul"].implementations
        if implementation.rung and implementation.backend == "numba_cuda"
    ]

    assert [rung.name for rung in rungs] == [f"numba-cuda-{name}" for name in LADDER]
    assert len({rung.about for rung in rungs}) == len(rungs)


@pytest.mark.parametrize(("gpu", "number"), [("NVIDIA A100", "8.0"), ("NVIDIA B200", "10.0")])
def test_gpu_without_products_of_warpgroups_is_told_which_step_to_use(gpu, number):
    device = Device("cuda:0", "cuda", gpu, compute_capability=number)
    wgmma = OPERATIONS["matmul"].implementation_named("numba-cuda-wgmma")

    needs = f"numba-cuda-wgmma needs compute capability 9.0, and no other; {gpu} has {number}"
    assert wgmma.unsupported(DTYPES["bf16"], device) == f"{needs}; use numba-cuda-tensorcore"
    assert wgmma.unsupported(DTYPES["bf16"], Device("cuda:0", "cuda", "H100", compute_capability="9.0")) is None


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_gpu_without_these_tensor_cores_is_told_which_step_to_use(dtype):
    turing = Device("cuda:0", "cuda", "Tesla T4", compute_capability="7.5")
    best = OPERATIONS["matmul"].implementation_named("numba-cuda")

    reason = best.unsupported(DTYPES[dtype], turing)
    assert reason == "numba-cuda needs compute capability 8.0; Tesla T4 has 7.5; use numba-cuda-warptile"
    assert OPERATIONS["matmul"].implementation_named("numba-cuda-warptile").unsupported(DTYPES[dtype], turing) is None
    assert best.unsupported(DTYPES["fp32"], turing) is None
