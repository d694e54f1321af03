"""The limits of a CUDA multiprocessor, by compute capability: one row of compute_capabilities.csv each.

Sizes are NVIDIA's technical specifications, linked in each row. The units in which registers, warps and shared
memory are handed out are documented nowhere but in cuda_occupancy.h, a header of the CUDA runtime:
https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__OCCUPANCY.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpuexplore.core.errors import InvalidInput, check_known
from gpuexplore.hardware.accelerators import Accelerator, read_table


@dataclass(frozen=True, slots=True)
class ComputeCapability:
    """The limits that decide how many blocks a multiprocessor runs at once; registers are of 32 bits.

    Attributes:
        compute_capability: CUDA's number, e.g. `8.6`.
        warp_size: threads of a warp.
        max_threads_per_block: threads of a block, all axes together.
        max_warps: warps resident on a multiprocessor.
        max_blocks: blocks resident on a multiprocessor.
        registers: registers of a multiprocessor.
        max_registers_per_block: registers of a block.
        max_registers_per_thread: registers a compiler may give a thread.
        register_unit: registers are given to a warp in multiples of this.
        subpartitions: parts of a multiprocessor, each with its share of the registers; a warp lives in one.
        launch_warp_unit: warps of a block are rounded up to this when its registers are checked at launch. Pascal
            is one family there: 6.0 has two parts, and is checked like 6.1, which has four.
        shared_bytes: shared memory of a multiprocessor with the largest carve-out.
        max_shared_bytes_per_block: shared memory of a block, without further ado.
        max_shared_bytes_per_block_opt_in: the same for a kernel that opts in, which takes dynamic shared memory.
        shared_unit_bytes: shared memory is given to a block in multiples of this.
        reserved_shared_bytes_per_block: shared memory the driver takes for itself in addition to each block's own.
        source_url: where NVIDIA documents it.
    """

    compute_capability: str
    warp_size: int
    max_threads_per_block: int
    max_warps: int
    max_blocks: int
    registers: int
    max_registers_per_block: int
    max_registers_per_thread: int
    register_unit: int
    subpartitions: int
    launch_warp_unit: int
    shared_bytes: int
    max_shared_bytes_per_block: int
    max_shared_bytes_per_block_opt_in: int
    shared_unit_bytes: int
    reserved_shared_bytes_per_block: int
    source_url: str


def _capability(row: Mapping[str, str]) -> ComputeCapability:
    values: dict[str, Any] = {
        name: text if name in ("compute_capability", "source_url") else int(text) for name, text in row.items()
    }
    return ComputeCapability(**values)


CAPABILITIES: Mapping[str, ComputeCapability] = MappingProxyType(
    {row["compute_capability"]: _capability(row) for row in read_table("compute_capabilities.csv")}
)


def capability_named(number: str) -> ComputeCapability:
    """Return the limits of a compute capability, e.g. `8.6`.

    Raises:
        InvalidInput: it is not in the table; a neighbour's limits would be wrong.
    """
    check_known("compute capability", number, CAPABILITIES)
    return CAPABILITIES[number]


def capability_of(accelerator: Accelerator) -> ComputeCapability:
    """Return the limits of a GPU's multiprocessors.

    Raises:
        InvalidInput: it has no compute capability, because it is not NVIDIA's.
    """
    number = accelerator.compute_capability
    if number not in CAPABILITIES:
        accepted = f"GPUs with a compute capability of {', '.join(CAPABILITIES)}; this one has {number or 'none'}"
        raise InvalidInput.of("gpu", accelerator.name, accepted)
    return CAPABILITIES[number]
