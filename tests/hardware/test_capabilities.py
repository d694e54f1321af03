"""The limits of a multiprocessor: every NVIDIA GPU of the table has them, and they are NVIDIA's."""

from dataclasses import astuple, fields
from pathlib import Path

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware import ACCELERATORS, accelerator_named
from gpuexplore.hardware.capabilities import CAPABILITIES, capability_named, capability_of
from tests.hardware.nvidia_headers import ask, build, header

SOURCE = Path(__file__).with_name("arch_traits.cpp")
EVERY = pytest.mark.parametrize("capability", CAPABILITIES.values(), ids=list(CAPABILITIES))
TOO_OLD_FOR_LIBCUXX = {"3.7"}


@pytest.fixture(scope="module")
def told_by_nvidia(tmp_path_factory):
    """Return the limits of libcu++, which the CUDA runtime's wheels carry, by compute capability."""
    include = header("cccl")
    traits = (
        include / "cuda" / "__device" / "arch_traits.h"
    )  # its public header needs more of CUDA than the wheels have
    if not traits.exists():
        pytest.skip("this libcu++ keeps its limits elsewhere")
    known = [name for name in CAPABILITIES if name not in TOO_OLD_FOR_LIBCUXX]
    options = ("-std=c++17", f"-I{include}", f'-DARCH_TRAITS_H="{traits}"')
    program = build(SOURCE, tmp_path_factory.mktemp("traits"), *options)
    return dict(zip(known, ask(program, [name.split(".") for name in known]), strict=True))


def test_limits_are_those_of_nvidias_libcuxx(told_by_nvidia):
    mine = {
        name: (
            *(capability.warp_size, capability.max_threads_per_block, capability.max_warps, capability.max_blocks),
            *(capability.registers, capability.max_registers_per_block, capability.max_registers_per_thread),
            *(
                capability.shared_bytes,
                capability.max_shared_bytes_per_block,
                capability.max_shared_bytes_per_block_opt_in,
            ),
            capability.reserved_shared_bytes_per_block,
        )
        for name, capability in CAPABILITIES.items()
        if name not in TOO_OLD_FOR_LIBCUXX
    }

    assert mine == told_by_nvidia


def test_limits_of_kepler_are_those_of_the_programming_guide():
    """The specifications of 3.7 in the CUDA C++ Programming Guide 11.8, the last to print them."""
    kepler = capability_named("3.7")

    assert (kepler.max_warps * kepler.warp_size, kepler.max_blocks, kepler.registers) == (2048, 16, 128 * 1024)
    assert (kepler.max_registers_per_block, kepler.max_registers_per_thread) == (64 * 1024, 255)
    assert (kepler.shared_bytes, kepler.max_shared_bytes_per_block_opt_in) == (112 * 1024, 48 * 1024)


def test_every_nvidia_gpu_of_the_table_has_its_row_and_no_row_is_without_a_gpu():
    assert {row.compute_capability for row in ACCELERATORS if row.vendor == "NVIDIA"} == set(CAPABILITIES)


@EVERY
def test_every_limit_is_above_zero_and_says_where_it_is_printed(capability):
    numbers = [value for value in astuple(capability) if isinstance(value, int)]

    assert capability.source_url.startswith("https://docs.nvidia.com/cuda/")
    assert len(numbers) == len(fields(capability)) - 2
    assert all(number > 0 for number in numbers[:-1])
    major = int(
        capability.compute_capability.split(".")[0]
    )  # one kibibyte of each block is the driver's from Ampere on
    assert capability.reserved_shared_bytes_per_block == (1024 if major >= 8 else 0)


@EVERY
def test_a_block_never_gets_more_than_a_multiprocessor_has(capability):
    assert capability.max_threads_per_block <= capability.max_warps * capability.warp_size
    assert capability.max_registers_per_block <= capability.registers
    assert capability.max_shared_bytes_per_block <= capability.max_shared_bytes_per_block_opt_in
    taken = capability.max_shared_bytes_per_block_opt_in + capability.reserved_shared_bytes_per_block
    assert taken <= capability.shared_bytes


def test_a_gpu_has_the_limits_of_its_compute_capability():
    assert capability_of(accelerator_named("NVIDIA A100-SXM4-80GB")) is CAPABILITIES["8.0"]


@pytest.mark.parametrize("number", ["", "86", "8", "9.9", "sm_86", "gfx942"])
def test_an_unknown_compute_capability_is_answered_with_the_known_ones(number):
    with pytest.raises(InvalidInput, match=rf"compute capability '{number}': expected 3\.7, .*, 12\.1"):
        capability_named(number)


def refusal(row):
    """Return what is said when the limits of a row are asked for; None when it is answered."""
    try:
        capability_of(row)
    except InvalidInput as error:
        return str(error)
    return None


def test_a_gpu_of_another_maker_has_none():
    told = {row: refusal(row) or "" for row in ACCELERATORS if row.vendor != "NVIDIA"}

    assert told
    assert [
        row.key
        for row, said in told.items()
        if row.name[:60] not in said or f"this one has {row.compute_capability or 'none'}" not in said
    ] == []
