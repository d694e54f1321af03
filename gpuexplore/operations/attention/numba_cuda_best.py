"""The two products on tensor cores in bf16 and fp16; in other dtypes numba-cuda-online.

Two warps share 32 rows of the queries, and each takes 64 of the 128 keys of a tile: an `ldmatrix` of keys or values
then serves four products of 16 x 8, not two as in a warp with 16 rows. Scores become weights where `mma.sync` left
them, and rounded to 16 bits they are the fragments of the second product. The values of a tile arrive while its scores
are computed, and the next keys while the values are multiplied; at the end one of the two warps merges what both have
summed. T. Dao, "FlashAttention-2", https://arxiv.org/abs/2307.08691. As long as whole tiles follow and a head is at
most 64 wide, in steps of 8, the loop looks at no bounds. The rest, and wider heads, go 64 terms at a time and wait for
each tile; more than 64 columns are further blocks, which compute the scores again.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import CudaKernel, Kernel, inlined
from gpuexplore.kernels.geometry import WARP, Block
from gpuexplore.kernels.intrinsics.async_copies import (
    commit_copies,
    edge_lines_copier,
    lines_copier,
    wait_for_copies,
)
from gpuexplore.kernels.intrinsics.row_weights import LOWEST, exchanged, hider, merger, packer, sharer, weigher
from gpuexplore.kernels.intrinsics.sums import storer
from gpuexplore.kernels.intrinsics.tensor_cores import fragment_loader, multiplier
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT, clear, kept, read, write
from gpuexplore.operations.attention import ON_TENSOR_CORES, SPAN, TILED_ROWS, numba_cuda_online

KEYS = 2 * SPAN  # of a tile: SPAN of each of the two warps that share rows
ROWS = 32  # of two warps
VECTOR, CHUNKS = 8, SPAN // 8  # elements of 16 bytes, and so many of those in a line of a tile
DOWN, ACROSS, STEPS = ROWS // 16, SPAN // 8, SPAN // 16  # products of 16 x 8 x 16 of a warp with half a tile
PLACES = 4  # where a lane loads from in a line, two chunks apart
A_FRAGMENTS = DOWN * 4  # registers of a lane for queries
WEIGHTS = STEPS * A_FRAGMENTS  # those for weights
SUMS = DOWN * ACROSS * 4  # of a lane: scores, or of the output
LANE_ROWS = 2 * DOWN  # those that a lane has sums of
B_FRAGMENTS = ACROSS * 2  # registers of a lane for keys or values
TO_POWERS_OF_TWO = np.float32(math.log2(math.e))


def tile_starts(threads: int) -> tuple[int, int, int]:
    """Return where in shared memory the tiles of keys and of values start, behind that of queries, and all end."""
    keys = query_rows(threads) * SPAN
    return keys, keys + KEYS * SPAN, keys + 2 * KEYS * SPAN


def query_rows(threads: int) -> int:
    """Return the lines of a block's tile of queries; one of keys or of values has KEYS."""
    return threads // (2 * WARP) * ROWS


def score_multiplier(name: str) -> Any:
    """Return a device function that adds the product of a warp's queries and half a tile of keys to its scores."""
    multiply_add = multiplier(name, DOWN, ACROSS)

    def part(step: int) -> Any:
        load_queries = fragment_loader([(step, i * 16 * SPAN) for i in range(DOWN)], transposed=False)
        load_keys = fragment_loader([(step, pair * 16 * SPAN) for pair in range(ACROSS // 2)], transposed=False)

        @inlined
        def multiply(scores, fragments, tiles, places):
            (a_part, _, b_part), (of_queries, of_keys, _) = fragments, places
            load_queries(a_part, tiles, of_queries, 0)
            load_keys(b_part, tiles, of_keys, 0)
            multiply_add(scores, 0, a_part, 0, b_part, 0)

        return multiply

    return in_turn(part)


def value_multiplier(name: str) -> Any:
    """Return a device function that adds the product of a warp's weights and half a tile of values to its sums."""
    multiply_add = multiplier(name, DOWN, ACROSS)

    def part(step: int) -> Any:
        load_values = fragment_loader([(place, step * 16 * SPAN) for place in range(PLACES)], transposed=True)
        first = step * A_FRAGMENTS

        @inlined
        def multiply(sums, fragments, tiles, places):
            (_, words, b_part), (_, _, of_values) = fragments, places
            load_values(b_part, tiles, of_values, 0)
            multiply_add(sums, 0, words, first, b_part, 0)

        return multiply

    return in_turn(part)


def in_turn(part: Callable[[int], Any]) -> Any:
    """Return a device function that multiplies the STEPS parts of half a tile, one after the other."""
    first, second, third, last = map(part, range(STEPS))

    @inlined
    def multiply(sums, fragments, tiles, places):
        first(sums, fragments, tiles, places)
        second(sums, fragments, tiles, places)
        third(sums, fragments, tiles, places)
        last(sums, fragments, tiles, places)

    return multiply


def place_finder(threads: int) -> Any:
    """Return a device function that finds where a lane loads its lines of queries, keys and values from."""
    to_keys, to_values, _ = tile_starts(threads)

    @inlined
    def find(places, lane, warp):
        of_queries, of_keys, of_values = places
        rows, half = warp // 2 * ROWS * SPAN, warp % 2 * SPAN * SPAN
        line, key = lane % 16, lane // 16 * 8 + lane % 8
        for place in range(PLACES):
            turned, of_key = place * 2 + lane // 16 ^ lane % 8, place * 2 + lane // 8 % 2 ^ lane % 8
            of_queries[place] = kept(rows + line * SPAN + turned * VECTOR)
            of_keys[place] = kept(to_keys + half + key * SPAN + of_key * VECTOR)
            of_values[place] = kept(to_values + half + line * SPAN + turned * VECTOR)

    return find


def whole_tiles(name: str, threads: int) -> Any:
    """Return a device function that goes along the keys of whole tiles up to `end`, whose first is on its way.

    Where a thread's first copy starts in a tile of a head is `start`, with its others `step` apart, and where it goes
    `into`.
    """
    score, mix = score_multiplier(name), value_multiplier(name)
    weigh, pack, copy = weigher(DOWN, ACROSS, ACROSS), packer(DOWN, ACROSS), tile_copier(threads)
    to_keys, to_values, _ = tile_starts(threads)

    @inlined
    def go(rows_of_lane, fragments, tiles, places, arrays, copies, end):
        (sums, scores, tops, totals), (_, words, _) = rows_of_lane, fragments
        (k, v), (start, step, into) = arrays, copies
        depth, scale = k.shape[1], scale_of(k.shape[1])
        for key in range(0, end, KEYS):
            wait_for_copies(0)
            cuda.syncthreads()
            copy(tiles, to_values + into, v, start + key * depth, step)
            commit_copies()
            clear(scores, SUMS)
            score(scores, fragments, tiles, places)
            weigh(scores, sums, tops, totals, scale)
            pack(words, scores, tiles)
            wait_for_copies(0)
            cuda.syncthreads()
            following = min(key + KEYS, end - KEYS)  # the last comes again, as nobody reads it
            copy(tiles, to_keys + into, k, start + following * depth, step)
            commit_copies()
            mix(sums, fragments, tiles, places)
        wait_for_copies(0)

    return go


def tile_copier(threads: int) -> Any:
    """Return the function that starts a thread's copies of a whole tile of keys or values."""
    sweep = threads // CHUNKS
    return lines_copier(KEYS // sweep, sweep * SPAN)


def edge_copier(lines: int, threads: int) -> Any:
    """Return a device function that starts to copy a tile of a head, from line `top` and column `left` on.

    Below the last line there is any number, as no sum of those is read, and zeros beside the head.
    """
    sweep = threads // CHUNKS
    copy_vectors = edge_lines_copier(lines // sweep, sweep * SPAN, sweep)

    @inlined
    def copy(tiles, first, thread, source, top, left):
        length, depth = source.shape
        if depth % VECTOR == 0:
            line, chunk = thread // CHUNKS, thread % CHUNKS
            into = first + (line * CHUNKS + (chunk ^ line % 8)) * VECTOR
            copy_vectors(tiles, into, source, top + line, left + chunk * VECTOR)
        else:
            at = thread
            while at < lines * SPAN:
                line, column = at // SPAN, at % SPAN
                place = line * SPAN + (column ^ line % 8 * VECTOR)
                inside = top + line < length and left + column < depth
                value = read(source, (top + line) * depth + left + column) if inside else tiles.dtype.type(0)
                write(tiles, first + place, value)
                at = kept(at + threads) & (lines * SPAN * 2 - 1)  # & says that it is not negative; the loop stays one

    return copy


@inlined
def scale_of(depth: Any) -> Any:
    """Return what scores are multiplied by so that weights are powers of two."""
    return TO_POWERS_OF_TWO / math.sqrt(np.float32(depth))


def edge_tiles(name: str, threads: int) -> Any:
    """Return a device function that goes along the keys from `start` on, SPAN terms of the scores at a time."""
    rows = query_rows(threads)
    to_keys, to_values, _ = tile_starts(threads)
    score, mix = score_multiplier(name), value_multiplier(name)
    weigh, pack, hide = weigher(DOWN, ACROSS, ACROSS), packer(DOWN, ACROSS), hider(DOWN, ACROSS)
    copy_rows, copy_keys = edge_copier(rows, threads), edge_copier(KEYS, threads)

    @inlined
    def go(rows_of_lane, fragments, tiles, places, arrays, thread, start):
        (sums, scores, tops, totals), (_, words, _), (q, k, v) = rows_of_lane, fragments, arrays
        (length, depth), scale, warp, left = k.shape, scale_of(k.shape[1]), thread // WARP, cuda.blockIdx.y * SPAN
        half, top = warp % 2 * SPAN, cuda.blockIdx.x % (-(-length // SPAN) * SPAN // rows) * rows
        key, term = start, 0
        while key < length:
            if term == 0:
                clear(scores, SUMS)
            cuda.syncthreads()
            now = kept(thread) & (threads - 1)  # so that no place of a copy is kept for the next pass
            copy_rows(tiles, 0, now, q, top, term)
            copy_keys(tiles, to_keys, now, k, key, term)
            commit_copies()
            term += SPAN
            if term >= depth:
                copy_keys(tiles, to_values, now, v, key, left)
            commit_copies()
            wait_for_copies(1)
            cuda.syncthreads()
            score(scores, fragments, tiles, places)
            if term >= depth:
                hide(scores, length - key - half - thread % 4 * 2)
                weigh(scores, sums, tops, totals, scale)
                pack(words, scores, tiles)
                wait_for_copies(0)
                cuda.syncthreads()
                mix(sums, fragments, tiles, places)
                key, term = key + KEYS, 0

    return go


@inlined
def reserve() -> Any:
    """Return what a lane keeps of its rows, its fragments, and where in the tiles it loads them from."""
    sums, scores = cuda.local.array(SUMS, np.float32), cuda.local.array(SUMS, np.float32)
    tops, totals = cuda.local.array(LANE_ROWS, np.float32), cuda.local.array(LANE_ROWS, np.float32)
    a_part, words = cuda.local.array(A_FRAGMENTS, np.uint32), cuda.local.array(WEIGHTS, np.uint32)
    b_part = cuda.local.array(B_FRAGMENTS, np.uint32)
    of_queries, of_keys = cuda.local.array(PLACES, np.int32), cuda.local.array(PLACES, np.int32)
    of_values = cuda.local.array(PLACES, np.int32)
    return (sums, scores, tops, totals), (a_part, words, b_part), (of_queries, of_keys, of_values)


def whole_tiles_starter(name: str, threads: int) -> Any:
    """Return a device function that goes along whole tiles, where that can be done, and returns the key behind them."""
    to_keys, sweep = tile_starts(threads)[0], threads // CHUNKS
    go, copy_rows, copy = whole_tiles(name, threads), edge_copier(query_rows(threads), threads), tile_copier(threads)

    @inlined
    def start_and_go(rows_of_lane, fragments, tiles, places, arrays, thread, top):
        q, k, v = arrays
        (length, depth), done = q.shape, 0
        if depth <= SPAN and depth % VECTOR == 0 and length >= KEYS:
            line, chunk, done = thread // CHUNKS, thread % CHUNKS, length // KEYS * KEYS
            start = kept(line * depth + min(chunk * VECTOR, depth - VECTOR))
            step = np.uint32(depth * sweep)
            into = kept((line * CHUNKS + (chunk ^ line % 8)) * VECTOR)
            copy_rows(tiles, 0, thread, q, top, 0)
            copy(tiles, to_keys + into, k, start, step)
            commit_copies()
            go(rows_of_lane, fragments, tiles, places, (k, v), (start, step, into), done)
        return done

    return start_and_go


def finisher() -> Any:
    """Return a device function that merges what two warps have of the same rows, in `room`, and stores it."""
    share, merge, put = sharer(DOWN, ACROSS), merger(DOWN, ACROSS), storer(DOWN, ACROSS)
    numbers = exchanged(DOWN, ACROSS) * WARP

    @inlined
    def finish(out, room, rows_of_lane, head, top, lane, warp):
        (sums, _, tops, totals), (length, depth) = rows_of_lane, out.shape[2:]
        cuda.syncthreads()
        place = warp // 2 * numbers + lane
        if warp % 2 == 1:
            share(room, place, sums, tops, totals)
        cuda.syncthreads()
        if warp % 2 == 0:
            merge(room, place, sums, tops, totals)
            row, column = top + warp // 2 * ROWS + lane // 4, cuda.blockIdx.y * SPAN + lane % 4 * 2
            put(out, (head * length + row) * depth + column, sums, depth, length - row, depth - column)

    return finish


def make_on_tensor_cores(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes softmax(q kᵀ / √d) v of three (b, h, s, d) to `out` (b, h, s, d)."""
    element, threads, name = dtype.storage, block[0], dtype.name
    last, exchange = threads - 1, np.dtype(np.float32)
    rows, find_places, finish = query_rows(threads), place_finder(threads), finisher()
    go_along_whole_tiles, go_along_edges = whole_tiles_starter(name, threads), edge_tiles(name, threads)

    def attention(q, k, v, out):
        tiles = cuda.shared.array(0, element, ALIGNMENT)
        room = cuda.shared.array(0, exchange, ALIGNMENT)  # where the tiles were
        rows_of_lane, fragments, places = reserve()
        (sums, _, tops, totals), thread = rows_of_lane, cuda.threadIdx.x & last  # & says that it is not negative
        (heads, length, _), lane, warp = q.shape[1:], thread % WARP, thread // WARP
        blocks = (length + SPAN - 1) // SPAN * SPAN // rows
        head, top = cuda.blockIdx.x // blocks, cuda.blockIdx.x % blocks * rows
        b, h = head // heads, head % heads
        find_places(places, lane, warp)
        clear(sums, SUMS)
        clear(totals, LANE_ROWS)
        for row in range(LANE_ROWS):
            tops[row] = LOWEST
        arrays = q[b, h], k[b, h], v[b, h]
        done = go_along_whole_tiles(rows_of_lane, fragments, tiles, places, arrays, thread, top)
        again = kept(thread) & last  # so that nothing computed before is kept for the edges
        go_along_edges(rows_of_lane, fragments, tiles, places, arrays, again, done)
        finish(out, room, rows_of_lane, head, top, lane, warp)

    return attention


def make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes softmax(q kᵀ / √d) v of three (b, h, s, d) to `out` (b, h, s, d)."""
    if dtype.name in ON_TENSOR_CORES:
        return make_on_tensor_cores(dtype, block)
    return numba_cuda_online.make(dtype, block)


def resident_threads(dtype: DType) -> int:
    """Return how many threads have to fit on a multiprocessor: with fewer, each has more registers."""
    return 256 if dtype.name in ON_TENSOR_CORES else numba_cuda_online.KERNEL.resident_threads(dtype)


def shared_bytes(dtype: DType, block: Block) -> int:
    """Return the bytes of all tiles; the other kernel's have a fixed size."""
    return 2 * tile_starts(block[0])[2] if dtype.name in ON_TENSOR_CORES else 0


KERNEL = CudaKernel(make, TILED_ROWS, resident_threads=resident_threads, dynamic_shared_bytes=shared_bytes)
build = KERNEL.build
