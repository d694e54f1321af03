"""The CUDA ladder up to tiles in registers, the step with tiles of warps, and the best step for each dtype.

The steps with 128-bit loads, with tensor cores and with products of warpgroups have files of their own.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import Block, CudaKernel, Kernel, inlined, narrow, sum_type, widen
from gpuexplore.kernels.register_tiles.steps import matrix_kernel
from gpuexplore.kernels.register_tiles.tiling import Tiling
from gpuexplore.operations.matmul import (
    ELEMENT_PER_THREAD,
    ON_TENSOR_CORES,
    REGISTER_TILES,
    ROWS_ALONG_X,
    SQUARE_TILES,
    THREAD_TILE,
    WARP_THREAD_TILE,
    WARP_TILES,
)
from gpuexplore.operations.matmul.numba_cuda_tensorcore import KERNEL as TENSORCORE

DEPTH = 8  # terms of a tile of the steps with tiles in registers


def _make_naive(dtype: DType, block: Block) -> Kernel:
    """Return the first step: one thread per element, and neighbouring threads in different rows.

    A warp reads 32 rows of A and writes 32 rows of the product at a time: 32 transactions where 1 to 4 would do.
    """
    kind = sum_type(dtype)

    def matmul(a, b, out):
        row, column = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            total = kind(0)
            for term in range(a.shape[1]):
                total += widen(a[row, term]) * widen(b[term, column])
            out[row, column] = narrow(total, out.dtype)

    return matmul


def _make_coalesced(dtype: DType, block: Block) -> Kernel:
    """Return the second step: one thread per element, and neighbouring threads in neighbouring columns.

    A warp reads one element of A for all its threads and 32 neighbours of B, and writes 32 neighbours: whole
    transactions.
    """
    kind = sum_type(dtype)

    def matmul(a, b, out):
        column, row = cuda.grid(2)
        if row < out.shape[0] and column < out.shape[1]:
            total = kind(0)
            for term in range(a.shape[1]):
                total += widen(a[row, term]) * widen(b[term, column])
            out[row, column] = narrow(total, out.dtype)

    return matmul


def _make_shared(dtype: DType, block: Block) -> Kernel:
    """Return the third step: a block copies tiles of A and B to shared memory and uses each element many times.

    Global memory is read once for a tile's width of multiply-adds, 16 times less with blocks of 16 x 16. Threads
    outside the matrices load zeros and store nothing.
    """
    kind = sum_type(dtype)
    tile = block[0]

    def matmul(a, b, out):
        tile_a = cuda.shared.array((tile, tile), kind)
        tile_b = cuda.shared.array((tile, tile), kind)  # a line of its own: the simulator names arrays by their line
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = kind(0)
        for start in range(0, a.shape[1], tile):
            p = start + x
            q = start + y
            tile_a[y, x] = widen(a[row, p]) if row < a.shape[0] and p < a.shape[1] else kind(0)
            tile_b[y, x] = widen(b[q, column]) if q < b.shape[0] and column < b.shape[1] else kind(0)
            cuda.syncthreads()
            for term in range(tile):
                total += tile_a[y, term] * tile_b[term, x]
            cuda.syncthreads()
        if row < out.shape[0] and column < out.shape[1]:
            out[row, column] = narrow(total, out.dtype)

    return matmul


def _tile_filler(rows: int, columns: int, threads: int) -> Any:
    """Return a device function that copies tiles of A (transposed) and B to shared memory, zeros beyond the matrix."""
    loads_a = rows * DEPTH // threads
    loads_b = columns * DEPTH // threads

    @inlined
    def fill(tile_a, tile_b, a, b, thread, top, left, start):
        for load in range(loads_a):
            row = (thread + load * threads) // DEPTH
            p = (thread + load * threads) % DEPTH
            inside = top + row < a.shape[0] and start + p < a.shape[1]
            tile_a[p, row] = widen(a[top + row, start + p]) if inside else tile_a.dtype.type(0)
        for load in range(loads_b):
            q = (thread + load * threads) // columns
            column = (thread + load * threads) % columns
            inside = start + q < b.shape[0] and left + column < b.shape[1]
            tile_b[q, column] = widen(b[start + q, left + column]) if inside else tile_b.dtype.type(0)

    return fill


def _tile_storer(width: int, height: int) -> Any:
    """Return a device function that stores a thread's sums where they are inside the output."""

    @inlined
    def store(out, sums, row, column):
        m_left = out.shape[0] - row
        n_left = out.shape[1] - column
        for i in range(THREAD_TILE):
            for j in range(THREAD_TILE):
                if i * height < m_left and j * width < n_left:
                    out[row + i * height, column + j * width] = narrow(sums[i, j], out.dtype)

    return store


def _make_register(dtype: DType, block: Block) -> Kernel:
    """Return the fourth step: each thread keeps 8 x 8 sums in registers.

    For every 16 elements a thread reads from shared memory it does 64 multiply-adds, eight times as many for each as a
    thread with one sum. Its rows and columns are a block's width apart, so that the threads of a warp read neighbours.
    """
    kind = sum_type(dtype)
    width, height = block
    columns = THREAD_TILE * width
    rows = THREAD_TILE * height
    threads = width * height
    padded = rows + DEPTH // 2  # so that 8 terms of 4 rows, which a warp stores at once, fall into different banks
    fill = _tile_filler(rows, columns, threads)
    store = _tile_storer(width, height)

    def matmul(a, b, out):
        tile_a = cuda.shared.array((DEPTH, padded), kind)  # transposed
        tile_b = cuda.shared.array((DEPTH, columns), kind)
        sums = cuda.local.array((THREAD_TILE, THREAD_TILE), kind)
        a_column = cuda.local.array(THREAD_TILE, kind)
        b_row = cuda.local.array(THREAD_TILE, kind)
        x = cuda.threadIdx.x
        y = cuda.threadIdx.y
        thread = (y * width + x) & (threads - 1)  # & says that it is not negative
        top = cuda.blockIdx.y * rows
        left = cuda.blockIdx.x * columns
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


def warp_tiling(dtype: DType, block: Block) -> tuple[Tiling, int]:
    """Return how a block divides its tile, and how many such tiles below each other it computes."""
    rows, columns = WARP_THREAD_TILE
    passes = 2 if dtype.name == "fp64" else 1
    return Tiling(
        dtype, block, columns=columns * block[0], depth=DEPTH, thread_rows=rows // passes, thread_columns=columns
    ), passes


def _make_warptile(dtype: DType, block: Block) -> Kernel:
    """Return the sixth step: each warp has a tile of 64 x 64 sums, and each of its threads 16 x 8 of them.

    For every 6 vectors that a thread reads from shared memory it does 128 multiply-adds, where 8 x 8 sums take 4 for
    64; what a step costs besides, offsets, barrier and branch, is shared by twice as many. A thread has nearly all the
    registers there are, so only two warps share a scheduler: the loads of the next terms have to go out among the
    multiply-adds of these, as the compiler orders them. 128 sums in fp64 would take more registers than a thread has:
    there a block does the upper half of its tile first, then the lower.
    """
    return matrix_kernel(*warp_tiling(dtype, block))


NAIVE = CudaKernel(_make_naive, ROWS_ALONG_X)
COALESCED = CudaKernel(_make_coalesced, ELEMENT_PER_THREAD)
SHARED = CudaKernel(_make_shared, SQUARE_TILES)
REGISTER = CudaKernel(
    _make_register, REGISTER_TILES, resident_threads=lambda dtype: 256 if dtype.name == "fp64" else 384
)
WARPTILE = CudaKernel(_make_warptile, WARP_TILES)


def _step_for(dtype: DType) -> CudaKernel:
    """Return the best step of the ladder: tensor cores where they take the dtype, else warp tiles."""
    return TENSORCORE if dtype.name in ON_TENSOR_CORES else WARPTILE


KERNEL = CudaKernel(
    lambda dtype, block: _step_for(dtype).make(dtype, block),
    WARP_TILES,
    resident_threads=lambda dtype: _step_for(dtype).resident_threads(dtype),
    dynamic_shared_bytes=lambda dtype, block: _step_for(dtype).dynamic_shared_bytes(dtype, block),
)
