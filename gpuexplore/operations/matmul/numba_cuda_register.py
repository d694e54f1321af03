"""The fourth step of the ladder: each thread keeps 8 x 8 sums in registers.

For every 16 elements a thread reads from shared memory it does 64 multiply-adds, 32 times as many for each as a
thread with one sum. Its rows and columns are a block's width apart, so that the threads of a warp read neighbours.
"""

from numba import cuda

from gpuexplore.backends.formats.numba_cuda import narrow, widen
from gpuexplore.dtypes import DType
from gpuexplore.operations.cuda_kernel import CudaKernel, Kernel, sum_type
from gpuexplore.operations.geometry import Block
from gpuexplore.operations.matmul.geometry import EACH, REGISTER_TILES

DEPTH = 8  # terms of a tile


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    kind, width, height = sum_type(dtype), block[0], block[1]
    columns, rows, threads = EACH * width, EACH * height, width * height
    loads_a, loads_b = rows * DEPTH // threads, columns * DEPTH // threads
    padded = rows + 1  # so that the elements of a column of A, a line of it here, fall into different banks

    def matmul(a, b, out):
        tile_a = cuda.shared.array((DEPTH, padded), kind)  # transposed
        tile_b = cuda.shared.array((DEPTH, columns), kind)
        sums = cuda.local.array((EACH, EACH), kind)
        a_column = cuda.local.array(EACH, kind)
        b_row = cuda.local.array(EACH, kind)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        thread = (y * width + x) & (threads - 1)  # & says that it is not negative
        top, left = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        m, terms, n = a.shape[0], a.shape[1], b.shape[1]
        for i in range(EACH):
            for j in range(EACH):
                sums[i, j] = kind(0)
        for start in range(0, terms, DEPTH):
            for load in range(loads_a):
                row, p = (thread + load * threads) // DEPTH, (thread + load * threads) % DEPTH
                inside = top + row < m and start + p < terms
                tile_a[p, row] = widen(a[top + row, start + p]) if inside else kind(0)
            for load in range(loads_b):
                q, column = (thread + load * threads) // columns, (thread + load * threads) % columns
                inside = start + q < terms and left + column < n
                tile_b[q, column] = widen(b[start + q, left + column]) if inside else kind(0)
            cuda.syncthreads()
            for term in range(DEPTH):
                for i in range(EACH):
                    a_column[i] = tile_a[term, y + i * height]
                    b_row[i] = tile_b[term, x + i * width]
                for i in range(EACH):
                    for j in range(EACH):
                        sums[i, j] += a_column[i] * b_row[j]
            cuda.syncthreads()
        for i in range(EACH):
            for j in range(EACH):
                row, column = top + y + i * height, left + x + j * width
                if row < m and column < n:
                    out[row, column] = narrow(sums[i, j], out.dtype)

    return matmul


KERNEL = CudaKernel(make, REGISTER_TILES, resident_threads=lambda dtype: 256 if dtype.name == "fp64" else 384)
build = KERNEL.build
