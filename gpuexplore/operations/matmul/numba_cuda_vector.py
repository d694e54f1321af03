"""The fifth step of the ladder: 128-bit loads, and the next tiles on their way while these are multiplied.

A quarter of the load instructions, and one barrier per step instead of two: there are two pairs of tiles in shared
memory, the one that is read and the one that is filled. A warp's threads stand 8 wide and 4 high, so that all of
them together read 12 different vectors for 2048 multiply-adds.
"""

from typing import Any

from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.formats.numba_cuda import narrow, widen
from gpuexplore.kernels.geometry import WARP, Block
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, load_vector, read, store_vector, vector_length, write
from gpuexplore.operations.matmul import REGISTER_TILES, THREAD_TILE

WARP_WIDTH, WARP_HEIGHT = 8, 4


@inlined
def load_or_zeros(staged: Any, source: Any, row: Any, column: Any) -> None:
    """Load elements of a row into registers, zeros beyond the matrix."""
    length, width = staged.size, source.shape[1]
    start, count = row * width + column, width - column if row < source.shape[0] else 0
    if count >= length and width % length == 0:
        load_vector(staged, 0, source, start)
    else:
        for i in range(length):
            staged[i] = read(source, start + i) if i < count else staged.dtype.type(0)


def tile_multiplier(kind: Any, block: Block, depth: int, padded: int) -> Any:
    """Return a device function that adds the product of the tiles in place `now` to a thread's sums."""
    (width, height), wide, together = block, vector_length(kind), min(4, depth)  # LLVM unrolls a loop that is short

    @inlined
    def multiply(sums, a_column, b_row, tile_a, tile_b, now, x, y):
        for first in range(now * depth, now * depth + depth, together):
            for term in range(together):
                for i in range(0, THREAD_TILE, wide):
                    load_vector(a_column, i, tile_a, (first + term) * padded + i * height + y)
                    load_vector(b_row, i, tile_b, (first + term) * THREAD_TILE * width + i * width + x)
                for i in range(THREAD_TILE):
                    for j in range(THREAD_TILE):
                        sums[i, j] += a_column[i] * b_row[j]

    return multiply


def tile_storer(kind: Any, storage: Any, block: Block) -> Any:
    """Return a device function that stores a thread's sums where they are inside the output."""
    (width, height), wide, keeps_format = block, vector_length(kind), storage is kind

    @inlined
    def store(out, sums, row, column):
        n, below, beside = out.shape[1], out.shape[0] - row, out.shape[1] - column
        for i in range(THREAD_TILE):
            down = i // wide * wide * height + i % wide
            for j in range(0, THREAD_TILE, wide):
                right, place = j * width, (row + down) * n + column + j * width
                if keeps_format and n % wide == 0:
                    if down < below and right < beside:
                        store_vector(out, place, sums, i * THREAD_TILE + j)
                else:
                    for each in range(wide):
                        if down < below and right + each < beside:
                            write(out, place + each, narrow(sums[i, j + each], out.dtype))

    return store


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    kind, storage, width, height = sum_type(dtype), dtype.storage.type, *block
    vector, wide = vector_length(storage), vector_length(kind)  # elements that a load brings, sums that one holds
    rows, columns = THREAD_TILE * height, THREAD_TILE * width
    depth = vector * width // THREAD_TILE  # each thread loads one vector of both
    padded = rows + 4  # so that the elements of a row of A, a column of its tile, fall into different banks
    a_across, b_across, warps_across = depth // vector, columns // vector, width // WARP_WIDTH
    multiply, store = tile_multiplier(kind, block, depth, padded), tile_storer(kind, storage, block)

    def matmul(a, b, out):
        tile_a = cuda.shared.array((2, depth, padded), kind, ALIGNMENT)  # transposed
        tile_b = cuda.shared.array((2, depth, columns), kind, ALIGNMENT)
        sums = cuda.local.array((THREAD_TILE, THREAD_TILE), kind, ALIGNMENT)
        a_column = cuda.local.array(THREAD_TILE, kind, ALIGNMENT)
        b_row = cuda.local.array(THREAD_TILE, kind, ALIGNMENT)
        staged_a = cuda.local.array(vector, storage, ALIGNMENT)
        staged_b = cuda.local.array(vector, storage, ALIGNMENT)
        top, left = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & (width * height - 1)  # & says that it is not negative
        warp, lane = thread // WARP, thread % WARP
        x = (warp % warps_across * WARP_WIDTH + lane % WARP_WIDTH) * wide
        y = (warp // warps_across * WARP_HEIGHT + lane // WARP_WIDTH) * wide
        a_row, a_term = thread // a_across, thread % a_across * vector
        b_term, b_column = thread // b_across, thread % b_across * vector
        for i in range(THREAD_TILE):
            for j in range(THREAD_TILE):
                sums[i, j] = kind(0)
        now = 1
        for start in range(-depth, a.shape[1], depth):
            load_or_zeros(staged_a, a, top + a_row, start + depth + a_term)
            load_or_zeros(staged_b, b, start + depth + b_term, left + b_column)
            if start >= 0:
                multiply(sums, a_column, b_row, tile_a, tile_b, now, x, y)
            now = 1 - now
            for i in range(vector):
                tile_a[now, a_term + i, a_row] = widen(staged_a[i])
                tile_b[now, b_term, b_column + i] = widen(staged_b[i])
            cuda.syncthreads()
        store(out, sums, top + y, left + x)

    return matmul


KERNEL = CudaKernel(make, REGISTER_TILES, resident_threads=lambda dtype: 256 if dtype.name == "fp64" else 384)
build = KERNEL.build
