"""Tiles in shared memory and registers as in numba-cuda-warptile; the grid's third axis counts the matrices.

A warp has a tile of 64 x 64 sums. A shared right-hand matrix is read by every block anew: the L2 cache, not the
kernel, makes it cheap.
"""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.register_tiles.steps import matrix_product
from gpuexplore.operations.batched_matmul import TILES
from gpuexplore.operations.matmul.numba_cuda_warptile import tiling_of


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (outer, inner, m, k) @ (k, n) or (outer, inner, k, n) to `out`."""
    tiling, passes = tiling_of(dtype, block)
    multiply, rows, columns, further = matrix_product(tiling), tiling.rows, tiling.columns, passes > 1

    def batched_matmul(a, b, out):
        matrix, m, k, n = cuda.blockIdx.z, a.shape[2], a.shape[3], out.shape[3]
        starts = matrix * m * k, matrix * k * n if b.ndim == 4 else 0, matrix * m * n
        for tile in range(passes):
            corner = (cuda.blockIdx.y * passes + tile) * rows, cuda.blockIdx.x * columns
            multiply((a, b, out), starts, corner, (m, k, n))
            if further:
                cuda.syncthreads()

    return batched_matmul


KERNEL = CudaKernel(make, TILES)
build = KERNEL.build
