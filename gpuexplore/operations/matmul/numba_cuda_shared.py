"""The third step of the ladder: a block copies tiles of A and B to shared memory and uses each element many times.

Global memory is read once for a tile's width of multiply-adds, 16 times less with blocks of 16 x 16. Threads
outside the matrices load zeros and store nothing.
"""

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.matmul import SQUARE_TILES


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    kind, tile = sum_type(dtype), block[0]

    def matmul(a, b, out):
        tile_a = cuda.shared.array((tile, tile), kind)
        tile_b = cuda.shared.array((tile, tile), kind)  # a line of its own: the simulator names arrays by their line
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = kind(0)
        for start in range(0, a.shape[1], tile):
            p, q = start + x, start + y
            tile_a[y, x] = widen(a[row, p]) if row < a.shape[0] and p < a.shape[1] else kind(0)
            tile_b[y, x] = widen(b[q, column]) if q < b.shape[0] and column < b.shape[1] else kind(0)
            cuda.syncthreads()
            for term in range(tile):
                total += tile_a[y, term] * tile_b[term, x]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = narrow(total, out.dtype)

    return matmul


KERNEL = CudaKernel(make, SQUARE_TILES)
build = KERNEL.build
