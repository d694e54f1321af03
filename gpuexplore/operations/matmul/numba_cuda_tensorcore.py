"""The last step of the ladder: warps multiply 16 x 8 tiles on the tensor cores, and tiles arrive while they do.

Four pairs of tiles are in shared memory, more than a kernel gets that does not ask: one is multiplied, three are on
their way without passing through registers. Each warp keeps 64 x 64 sums: 8 loads for 32 products. The 16-byte
chunks of a line of a tile are swizzled by the line, so that the eight that are loaded together lie in different banks.
As long as whole tiles follow, the loop takes four at a time, so that all their offsets are constants; rows and columns
beyond the matrices repeat the last, as their sums are not stored. The rest is looked at chunk by chunk.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.intrinsics.tensor_cores import accumulator_storer, fragment_loader, multiplier, number_loader
from gpuexplore.kernels.intrinsics.vectors import (
    ALIGNMENT,
    VECTOR_BYTES,
    clear,
    commit_copies,
    copy_vector_async,
    materialize,
    read,
    vector_length,
    vectors_copier,
    wait_for_copies,
    write,
)
from gpuexplore.operations.matmul import THREAD_TILE, WARP_TILES, warp_tile

STAGES = 4
IN_FLIGHT = STAGES - 2  # groups of copies that may be on their way when a tile has to have arrived
CHUNKS = 4  # of 16 bytes in a line of a tile of A: two products deep
WARP_TILE = 64  # rows and columns of a warp's sums
M_TILES = WARP_TILE // 16
N_TILES = WARP_TILE // 8  # products of a warp
SUMS = M_TILES * N_TILES * 4  # of a lane
FRAGMENTS = M_TILES * 4  # registers of a lane for those of A, and for those of B
LDMATRIX_ADDRESSES = 4  # of a lane in a line of B, chunks apart


@dataclass(frozen=True)
class StagedTiles:
    """How a block's tiles lie in shared memory: pairs of A's, `rows` lines of CHUNKS, and B's, `depth` lines.

    Attributes:
        rows: of A in a tile, which are those of the block's sums.
        columns: of B in a tile.
        threads: of a block.
        vector: elements of a chunk of 16 bytes.
    """

    rows: int
    columns: int
    threads: int
    vector: int

    @property
    def depth(self) -> int:
        """Terms of a tile."""
        return CHUNKS * self.vector

    @property
    def b_chunks(self) -> int:
        """Chunks of a line of a tile of B."""
        return self.columns // self.vector

    @property
    def size_a(self) -> int:
        """Elements of a tile of A, behind which its B lies."""
        return self.rows * self.depth

    @property
    def size(self) -> int:
        """Elements of a pair."""
        return (self.rows + self.columns) * self.depth

    @property
    def loads(self) -> tuple[int, int]:
        """Copies of 16 bytes that each thread starts for a tile of A and for one of B."""
        return self.rows * CHUNKS // self.threads, self.depth * self.b_chunks // self.threads

    @property
    def swizzle_b(self) -> int:
        """Halves of a chunk by which a line of B is swizzled further than the line above."""
        return 2 if self.vector == 8 else 4


def edge_copier(lines: int, line_chunks: int, threads: int, vector: int, swizzle: int) -> Any:
    """Return a device function that starts to copy a tile of `lines` lines of chunks, zeros beyond the matrix.

    `swizzle`: halves of a chunk by which a line is swizzled further than the line above.
    """
    swizzle_period = min(line_chunks, 8)
    at_once = threads // line_chunks

    @inlined
    def copy(tiles, first, thread, source, lengths, top, left):
        height, width = lengths
        if width % vector == 0:
            line = thread // line_chunks
            chunk = thread % line_chunks
            column = left + chunk * vector
            swizzled = chunk ^ line * swizzle // 2 % swizzle_period
            for further in range(0, lines, at_once):
                row = top + line + further
                inside = row < height and column < width
                start = row * width + column if inside else 0
                copy_vector_async(
                    tiles, first + ((line + further) * line_chunks + swizzled) * vector, source, start, inside
                )
        else:
            for element in range(thread, lines * line_chunks * vector, threads):
                line = element // (line_chunks * vector)
                column = element % (line_chunks * vector)
                inside = top + line < height and left + column < width
                tile_chunk = line * line_chunks + (column // vector ^ line * swizzle // 2 % swizzle_period)
                start = (top + line) * width + left + column
                value = read(source, start) if inside else tiles.dtype.type(0)
                write(tiles, first + tile_chunk * vector + column % vector, value)

    return copy


def half_multiplier(tiling: StagedTiles, name: str, half: int) -> Any:
    """Return a device function that adds the product of a half of a pair of tiles to the sums of a warp.

    `a_offsets` and `b_offsets`: from where the lane loads in the tiles (see `fragment_offset_finder`), which start at
    `first`.
    """
    vector = tiling.vector
    size_a = tiling.size_a
    line = tiling.columns
    multiply_add = multiplier(name, M_TILES, N_TILES)
    load_a = fragment_loader([(half, i * 16 * CHUNKS * vector) for i in range(M_TILES)], transposed=False)
    if vector == 8:
        load_b = fragment_loader([(i, size_a + half * 16 * line) for i in range(LDMATRIX_ADDRESSES)], transposed=True)
    else:
        load_b = number_loader(  # TF32 has no transposing load
            [
                (
                    j % LDMATRIX_ADDRESSES,
                    size_a + (half * 8 + each * 4) * line + j // LDMATRIX_ADDRESSES * LDMATRIX_ADDRESSES * 8,
                )
                for j in range(N_TILES)
                for each in range(2)
            ]
        )

    @inlined
    def multiply(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, first):
        load_b(b_fragments, tiles, b_offsets, first)
        load_a(a_fragments, tiles, a_offsets, first)
        multiply_add(sums, 0, a_fragments, 0, b_fragments, 0)

    return multiply


def tile_multiplier(tiling: StagedTiles, name: str) -> Any:
    """Return a device function that adds the product of a pair of tiles to the sums of a warp."""
    lower, upper = (half_multiplier(tiling, name, half) for half in range(2))

    @inlined
    def multiply(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, first):
        lower(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, first)
        upper(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, first)

    return multiply


def fragment_offset_finder(vector: int, b_chunks: int) -> Any:
    """Return a device function that finds where in a pair of tiles a lane loads its rows of fragments from."""
    halves = vector == 8

    @inlined
    def find(a_offsets, b_offsets, lane, row, column):
        for half in range(2):
            chunk = half * 2 + lane // 16 ^ lane // 2 % CHUNKS
            a_offsets[half] = materialize(((row + lane % 16) * CHUNKS + chunk) * vector)
        for i in range(LDMATRIX_ADDRESSES):
            if halves:
                chunk = column // 8 + i * 2 + lane // 16 ^ lane % 8
                b_offsets[i] = materialize((lane % 16 * b_chunks + chunk) * vector)
            else:
                at = column + i * 8 + lane // 4
                chunk = at // 4 ^ lane % 4 * 2
                b_offsets[i] = materialize((lane % 4 * b_chunks + chunk) * vector + at % 4)

    return find


def _edge_pair_copier(tiling: StagedTiles) -> Any:
    """Return a device function that starts to copy a pair of tiles, from term `term` on, and closes the group."""
    threads = tiling.threads
    vector = tiling.vector
    size_a = tiling.size_a
    copy_a = edge_copier(tiling.rows, CHUNKS, threads, vector, swizzle=1)
    copy_b = edge_copier(tiling.depth, tiling.b_chunks, threads, vector, swizzle=tiling.swizzle_b)

    @inlined
    def copy(tiles, first, thread, a, b, top, left, term):
        copy_a(tiles, first, thread, a, a.shape, top, term)
        copy_b(tiles, first + size_a, thread, b, b.shape, term, left)
        commit_copies()

    return copy


def _start_finder(tiling: StagedTiles) -> Any:
    """Return a device function that finds where a thread's copies start, and returns their first offsets in a pair."""
    vector = tiling.vector
    b_chunks = tiling.b_chunks
    size_a = tiling.size_a
    swizzle_b = tiling.swizzle_b
    a_loads, b_loads = tiling.loads
    a_lines = tiling.threads // CHUNKS
    b_lines = tiling.threads // b_chunks

    @inlined
    def find(starts_a, starts_b, thread, top, left, a, b):
        k, n = b.shape
        line_a = thread // CHUNKS
        chunk_a = thread % CHUNKS
        line_b = thread // b_chunks
        chunk_b = thread % b_chunks
        for load in range(a_loads):
            row = min(top + line_a + load * a_lines, a.shape[0] - 1)
            starts_a[load] = materialize(row * k + chunk_a * vector)
        column = min(left + chunk_b * vector, n - vector)
        for load in range(b_loads):
            starts_b[load] = materialize((line_b + load * b_lines) * n + column)
        into_a = materialize((line_a * CHUNKS + (chunk_a ^ line_a // 2 % CHUNKS)) * vector)
        into_b = materialize(size_a + (line_b * b_chunks + (chunk_b ^ line_b * swizzle_b // 2 % 8)) * vector)
        return into_a, into_b

    return find


def _whole_tiles(tiling: StagedTiles, multiply: Any) -> Any:
    """Return a device function that goes along the terms where all tiles are whole, and looks at no bounds.

    `start` and `end`: terms of the first pair that it starts to copy, and of the first that it does not.
    """
    size = tiling.size
    depth = tiling.depth
    a_loads, b_loads = tiling.loads
    apart = tiling.threads * tiling.vector
    copy_a = vectors_copier(a_loads, apart)
    copy_b = vectors_copier(b_loads, apart)

    def stage(number: int) -> Any:
        """Return the device function for one of the pairs that the loop takes at a time."""
        now = number * size
        free = (number + STAGES - 1) % STAGES * size
        further = number * depth

        @inlined
        def step(registers, copies, term):
            sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets = registers
            a, b, starts_a, starts_b, into_a, into_b = copies
            wait_for_copies(IN_FLIGHT)
            cuda.syncthreads()
            copy_a(tiles, into_a + free, a, starts_a, term + further)
            copy_b(tiles, into_b + free, b, starts_b, (term + further) * b.shape[1])
            commit_copies()
            multiply(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, now)

        return step

    first, second, third, last = map(stage, range(STAGES))

    @inlined
    def main_loop(registers, copies, start, end):
        for term in range(start, end, STAGES * depth):
            first(registers, copies, term)
            second(registers, copies, term)
            third(registers, copies, term)
            last(registers, copies, term)

    return main_loop


def thread_finder(tiling: StagedTiles, block: Block) -> Any:
    """Return a device function that gives a thread's number, its lane, and where in the block its warp's sums start."""
    width, _ = block
    last = tiling.threads - 1
    warps_across = tiling.columns // WARP_TILE

    @inlined
    def find():
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & last  # & says that it is not negative
        warp = thread // WARP
        return thread, thread % WARP, warp // warps_across * WARP_TILE, warp % warps_across * WARP_TILE

    return find


def block_product(dtype: DType, block: Block) -> tuple[Any, Any]:
    """Return two device functions: one adds a block's tile of (m, k) @ (k, n) to its threads' sums, one stores them.

    Arguments of the first are the sums, in an array of SUMS of each thread, and the matrices; of the second `out`,
    (m, n), and the sums.
    """
    element = dtype.storage
    width, height = block
    vector = vector_length(element)
    threads = width * height
    word = np.float32 if dtype.name == "tf32" else np.uint32
    rows, columns = warp_tile(block)
    tiling = StagedTiles(rows, columns, threads, vector)
    depth = tiling.depth
    size = tiling.size
    a_loads, b_loads = tiling.loads
    copy_pair = _edge_pair_copier(tiling)
    find_starts = _start_finder(tiling)
    find_thread = thread_finder(tiling, block)
    multiply = tile_multiplier(tiling, dtype.name)
    main_loop = _whole_tiles(tiling, multiply)
    find_fragment_offsets = fragment_offset_finder(vector, tiling.b_chunks)
    store_sums = accumulator_storer(M_TILES, N_TILES)

    @inlined
    def add_up(sums, a, b):
        tiles = cuda.shared.array(0, element, ALIGNMENT)
        a_fragments = cuda.local.array(FRAGMENTS, np.uint32)
        b_fragments = cuda.local.array(FRAGMENTS, word)
        a_offsets = cuda.local.array(2, np.int32)
        b_offsets = cuda.local.array(LDMATRIX_ADDRESSES, np.int32)
        starts_a = cuda.local.array(a_loads, np.uint32)
        starts_b = cuda.local.array(b_loads, np.uint32)
        thread, lane, row, column = find_thread()
        k, n = b.shape
        top = cuda.blockIdx.y * rows
        left = cuda.blockIdx.x * columns
        find_fragment_offsets(a_offsets, b_offsets, lane, row, column)
        clear(sums, SUMS)
        for ahead in range(STAGES - 1):
            copy_pair(tiles, ahead * size, thread, a, b, top, left, ahead * depth)
        done = 0
        if k % vector == 0 and n % vector == 0:
            into_a, into_b = find_starts(starts_a, starts_b, thread, top, left, a, b)
            done = max(k // depth - STAGES + 1, 0) // STAGES * STAGES
            start = (STAGES - 1) * depth
            end = (STAGES - 1 + done) * depth
            registers = (sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets)
            main_loop(registers, (a, b, starts_a, starts_b, into_a, into_b), start, end)
        again = materialize(thread) & (threads - 1)  # so that nothing computed before is kept for the edges
        for tile in range(done, (k + depth - 1) // depth):
            wait_for_copies(IN_FLIGHT)
            cuda.syncthreads()
            ahead = tile + STAGES - 1
            copy_pair(tiles, ahead % STAGES * size, again, a, b, top, left, ahead * depth)
            multiply(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, tile % STAGES * size)

    @inlined
    def store(out, sums):
        _, lane, row, column = find_thread()
        n = out.shape[1]
        row += cuda.blockIdx.y * rows + lane // 4
        column += cuda.blockIdx.x * columns + lane % 4 * 2
        store_sums(out, row * n + column, sums, n, out.shape[0] - row, n - column)

    return add_up, store


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    add_up, store = block_product(dtype, block)
    kind = sum_type(dtype)

    def matmul(a, b, out):
        sums = cuda.local.array(SUMS, kind)
        add_up(sums, a, b)
        store(out, sums)

    return matmul


def shared_bytes(_: DType, block: Block) -> int:
    """Return the bytes of all tiles: a line of A and one column of B for each row and column of a block's sums."""
    width, height = block
    return STAGES * CHUNKS * VECTOR_BYTES * THREAD_TILE * (2 * height + width)


KERNEL = CudaKernel(_make, WARP_TILES, resident_threads=lambda _: 256, dynamic_shared_bytes=shared_bytes)
