from dataclasses import replace
from math import prod

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.features.machine_code.analysis.block_steps import (
    MOST_BLOCKS,
    BarrierInterval,
    _arrivals,
    barrier_intervals,
    block_sectors,
    block_wavefronts,
    costliest_read,
    effect,
    moments,
    sentence,
    small_shape,
    steps_of,
)
from gpuexplore.measure.check.interpreted import MOST_BYTES, check_size
from gpuexplore.operations import OPERATIONS
from tests.measure.made_block import block_run


def told(run, number):
    return sentence(run.steps[number - 1], run)


def test_a_sentence_has_the_figures_of_a_request_the_lanes_that_collide_and_what_padding_saves():
    assert told(block_run(), 1) == (
        "Warp 0 reads 32 elements of A in 4 sectors of 32 bytes: 128 of 128 bytes moved are useful (100 %); "
        "the fewest sectors possible."
    )

    assert told(block_run(pitch=8), 2) == (
        "Warp 0 writes 32 words of shared memory in 2 wavefronts, 1 without conflicts: "
        "lanes 0, 16 want different words of bank 0."
    )
    assert "no bank conflict" in told(block_run(), 2)

    assert told(block_run(pitch=132), 2).endswith(
        "Its rows are 132 bytes apart: 128 apart, without padding, it would take 32."
    )


def test_warps_wait_for_the_last_one():
    run = block_run()

    assert _arrivals(run.steps[2], run) == ([0], [1])
    assert told(run, 3) == "Warp 0 waits at the barrier: 1 of 2 warps have arrived, warp 1 has not."
    assert told(run, 6) == "Warp 1 is the last to arrive at the barrier: all 2 warps go on."
    assert effect(run.steps[2], run) == "barrier: 1 of 2 warps are there"


def test_intervals_end_at_barriers_and_wait_for_the_last_arrival():
    assert barrier_intervals(block_run()) == [
        BarrierInterval(0, 0, 1, 3, 6),
        BarrierInterval(1, 0, 4, 6, 6),
        BarrierInterval(0, 1, 7, 9, None),
        BarrierInterval(1, 1, 10, 12, None),
    ]


def test_totals_are_sums_of_the_block():
    run = block_run(pitch=8)

    assert (block_sectors(run).moved_bytes, block_sectors(run).useful_bytes) == (768, 768)
    assert block_wavefronts(run) == (8, 4)


def test_totals_count_sectors_as_a_whole():
    run = block_run()
    access = run.steps[0].accesses[0]
    halved = replace(access, lanes=access.lanes[::2], addresses=access.addresses[::2])
    once = replace(run, steps=(replace(run.steps[0], accesses=(halved,)),))

    assert (block_sectors(once).moved_bytes, block_sectors(once).useful_bytes) == (128, 64)
    assert block_wavefronts(once) == (0, 0)


def test_moments_lead_to_the_first_of_each_kind():
    assert moments(block_run(), 0) == {
        "reads A": 1,
        "writes shared memory": 2,
        "first barrier": 3,
        "reads shared memory": 4,
        "reads B": 5,
        "writes out": 6,
    }
    assert moments(block_run(pitch=8), 1)["worst bank conflict"] == 2


@pytest.mark.parametrize("warp", [0, 1])
def test_each_warp_has_steps_of_its_own(warp):
    run = block_run()

    assert {step.warp for step in steps_of(run, warp)} == {warp}
    assert costliest_read(run, warp) == 1


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
