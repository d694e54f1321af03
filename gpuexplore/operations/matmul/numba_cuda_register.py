"""The fourth step of the ladder: each thread keeps 8 x 8 sums in registers.

For every 16 elements a thread reads from shared memory it does 64 multiply-adds, eight times as many for each as a
thread with one sum. Its rows and columns are a block's width apart, so that the threads of a warp read neighbours.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_formats import narrow, widen
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.geometry import Block
from gpuexplore.operations.matmul import REGISTER_TILES, THREAD_TILE

DEPTH = 8  # terms of a tile


def tile_filler(rows: int, columns: int, threads: int) -> Any:
    """Return a device function that copies tiles of A (transposed) and B to shared memory, zeros beyond the matrix."""
    loads_a, loads_b = rows * DEPTH // threads, columns * DEPTH // threads

    @inlined
    def fill(tile_a, tile_b, a, b, thread, top, left, start):
        for load in range(loads_a):
            row, p = (thread + load * threads) // DEPTH, (thread + load * threads) % DEPTH
            inside = top + row < a.shape[0] and start + p < a.shape[1]
            tile_a[p, row] = widen(a[top + row, start + p]) if inside else tile_a.dtype.type(0)
        for load in range(loads_b):
            q, column = (thread + load * threads) // columns, (thread + load * threads) % columns
            inside = start + q < b.shape[0] and left + column < b.shape[1]
            tile_b[q, column] = widen(b[start + q, left + column]) if inside else tile_b.dtype.type(0)

    return fill


def tile_storer(width: int, height: int) -> Any:
    """Return a device function that stores a thread's sums where they are inside the output."""

    @inlined
    def store(out, sums, row, column):
        m_left, n_left = out.shape[0] - row, out.shape[1] - column
        for i in range(THREAD_TILE):
            for j in range(THREAD_TILE):
                if i * height < m_left and j * width < n_left:
                    out[row + i * height, column + j * width] = narrow(sums[i, j], out.dtype)

    return store


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    kind, width, height = sum_type(dtype), block[0], block[1]
    columns, rows, threads = THREAD_TILE * width, THREAD_TILE * height, width * height
    padded = rows + DEPTH // 2  # so that 8 terms of 4 rows, which a warp stores at once, fall into different banks
    fill, store = tile_filler(rows, columns, threads), tile_storer(width, height)

    def matmul(a, b, out):
        tile_a = cuda.shared.array((DEPTH, padded), kind)  # transposed
        tile_b = cuda.shared.array((DEPTH, columns), kind)
        sums = cuda.local.array((THREAD_TILE, THREAD_TILE), kind)
        a_column = cuda.local.array(THREAD_TILE, kind)
        b_row = cuda.local.array(THREAD_TILE, kind)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        thread = (y * width + x) & (threads - 1)  # & says that it is not negative
        top, left = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        for i in range(THREAD_TILE):
            for j in range(THREAD_TILE):
                sums[i, j] = kind(0)
        for start in range(0, a.shape[1], DEPTH):
            fill(tile_a, tile_b, a, b, thread, top, left, start)
            cuda.syncthreads()
            for term in range(DEPTH):
                for i in range(THREAD_TILE):
                    a_column[i] = tile_a[term, y + i * height]
                    b_row[i] = tile_b[term, x + i * width]
                for i in range(THREAD_TILE):
                    for j in range(THREAD_TILE):
                        sums[i, j] += a_column[i] * b_row[j]
            cuda.syncthreads()
        store(out, sums, top + y, left + x)

    return matmul


KERNEL = CudaKernel(make, REGISTER_TILES, resident_threads=lambda dtype: 256 if dtype.name == "fp64" else 384)
build = KERNEL.build
