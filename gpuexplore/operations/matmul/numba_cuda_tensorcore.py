"""The last step of the ladder: warps multiply 16 x 8 tiles on the tensor cores, and tiles arrive while they do.

Three pairs of tiles are in shared memory: one is multiplied, two are on their way without passing through
registers. Each warp keeps 64 x 32 sums. The 16-byte chunks of a line of a tile are permuted (turned) by the line, so
that the eight that are loaded together lie in different banks.
"""

from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.formats.numba_cuda import narrow
from gpuexplore.kernels.geometry import WARP, Block
from gpuexplore.kernels.intrinsics.async_copies import commit_copies, copy_vector_async, wait_for_copies
from gpuexplore.kernels.intrinsics.tensor_cores import load_matrices, load_transposed, multiplier
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, read, store_pair, vector_length, write
from gpuexplore.operations.matmul import REGISTER_TILES, THREAD_TILE

STAGES = 3
IN_FLIGHT = STAGES - 2  # groups of copies that may be on their way when a tile has to have arrived
CHUNKS = 4  # of 16 bytes in a line of a tile of A: two products deep
WARP_ROWS, WARP_COLUMNS = 64, 32
DOWN, ACROSS = WARP_ROWS // 16, WARP_COLUMNS // 8  # products of a warp


def tile_copier(lines: int, across: int, threads: int, vector: int, turn: int) -> Any:
    """Return a device function that starts to copy a tile of `lines` of `across` chunks, zeros beyond the matrix."""
    chunks, turns, at_once = lines * across, min(across, 8), threads // across

    @inlined
    def copy_tile(tile, thread, slot, source, top, left):
        if source.shape[1] % vector == 0:
            line, chunk = thread // across, thread % across
            column, turned = left + chunk * vector, chunk ^ line * turn // 2 % turns
            for load in range(chunks // threads):
                row = top + line + load * at_once
                inside = row < source.shape[0] and column < source.shape[1]
                place = slot * chunks + (line + load * at_once) * across + turned
                start = row * source.shape[1] + column if inside else 0
                copy_vector_async(tile, place * vector, source, start, inside)
        else:
            for at in range(thread, chunks * vector, threads):
                line, column = at // (across * vector), at % (across * vector)
                inside = top + line < source.shape[0] and left + column < source.shape[1]
                place = slot * chunks + line * across + (column // vector ^ line * turn // 2 % turns)
                start = (top + line) * source.shape[1] + left + column
                write(tile, place * vector + column % vector, read(source, start) if inside else tile.dtype.type(0))

    return copy_tile


def tile_multiplier(name: str, vector: int, size_a: int, b_chunks: int) -> Any:
    """Return a device function that adds the product of the tiles in place `slot` to the sums of a warp."""
    halves, size_b, multiply_add = vector == 8, CHUNKS * vector * b_chunks, multiplier(name)

    @inlined
    def load_b(part, tile, first, half, column, lane):
        if halves:
            line = first + (half * 16 + lane % 16) * b_chunks
            for j in range(0, ACROSS, 2):
                chunk = column // 8 + j + lane // 16 ^ lane % 8
                load_transposed(part, j * 2, tile, (line + chunk) * vector)
        else:  # TF32 has no transposing load
            line = first + (half * 8 + lane % 4) * b_chunks
            for j in range(ACROSS):
                at = column + j * 8 + lane // 4
                place = (line + (at // 4 ^ lane % 4 * 2)) * 4 + at % 4
                part[j, 0], part[j, 1] = read(tile, place), read(tile, place + 16 * b_chunks)

    @inlined
    def multiply(sums, a_part, b_part, tile_a, tile_b, slot, row, column, lane):
        for half in range(2):
            load_b(b_part, tile_b, slot * size_b, half, column, lane)
            line = slot * size_a + (row + lane % 16) * CHUNKS + (half * 2 + lane // 16 ^ lane // 2 % CHUNKS)
            for i in range(DOWN):
                load_matrices(a_part, 0, tile_a, (line + i * 16 * CHUNKS) * vector)
                for j in range(ACROSS):
                    multiply_add(sums, (i * ACROSS + j) * 4, a_part, 0, b_part, j * 2)

    return multiply


@inlined
def store(out: Any, sums: Any, pair: Any, row: Any, column: Any) -> None:
    """Store a lane's sums, two neighbours at a time, where they are inside the output."""
    n, below, beside = out.shape[1], out.shape[0] - row, out.shape[1] - column
    for i in range(DOWN * 2):
        for j in range(ACROSS):
            place = (row + i * 8) * n + column + j * 8
            pair[0] = narrow(sums[i // 2, j, i % 2 * 2], pair.dtype)
            pair[1] = narrow(sums[i // 2, j, i % 2 * 2 + 1], pair.dtype)
            if i * 8 < below and j * 8 < beside:
                if n % 2 == 0:
                    store_pair(out, place, pair, 0)
                else:
                    write(out, place, pair[0])
                    if j * 8 + 1 < beside:
                        write(out, place + 1, pair[1])


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n)."""
    storage, kind, width, height = dtype.storage.type, sum_type(dtype), *block
    vector, threads = vector_length(storage), width * height
    rows, columns, depth, halves = THREAD_TILE * height, THREAD_TILE * width, CHUNKS * vector, vector == 8
    b_chunks, warps_across, word = columns // vector, columns // WARP_COLUMNS, np.uint32 if halves else np.float32
    elements_a, elements_b = STAGES * rows * depth, STAGES * depth * columns
    copy_a = tile_copier(rows, CHUNKS, threads, vector, turn=1)
    copy_b = tile_copier(depth, b_chunks, threads, vector, turn=2 if halves else 4)
    multiply = tile_multiplier(dtype.name, vector, rows * CHUNKS, b_chunks)

    def matmul(a, b, out):
        tile_a = cuda.shared.array(elements_a, storage, ALIGNMENT)
        tile_b = cuda.shared.array(elements_b, storage, ALIGNMENT)
        sums = cuda.local.array((DOWN, ACROSS, 4), kind)
        a_part = cuda.local.array(4, np.uint32)
        b_part = cuda.local.array((ACROSS, 2), word)
        pair = cuda.local.array(2, storage, ALIGNMENT)
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & (threads - 1)  # & says that it is not negative
        warp, lane = thread // WARP, thread % WARP
        top, left = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        row, column = warp // warps_across * WARP_ROWS, warp % warps_across * WARP_COLUMNS
        for i in range(DOWN):
            for j in range(ACROSS):
                for each in range(4):
                    sums[i, j, each] = kind(0)
        slot = 0
        for step in range(1 - STAGES, (a.shape[1] + depth - 1) // depth):
            if step >= 0:
                wait_for_copies(IN_FLIGHT)
                cuda.syncthreads()
            ahead = (step + STAGES - 1) * depth
            copy_a(tile_a, thread, slot, a, top, ahead)
            copy_b(tile_b, thread, slot, b, ahead, left)
            commit_copies()
            slot = slot + 1 if slot < STAGES - 1 else 0  # the one filled next is the oldest, multiplied now
            if step >= 0:
                multiply(sums, a_part, b_part, tile_a, tile_b, slot, row, column, lane)
        store(out, sums, pair, top + row + lane // 4, left + column + lane % 4 * 2)

    return matmul


KERNEL = CudaKernel(make, REGISTER_TILES, resident_threads=lambda _: 384)
build = KERNEL.build
