"""The kernels of the matrix product for each product of a batch: the grid's third axis counts the matrices.

A shared right-hand matrix is read by every block anew: the L2 cache, not the kernel, makes it cheap.
"""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import Block, CudaKernel, Kernel, sum_type
from gpuexplore.kernels.intrinsics.vectors import materialize
from gpuexplore.kernels.register_tiles.steps import matrix_product
from gpuexplore.operations.batched_matmul import TILES
from gpuexplore.operations.matmul import ON_TENSOR_CORES
from gpuexplore.operations.matmul.numba_cuda import KERNEL as BEST_OF_ONE
from gpuexplore.operations.matmul.numba_cuda import warp_tiling
from gpuexplore.operations.matmul.numba_cuda_tensorcore import SUMS, block_product


def _make_warptile(dtype: DType, block: Block) -> Kernel:
    """Return the kernel with tiles in shared memory and registers; a warp has a tile of 64 x 64 sums."""
    tiling, passes = warp_tiling(dtype, block)
    multiply = matrix_product(tiling)
    rows = tiling.rows
    columns = tiling.columns
    further = passes > 1

    def batched_matmul(a, b, out):
        matrix = cuda.blockIdx.z
        m = a.shape[2]
        k = a.shape[3]
        n = out.shape[3]
        starts = matrix * m * k, matrix * k * n if b.ndim == 4 else 0, matrix * m * n
        for tile in range(passes):
            corner = (cuda.blockIdx.y * passes + tile) * rows, cuda.blockIdx.x * columns
            multiply((a, b, out), starts, corner, (m, k, n))
            if further:
                cuda.syncthreads()

    return batched_matmul


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel on tensor cores where they take the dtype, else the one with warp tiles."""
    if dtype.name not in ON_TENSOR_CORES:
        return _make_warptile(dtype, block)
    add_up, store = block_product(dtype, block)
    kind = sum_type(dtype)

    def batched_matmul(a, b, out):
        sums = cuda.local.array(SUMS, kind)
        outer = cuda.blockIdx.z // a.shape[1]
        inner = cuda.blockIdx.z % a.shape[1]
        if b.ndim == 4:
            add_up(sums, a[outer, inner], b[outer, inner])
        else:
            add_up(sums, a[outer, inner], b)
        again = materialize(cuda.blockIdx.z)  # so that the offset in the output takes no registers before
        store(out[again // out.shape[1], again % out.shape[1]], sums)

    return batched_matmul


WARPTILE = CudaKernel(_make_warptile, TILES)
KERNEL = CudaKernel(
    _make,
    TILES,
    resident_threads=BEST_OF_ONE.resident_threads,
    dynamic_shared_bytes=BEST_OF_ONE.dynamic_shared_bytes,
)
