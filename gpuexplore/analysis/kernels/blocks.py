"""The block shapes of one CUDA kernel side by side: what each does to occupancy, grid and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuexplore.analysis.kernels.occupancy import Occupancy, Waves, occupancy, waves
from gpuexplore.analysis.kernels.target_gpu import TargetGpu
from gpuexplore.errors import InvalidInput
from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.kernels.geometry import Block, Launch
from gpuexplore.model import Result


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
