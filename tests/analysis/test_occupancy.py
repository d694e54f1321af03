"""Occupancy against NVIDIA's own calculator, cuda_occupancy.h, and against figures worked out by hand."""

import random
from pathlib import Path

import pytest

from gpuexplore.analysis.occupancy import Waves, occupancy, waves
from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware.capabilities import CAPABILITIES
from tests.hardware.nvidia_headers import ask, build, header

SOURCE = Path(__file__).with_name("occupancy_oracle.c")
EVERY = pytest.mark.parametrize("capability", CAPABILITIES.values(), ids=list(CAPABILITIES))
CONFIGURATIONS = 10_000
SEED = 20_261_120
ANY = 2**31 - 1  # the header's word for a resource that is no limit
ORDER = ("threads", "blocks", "registers", "shared")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    path = header("cuda_occupancy.h")
    return build(SOURCE, tmp_path_factory.mktemp("oracle"), f'-DCUDA_OCCUPANCY_H="{path}"')


def device_line(capability):
    return (
        *capability.compute_capability.split("."),
        *(capability.warp_size, capability.max_threads_per_block, capability.max_warps * capability.warp_size),
        *(capability.registers, capability.max_registers_per_block, capability.shared_bytes),
        *(capability.max_shared_bytes_per_block, capability.max_shared_bytes_per_block_opt_in),
        capability.reserved_shared_bytes_per_block,
    )


def configurations(capability):
    """Yield (threads, registers, shared bytes): evenly, at the edges where a count changes, and past the limits."""
    draw = random.Random(f"{SEED} {capability.compute_capability}")
    most = capability.max_shared_bytes_per_block_opt_in
    for _ in range(CONFIGURATIONS):
        threads = draw.choice((draw.randint(1, 1024), 32 * draw.randint(1, 32), draw.randint(1, 1100)))
        registers = draw.choice((draw.randint(1, 255), 8 * draw.randint(1, 31), draw.choice((1, 255, 257, 300))))
        edge = capability.shared_bytes // draw.randint(1, 33) - capability.reserved_shared_bytes_per_block
        near_edge = max(0, edge + draw.choice((-257, -256, -128, -1, 0, 1, 128, 256)))
        shared = draw.choice(
            (0, draw.randint(0, most), near_edge, draw.choice((1, 48 * 1024, most, most + 1, 2 * most)))
        )
        yield threads, registers, shared


def computed(capability, threads, registers, shared):
    """Return the occupancy; None where a value is out of its range."""
    needs = {"threads_per_block": threads, "registers_per_thread": registers, "shared_bytes_per_block": shared}
    try:
        return occupancy(capability, **needs)
    except InvalidInput:
        return None


def agrees(mine, blocks, *limits):
    """Return whether an occupancy has these blocks, and what each resource allows."""
    if mine is None:
        return blocks == 0
    return (mine.blocks_per_multiprocessor, *(mine.limits.get(name, ANY) for name in ORDER)) == (blocks, *limits)


@pytest.mark.long
@EVERY
def test_blocks_are_those_of_nvidias_calculator(oracle, capability):
    """The calculator of CUDA 13 still answers for every row, Kepler's too: status 0 each time.

    Left out is its one difference from what NVIDIA prints: it lets a thread have 256 registers from 7.0 on, where
    the programming guide and libcu++ say 255, the most a compiler gives. The table itself is checked in
    tests/hardware/test_capabilities.py; slots and units are the calculator's own here.
    """
    asked = list(configurations(capability))
    answers = ask(oracle, [(*device_line(capability), *configuration) for configuration in asked])
    found = [computed(capability, *configuration) for configuration in asked]

    assert len(answers) == len(asked) >= CONFIGURATIONS
    assert {status for status, *_ in answers} == {0}
    wrong = [
        (configuration, mine, theirs)
        for configuration, mine, (_, *theirs) in zip(asked, found, answers, strict=True)
        if not agrees(mine, *theirs)
    ]
    assert wrong == []
    inside = [mine for mine in found if mine]
    assert {mine.limiter for mine in inside} == {*ORDER, None}  # both ways not to run are met, and every limiter
    assert len(inside) < len(found)


def full(name, threads, registers, shared=0):
    return occupancy(
        CAPABILITIES[name],
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes_per_block=shared,
    )


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "blocks", "warps", "limiter"),
    [
        # 8 warps x 2048 registers; 16384 / 2048 = 8 warps a part, 32 in all; 32 / 8 = 4
        ("8.6", 256, 64, 16_384, 4, 32, "registers"),
        # 17 KiB with the driver's own: 100 / 17 = 5 blocks, where 32 registers leave room for 8 and 48 warps for 6
        ("8.6", 256, 32, 16_384, 5, 40, "shared"),
        # 48 warps / 8 = 6, and 16384 / 1024 x 4 / 8 = 8 by registers
        ("8.6", 256, 32, 0, 6, 48, "threads"),
        # 48 warps, but 16 block slots: a third of the warps
        ("8.6", 32, 16, 0, 16, 16, "blocks"),
        # everything ties at 8: 64 warps / 8 and 65536 / (8 x 1024)
        ("8.0", 256, 32, 0, 8, 64, "threads"),
        # 33 threads are 2 warps; 64 / 2 = 32 ties with the block slots
        ("9.0", 33, 16, 0, 32, 64, "threads"),
        # all that a block may have: one block, although half of 228 KiB would not hold 227
        ("9.0", 128, 32, 232_448, 1, 4, "shared"),
        # 113 KiB with the driver's own: two fit into 228, not into 164
        ("9.0", 128, 32, 114_688, 2, 8, "shared"),
        ("8.0", 128, 32, 114_688, 1, 4, "shared"),
        # 33 registers x 32 = 1056, rounded up to 1280 a warp: 12 warps a part, 48 in all; 48 / 8 = 6
        ("7.0", 256, 33, 0, 6, 48, "registers"),
        # one file of 131072: 32768 / 2048 = 16 warps a part, 64 in all
        ("3.7", 256, 64, 0, 8, 64, "threads"),
        # 96 registers are 3072 a warp: two parts of 32768 hold 10 each, four of 16384 hold 5 each
        ("6.0", 32, 96, 0, 20, 20, "registers"),
        # 104 are 3328: two parts hold 9 each, four hold 4 each
        ("6.0", 32, 104, 0, 18, 18, "registers"),
        ("6.1", 32, 104, 0, 16, 16, "registers"),
    ],
)
def test_worked_out_by_hand(name, threads, registers, shared, blocks, warps, limiter):
    found = full(name, threads, registers, shared)

    assert (found.blocks_per_multiprocessor, found.active_warps, found.limiter) == (blocks, warps, limiter)
    assert found.occupancy == warps / CAPABILITIES[name].max_warps
    assert found.reason is None
    assert found.limits[limiter] == blocks == min(found.limits.values())


def test_registers_each_within_their_range_can_be_too_many_together_also_by_pascals_check():
    found = full("8.6", 1024, 65)

    assert (found.blocks_per_multiprocessor, found.active_warps, found.occupancy) == (0, 0, 0.0)
    assert found.limiter is None
    assert found.reason == "a block needs 73728 registers; compute capability 8.6 allows 65536"

    assert "shared" not in full("7.5", 128, 32).limits
    assert full("8.6", 128, 32).limits["shared"] == 100

    found = full("8.9", 96, 40, 1000)

    assert (found.compute_capability, found.threads_per_block, found.registers_per_thread) == ("8.9", 96, 40)
    assert (found.shared_bytes_per_block, found.max_warps) == (1000, 48)
    assert len({found, full("8.9", 96, 40, 1000)}) == 1


def test_pascal_checks_a_launch_as_if_every_chip_had_four_parts():
    """9 warps fit the two parts of 6.0, and are counted as 12: 12 x 5632 registers are more than 65536."""
    assert full("6.0", 288, 176).reason == "a block needs 67584 registers; compute capability 6.0 allows 65536"
    assert full("6.0", 256, 176).blocks_per_multiprocessor == 1


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "text"),
    [
        (0, 32, 0, "threads per block '0': expected 1 to 1024"),
        (1025, 32, 0, "threads per block '1025': expected 1 to 1024"),
        (32, 0, 0, "registers per thread '0': expected 1 to 255"),
        (32, 256, 0, "registers per thread '256': expected 1 to 255"),
        (32, 32, -1, "shared bytes per block '-1': expected 0 to 101376"),
        (32, 32, 101_377, "shared bytes per block '101377': expected 0 to 101376"),
    ],
)
def test_what_no_kernel_can_have_is_refused(threads, registers, shared, text):
    with pytest.raises(InvalidInput, match=text):
        full("8.6", threads, registers, shared)


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        (1, Waves(8, 0, 1, 7 / 8, 1 / 8)),
        (8, Waves(8, 1, 0, 0.0, 1.0)),
        (9, Waves(8, 1, 1, 7 / 8, 9 / 16)),
        (15, Waves(8, 1, 7, 1 / 8, 15 / 16)),
        (800, Waves(8, 100, 0, 0.0, 1.0)),
    ],
)
def test_a_grid_passes_in_waves_of_which_the_last_may_idle(grid, expected):
    found = waves(grid, 2, 4)

    assert found == expected
    assert found.count == -(-grid // 8)


def test_one_block_more_than_a_full_gpu_halves_its_efficiency():
    assert waves(132 * 16, 16, 132).efficiency == 1.0
    assert waves(132 * 16 + 1, 16, 132).efficiency == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 1, 1), "blocks of the grid '0'"),
        ((1, 0, 1), "blocks per multiprocessor '0'"),
        ((1, 1, -1), "multiprocessors '-1'"),
    ],
)
def test_waves_need_something_to_run_and_somewhere_to_run_it(arguments, text):
    with pytest.raises(InvalidInput, match=text):
        waves(*arguments)
