"""Tiles in shared memory as in a single product; the grid's third axis counts the matrices.

Threads outside the matrices load zeros and store nothing. A shared right-hand matrix is read by every
block anew: the L2 cache, not the kernel, makes it cheap.
"""

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.batched_matmul import TILES


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (outer, inner, m, k) @ (k, n) or (outer, inner, k, n) to `out`."""
    kind, tile = sum_type(dtype), block[0]

    def batched_matmul(a, b, out):
        tile_a = cuda.shared.array((tile, tile), kind)
        tile_b = cuda.shared.array((tile, tile), kind)  # a line of its own: the simulator names arrays by their line
        x, y, matrix = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
        column, row = cuda.blockIdx.x * tile + x, cuda.blockIdx.y * tile + y
        left, product = a[matrix // a.shape[1], matrix % a.shape[1]], out[matrix // a.shape[1], matrix % a.shape[1]]
        right = b if b.ndim == 2 else b[matrix // a.shape[1], matrix % a.shape[1]]
        total = kind(0)
        for start in range(0, left.shape[1], tile):
            p, q = start + x, start + y
            tile_a[y, x] = widen(left[row, p]) if row < left.shape[0] and p < left.shape[1] else kind(0)
            tile_b[y, x] = widen(right[q, column]) if q < right.shape[0] and column < right.shape[1] else kind(0)
            cuda.syncthreads()
            for term in range(tile):
                total += tile_a[y, term] * tile_b[term, x]
            cuda.syncthreads()
        if row < product.shape[0] and column < product.shape[1]:
            product[row, column] = narrow(total, out.dtype)

    return batched_matmul


KERNEL = CudaKernel(make, TILES)
build = KERNEL.build
