"""Tensor cores as in numba-cuda-tensorcore of the matrix product where they take the dtype, else warp tiles.

The grid's third axis counts the matrices. A shared right-hand matrix is read by every block anew: the L2 cache, not
the kernel, makes it cheap.
"""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.intrinsics.vectors import materialize
from gpuexplore.operations.batched_matmul import TILES, numba_cuda_warptile
from gpuexplore.operations.matmul import ON_TENSOR_CORES, numba_cuda_best
from gpuexplore.operations.matmul.numba_cuda_tensorcore import SUMS, block_product


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (outer, inner, m, k) @ (k, n) or (outer, inner, k, n) to `out`."""
    if dtype.name not in ON_TENSOR_CORES:
        return numba_cuda_warptile.make(dtype, block)
    (add_up, store), kind = block_product(dtype, block), sum_type(dtype)

    def batched_matmul(a, b, out):
        sums = cuda.local.array(SUMS, kind)
        outer, inner = cuda.blockIdx.z // a.shape[1], cuda.blockIdx.z % a.shape[1]
        if b.ndim == 4:
            add_up(sums, a[outer, inner], b[outer, inner])
        else:
            add_up(sums, a[outer, inner], b)
        again = materialize(cuda.blockIdx.z)  # so that the offset in the output takes no registers before
        store(out[again // out.shape[1], again % out.shape[1]], sums)

    return batched_matmul


KERNEL = CudaKernel(
    make,
    TILES,
    resident_threads=numba_cuda_best.KERNEL.resident_threads,
    dynamic_shared_bytes=numba_cuda_best.KERNEL.dynamic_shared_bytes,
)
build = KERNEL.build
