"""The best step of the ladder for each dtype: tensor cores where they take it, else warp tiles."""

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.matmul import ON_TENSOR_CORES, WARP_TILES, numba_cuda_tensorcore, numba_cuda_warptile


def step_for(dtype: DType) -> CudaKernel:
    """Return the kernel that is best for `dtype`."""
    return numba_cuda_tensorcore.KERNEL if dtype.name in ON_TENSOR_CORES else numba_cuda_warptile.KERNEL


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    return step_for(dtype).make(dtype, block)


KERNEL = CudaKernel(
    make,
    WARP_TILES,
    resident_threads=lambda dtype: step_for(dtype).resident_threads(dtype),
    dynamic_shared_bytes=lambda dtype, block: step_for(dtype).dynamic_shared_bytes(dtype, block),
)
build = KERNEL.build
