"""The fifth step of the ladder: 128-bit loads, and the next tiles on their way while these are multiplied.

A quarter of the load instructions, and one barrier per step instead of two: there are two pairs of tiles in shared
memory, the one that is read and the one that is filled. A warp's threads stand 8 wide and 4 high, so that all of
them together read 12 different vectors for 2048 multiply-adds. The terms of a tile are written out, where LLVM keeps
a loop, and blocks that lie inside the matrices look at no bounds: most instructions left are multiply-adds.
"""

from typing import Any

from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, narrow, sum_type, widen
from gpuexplore.kernels.intrinsics.tensor_cores import Lines, outer_adder
from gpuexplore.kernels.intrinsics.vectors import (
    ALIGNMENT,
    load_vector,
    materialize,
    read,
    store_vector,
    vector_length,
    write,
)
from gpuexplore.kernels.register_tiles.steps import adder_in_loop
from gpuexplore.operations.matmul import REGISTER_TILES, THREAD_TILE

WARP_WIDTH = 8  # of threads, four lines of them


@inlined
def _load_or_zeros(staged: Any, source: Any, row: Any, column: Any) -> None:
    """Load elements of a row into registers, zeros beyond the matrix."""
    length = staged.size
    width = source.shape[1]
    start = row * width + column
    count = width - column if row < source.shape[0] else 0
    if count >= length and width % length == 0:
        load_vector(staged, 0, source, start)
    else:
        for i in range(length):
            staged[i] = read(source, start + i) if i < count else staged.dtype.type(0)


def _tile_multipliers(kind: Any, block: Block, depth: int, padded: int) -> tuple[Any, Any]:
    """Return device functions that add the product of two tiles to a thread's sums: written out, and in a loop.

    Their last two arguments are where the thread's first vectors lie, in A's tile and in B's.
    """
    width, height = block
    shared_vector = vector_length(kind)
    rows = Lines(THREAD_TILE, shared_vector, shared_vector * height, padded)
    columns = Lines(THREAD_TILE, shared_vector, shared_vector * width, THREAD_TILE * width)
    return outer_adder(depth, rows, columns), adder_in_loop(depth, rows, columns)


def _tile_filler(vector: int, padded: int) -> Any:
    """Return a device function that puts a thread's staged vectors into the tiles, that of A as a column."""

    @inlined
    def fill(tile_a, tile_b, staged_a, staged_b, into_a, into_b):
        for i in range(vector):
            write(tile_a, into_a + i * padded, widen(staged_a[i]))
            write(tile_b, into_b + i, widen(staged_b[i]))

    return fill


def _tile_storer(kind: Any, storage: Any, block: Block) -> Any:
    """Return a device function that stores a thread's sums where they are inside the output."""
    width, height = block
    shared_vector = vector_length(kind)
    keeps_format = storage is kind

    @inlined
    def store(out, sums, row, column):
        n = out.shape[1]
        m_left = out.shape[0] - row
        n_left = out.shape[1] - column
        for i in range(THREAD_TILE):
            lower = i // shared_vector * shared_vector * height + i % shared_vector
            for j in range(0, THREAD_TILE, shared_vector):
                right = j * width
                offset = (row + lower) * n + column + j * width
                if keeps_format and n % shared_vector == 0:
                    if lower < m_left and right < n_left:
                        store_vector(out, offset, sums, i * THREAD_TILE + j)
                else:
                    for each in range(shared_vector):
                        if lower < m_left and right + each < n_left:
                            write(out, offset + each, narrow(sums[i, j + each], out.dtype))

    return store


def _whole_tiles(multiply: Any, fill: Any, depth: int, sizes: tuple[int, int]) -> Any:
    """Return a device function that goes along k where all tiles lie inside the matrices, and looks at no bounds."""
    size_a, size_b = sizes

    @inlined
    def main_loop(sums, staged_a, staged_b, tile_a, tile_b, a, b, a_offset, b_offset, into_a, into_b, y, x):
        load_vector(staged_a, 0, a, a_offset)
        load_vector(staged_b, 0, b, b_offset)
        fill(tile_a, tile_b, staged_a, staged_b, into_a, into_b)
        cuda.syncthreads()
        now = 0
        stride = depth * b.shape[1]
        for _ in range(depth, a.shape[1], depth):
            a_offset += depth
            b_offset += stride
            load_vector(staged_a, 0, a, a_offset)
            load_vector(staged_b, 0, b, b_offset)
            multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)
            now = 1 - now
            fill(tile_a, tile_b, staged_a, staged_b, now * size_a + into_a, now * size_b + into_b)
            cuda.syncthreads()
        multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)

    return main_loop


def _edge_tiles(multiply: Any, fill: Any, depth: int, sizes: tuple[int, int]) -> Any:
    """Return a device function that goes along k and puts zeros where tiles leave the matrices."""
    size_a, size_b = sizes

    @inlined
    def main_loop(sums, staged_a, staged_b, tile_a, tile_b, a, b, a_at, b_at, into_a, into_b, y, x):
        row, term_a = a_at
        term_b, column = b_at
        now = 1
        for start in range(-depth, a.shape[1], depth):
            _load_or_zeros(staged_a, a, row, start + depth + term_a)
            _load_or_zeros(staged_b, b, start + depth + term_b, column)
            if start >= 0:
                multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)
            now = 1 - now
            fill(tile_a, tile_b, staged_a, staged_b, now * size_a + into_a, now * size_b + into_b)
            cuda.syncthreads()

    return main_loop


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    kind, storage, width, height = sum_type(dtype), dtype.storage.type, *block
    # elements that a load from device memory brings, and one from shared memory
    vector = vector_length(storage)
    shared_vector = vector_length(kind)
    rows = THREAD_TILE * height
    columns = THREAD_TILE * width
    depth = vector * width // THREAD_TILE  # each thread loads one vector of both
    padded = rows + 4  # so that the elements of a row of A, a column of its tile, fall into different banks
    a_across = depth // vector
    b_across = columns // vector
    warps_across = width // WARP_WIDTH
    multiply, multiply_in_loop = _tile_multipliers(kind, block, depth, padded)
    fill = _tile_filler(vector, padded)
    sizes = (depth * padded, depth * columns)
    store = _tile_storer(kind, storage, block)
    elements_a = 2 * depth * padded
    elements_b = 2 * depth * columns
    go_inside = _whole_tiles(multiply, fill, depth, sizes)
    go_along_edges = _edge_tiles(multiply_in_loop, fill, depth, sizes)

    def matmul(a, b, out):
        tile_a = cuda.shared.array(elements_a, kind, ALIGNMENT)  # transposed
        tile_b = cuda.shared.array(elements_b, kind, ALIGNMENT)
        sums = cuda.local.array((THREAD_TILE, THREAD_TILE), kind, ALIGNMENT)
        staged_a = cuda.local.array(vector, storage, ALIGNMENT)
        staged_b = cuda.local.array(vector, storage, ALIGNMENT)
        top = cuda.blockIdx.y * rows
        left = cuda.blockIdx.x * columns
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & (width * height - 1)  # & says that it is not negative
        warp = thread // WARP
        lane = thread % WARP
        x = (warp % warps_across * WARP_WIDTH + lane % WARP_WIDTH) * shared_vector
        y = (warp // warps_across * 4 + lane // WARP_WIDTH) * shared_vector
        a_row = thread // a_across
        a_term = thread % a_across * vector
        b_term = thread // b_across
        b_column = thread % b_across * vector
        into_a = a_term * padded + a_row
        into_b = b_term * columns + b_column
        for i in range(THREAD_TILE):
            for j in range(THREAD_TILE):
                sums[i, j] = kind(0)
        m = out.shape[0]
        k = a.shape[1]
        n = out.shape[1]
        if top + rows <= m and left + columns <= n and k > 0 and k % depth == 0 and n % vector == 0:
            a_at = (top + a_row) * k + a_term
            b_at = b_term * n + left + b_column
            go_inside(sums, staged_a, staged_b, tile_a, tile_b, a, b, a_at, b_at, into_a, into_b, y, x)
        else:
            a_at = (top + a_row, a_term)
            b_at = (b_term, left + b_column)
            go_along_edges(sums, staged_a, staged_b, tile_a, tile_b, a, b, a_at, b_at, into_a, into_b, y, x)
        store(out, sums, materialize(cuda.blockIdx.y) * rows + y, materialize(cuda.blockIdx.x) * columns + x)

    return matmul


KERNEL = CudaKernel(_make, REGISTER_TILES, resident_threads=lambda dtype: 256 if dtype.name == "fp64" else 384)
