"""Theoretical occupancy of a CUDA kernel on a chosen GPU, by the shape of its blocks, and what stops it there.

blocks per multiprocessor = the least of what its warps, block slots, registers and shared memory allow;
occupancy = blocks · warps per block / most warps. The arithmetic is that of NVIDIA's cuda_occupancy.h, with the
largest shared-memory carve-out, the opt-in to all of it, and no partitioned global caching:
https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__OCCUPANCY.html
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from gpuexplore.core import Result, require, whole_typed
from gpuexplore.hardware import Accelerator, ComputeCapability, capability_named
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Block, Launch

Limiter = Literal["threads", "blocks", "registers", "shared"]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The occupancy of a multiprocessor by a kernel.

    Attributes:
        compute_capability: CUDA's number, e.g. `8.6`.
        threads_per_block: threads of a block.
        registers_per_thread: 32-bit registers of a thread, as compiled.
        shared_bytes_per_block: shared memory of a block, static and dynamic, as the kernel asks for it.
        blocks_per_multiprocessor: blocks that run at once; 0 when not even one can.
        active_warps: warps that run at once.
        max_warps: warps a multiprocessor has room for.
        occupancy: `active_warps / max_warps`, a share of 1.
        limits: blocks each resource would allow on its own; a resource the kernel does not use is not there.
        limiter: what allows the fewest blocks, the first of `limiters`. None when not even one block runs.
        reason: why not even one block runs, else None.
    """

    compute_capability: str
    threads_per_block: int
    registers_per_thread: int
    shared_bytes_per_block: int
    blocks_per_multiprocessor: int
    active_warps: int
    max_warps: int
    occupancy: float
    limits: Mapping[Limiter, int] = field(hash=False)
    limiter: Limiter | None
    reason: str | None

    @property
    def limiters(self) -> tuple[Limiter, ...]:
        """All that allow the fewest blocks, in the order of threads, blocks, registers, shared.

        While one of them holds, more of another gains nothing.
        """
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks_per_multiprocessor)

    @property
    def limited_by(self) -> str:
        """Its limiters in words, e.g. `limited by registers and shared memory`; why no block runs where none does."""
        if self.reason:
            return f"no block fits: {self.reason}"
        words: dict[Limiter, str] = {
            "threads": "threads (warp slots)",
            "blocks": "block slots",
            "registers": "registers",
            "shared": "shared memory",
        }
        *others, last = (words[name] for name in self.limiters)
        return f"limited by {', '.join(others)} and {last}" if others else f"limited by {last}"


def occupancy(
    capability: ComputeCapability, *, threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int
) -> Occupancy:
    """Return the theoretical occupancy of a kernel with these needs.

    Raises:
        InvalidInput: a value that no kernel can have on this compute capability.
    """
    largest_shared = capability.max_shared_bytes_per_block_opt_in
    _check("threads per block", threads_per_block, 1, capability.max_threads_per_block)
    _check("registers per thread", registers_per_thread, 1, capability.max_registers_per_thread)
    _check("shared bytes per block", shared_bytes_per_block, 0, largest_shared)
    warps = ceil(threads_per_block / capability.warp_size)
    limits = _limits(capability, warps, registers_per_thread, shared_bytes_per_block)
    limiter = min(limits, key=lambda name: limits[name])  # the first of those that tie
    blocks = limits[limiter]
    return Occupancy(
        compute_capability=capability.compute_capability,
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block,
        blocks_per_multiprocessor=blocks,
        active_warps=blocks * warps,
        max_warps=capability.max_warps,
        occupancy=blocks * warps / capability.max_warps,
        limits=limits,
        limiter=limiter if blocks else None,
        reason=None if blocks else _too_many_registers(capability, warps, registers_per_thread),
    )


def _check(what: str, value: int, least: int, most: int) -> None:
    require(least <= value <= most, what, value, f"{least} to {most}")


def _limits(capability: ComputeCapability, warps: int, registers: int, shared_bytes: int) -> dict[Limiter, int]:
    """Return the blocks each resource allows, in the order in which ties are settled."""
    limits: dict[Limiter, int] = {
        "threads": capability.max_warps // warps,
        "blocks": capability.max_blocks,
        "registers": _blocks_by_registers(capability, warps, registers),
    }
    taken = _round_up(shared_bytes + capability.reserved_shared_bytes_per_block, capability.shared_unit_bytes)
    return {**limits, "shared": capability.shared_bytes // taken} if taken else limits


def _blocks_by_registers(capability: ComputeCapability, warps: int, registers: int) -> int:
    """Return the blocks whose warps find registers; a warp takes all of its own from one subpartition."""
    if _checked_registers(capability, warps, registers) > capability.max_registers_per_block:
        return 0
    per_subpartition = capability.registers // capability.subpartitions
    warps_at_once = per_subpartition // _registers_per_warp(capability, registers) * capability.subpartitions
    return warps_at_once // warps


def _registers_per_warp(capability: ComputeCapability, registers: int) -> int:
    return _round_up(registers * capability.warp_size, capability.register_unit)


def _checked_registers(capability: ComputeCapability, warps: int, registers: int) -> int:
    """Return the registers a launch is checked for: as if the block had a warp in each subpartition."""
    return _registers_per_warp(capability, registers) * _round_up(warps, capability.launch_warp_unit)


def _too_many_registers(capability: ComputeCapability, warps: int, registers: int) -> str:
    """Return the reason why no block fits; registers alone can exceed the limit although each value is in its range."""
    needed = _checked_registers(capability, warps, registers)
    most = capability.max_registers_per_block
    return f"a block needs {needed} registers; compute capability {capability.compute_capability} allows {most}"


def _round_up(count: int, unit: int) -> int:
    return -(-count // unit) * unit


@dataclass(frozen=True, slots=True)
class Waves:
    """The waves of a grid on a GPU, if all blocks take equally long.

    Attributes:
        blocks_per_wave: blocks the whole GPU runs at once.
        full_waves: waves that fill every slot.
        tail_blocks: blocks of the last wave when it is not full, else 0.
        tail_idle_share: share of the slots without work in that wave; 0 when there is none.
        efficiency: share of the slots with work over all waves.
    """

    blocks_per_wave: int
    full_waves: int
    tail_blocks: int
    tail_idle_share: float
    efficiency: float

    @property
    def count(self) -> int:
        """Waves in all, the one that is not full among them."""
        return self.full_waves + bool(self.tail_blocks)


def waves(grid_blocks: int, blocks_per_multiprocessor: int, multiprocessors: int) -> Waves:
    """Return the waves in which `multiprocessors` run a grid of `grid_blocks`.

    Raises:
        InvalidInput: a count below 1.
    """
    counts = {
        "blocks of the grid": grid_blocks,
        "blocks per multiprocessor": blocks_per_multiprocessor,
        "multiprocessors": multiprocessors,
    }
    for what, count in counts.items():
        require(count >= 1, what, count, "whole numbers from 1")
    slots = blocks_per_multiprocessor * multiprocessors
    full, tail = divmod(grid_blocks, slots)
    return Waves(
        slots, full, tail, (slots - tail) / slots if tail else 0.0, grid_blocks / (slots * (full + bool(tail)))
    )


# The target GPU of a kernel: a row of the table, or a custom one given by two numbers.


OWN = "own"  # the custom GPU among the keys of the table


@dataclass(frozen=True, slots=True)
class TargetGpu:
    """The properties of a GPU that decide registers, occupancy and waves.

    Attributes:
        key: of the table of accelerators, or OWN.
        name: what a reader sees.
        compute_capability: e.g. `7.5`.
        multiprocessors: None where the table lists none.
    """

    key: str
    name: str
    compute_capability: str
    multiprocessors: int | None

    @property
    def limits(self) -> ComputeCapability:
        """The limits of a multiprocessor."""
        return capability_named(self.compute_capability)


def of_the_table(row: Accelerator) -> TargetGpu:
    """Return a row of the table of accelerators as a target."""
    return TargetGpu(row.key, row.name, row.compute_capability, row.multiprocessors)


def own_gpu(compute_capability: str, multiprocessors: str) -> TargetGpu:
    """Return the GPU with these numbers, as typed.

    Raises:
        InvalidInput: no such compute capability is known, or no GPU has so many multiprocessors.
    """
    capability = capability_named(compute_capability)
    count = read_multiprocessors(multiprocessors)
    name = f"GPU of {count} multiprocessor{'s'[: count > 1]}, compute capability {capability.compute_capability}"
    return TargetGpu(OWN, name, capability.compute_capability, count)


def read_multiprocessors(text: str) -> int:
    """Return the number of multiprocessors that was typed.

    Raises:
        InvalidInput: it is no number, or no GPU has so many.
    """
    return whole_typed("multiprocessors", text, 1024)  # several times the number of any GPU


@dataclass(frozen=True, slots=True)
class BlockShape:
    """One block shape of a kernel on one GPU.

    Attributes:
        compiled: what the compiler made of it; None where it could not.
        occupancy: None without `compiled`, or where a block needs more than the GPU has.
        waves: None without occupancy or with an unknown number of multiprocessors.
        reason: why something is None.
        result: measured on that GPU; None where it was not.
    """

    block: Block
    launch: Launch
    compiled: CompiledKernel | None = None
    occupancy: Occupancy | None = None
    waves: Waves | None = None
    reason: str | None = None
    result: Result | None = None


def kernel_occupancy(made: CompiledKernel, launch: Launch, gpu: TargetGpu) -> Occupancy:
    """Return the theoretical occupancy of the kernel on the GPU.

    Raises:
        InvalidInput: a block needs more than a multiprocessor of that GPU has.
    """
    return occupancy(
        gpu.limits,
        threads_per_block=launch.threads_per_block,
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )
