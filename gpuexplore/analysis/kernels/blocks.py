"""The block shapes of one CUDA kernel side by side: what each does to occupancy, grid and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuexplore.analysis.kernels.occupancy import Occupancy, Waves, occupancy, waves
from gpuexplore.devices import Accelerator
from gpuexplore.devices.capabilities import ComputeCapability, capability_named
from gpuexplore.errors import InvalidInput
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Block, Launch
from gpuexplore.model import Result
from gpuexplore.units import read_whole

# The GPU that a kernel is looked at for: a row of the table, or one of the visitor's own by two numbers.


OWN = "own"  # stands for the visitor's own among the keys of the table
MOST_MULTIPROCESSORS = 1024  # several times as many as any GPU has


@dataclass(frozen=True, slots=True)
class TargetGpu:
    """What decides registers, occupancy and waves.

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
        """What a multiprocessor can hold."""
        return capability_named(self.compute_capability)


def of_the_table(row: Accelerator) -> TargetGpu:
    """Return a row of the table of accelerators as a target."""
    return TargetGpu(row.key, row.name, row.compute_capability, row.multiprocessors)


def own_gpu(compute_capability: str, multiprocessors: str) -> TargetGpu:
    """Return the GPU with these numbers, as typed.

    Raises:
        InvalidInput: no such compute capability is known, or no GPU has so many multiprocessors.
    """
    capability, count = capability_named(compute_capability), read_multiprocessors(multiprocessors)
    name = f"GPU of {count} multiprocessor{'s'[: count > 1]}, compute capability {capability.compute_capability}"
    return TargetGpu(OWN, name, capability.compute_capability, count)


def read_multiprocessors(text: str) -> int:
    """Return the number of multiprocessors that was typed.

    Raises:
        InvalidInput: it is no number, or no GPU has so many.
    """
    count = read_whole(text)
    if count is None or not 1 <= count <= MOST_MULTIPROCESSORS:
        raise InvalidInput.of("multiprocessors", text, f"whole numbers from 1 to {MOST_MULTIPROCESSORS}")
    return count


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


def block_shapes(
    launches: Mapping[Block, Launch],
    compiled: Sequence[CompiledKernel | str],
    gpu: TargetGpu,
    results: Mapping[Block, Result],
) -> tuple[BlockShape, ...]:
    """Return each block shape with what follows from it.

    Args:
        launches: by block shape.
        compiled: of each block shape, in the same order: the kernel, or why there is none.
        gpu: the target.
        results: measured ones by block shape.
    """
    return tuple(
        _block_shape(BlockShape(block, launch, result=results.get(block)), made, gpu)
        for (block, launch), made in zip(launches.items(), compiled, strict=True)
    )


def _block_shape(bare: BlockShape, made: CompiledKernel | str, gpu: TargetGpu) -> BlockShape:
    if isinstance(made, str):
        return replace(bare, reason=made)
    try:
        full = kernel_occupancy(made, bare.launch, gpu)
    except InvalidInput as error:
        return replace(bare, compiled=made, reason=str(error))
    known = gpu.multiprocessors and full.blocks_per_multiprocessor
    passing = waves(bare.launch.blocks, full.blocks_per_multiprocessor, gpu.multiprocessors or 1) if known else None
    return replace(bare, compiled=made, occupancy=full, waves=passing, reason=full.reason)


def kernel_occupancy(made: CompiledKernel, launch: Launch, gpu: TargetGpu) -> Occupancy:
    """Return how full the kernel can make the GPU.

    Raises:
        InvalidInput: a block needs more than a multiprocessor of that GPU has.
    """
    return occupancy(
        gpu.limits,
        threads_per_block=launch.threads_per_block,
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )
