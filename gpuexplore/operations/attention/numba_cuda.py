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
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined
from gpuexplore.kernels.intrinsics.online_softmax import (
    LOWEST,
    key_mask,
    merge_partial,
    online_softmax_update,
    pack_fragments,
    partial_elements,
    spill_partial,
)
from gpuexplore.kernels.intrinsics.tensor_cores import accumulator_storer, fragment_loader, multiplier
from gpuexplore.kernels.intrinsics.vectors import (
    ALIGNMENT,
    clear,
    commit_copies,
    edge_lines_copier,
    lines_copier,
    materialize,
    read,
    wait_for_copies,
    write,
)
from gpuexplore.operations.attention import ON_TENSOR_CORES, SPAN, TILED_ROWS
from gpuexplore.operations.attention.numba_cuda_online import KERNEL as ONLINE

KEYS = 2 * SPAN  # of a tile: SPAN of each of the two warps that share rows
ROWS = 32  # of two warps
VECTOR = 8  # elements of 16 bytes
CHUNKS = SPAN // VECTOR  # of 16 bytes in a line of a tile
# products of 16 x 8 x 16 of a warp with half a tile
M_TILES = ROWS // 16
N_TILES = SPAN // 8
K_STEPS = SPAN // 16
LDMATRIX_ADDRESSES = 4  # of a lane in a line, two chunks apart
A_FRAGMENTS = M_TILES * 4  # registers of a lane for queries
WEIGHTS = K_STEPS * A_FRAGMENTS  # those for weights
SUMS = M_TILES * N_TILES * 4  # of a lane: scores, or of the output
LANE_ROWS = 2 * M_TILES  # those that a lane has sums of
B_FRAGMENTS = N_TILES * 2  # registers of a lane for keys or values
TO_POWERS_OF_TWO = np.float32(math.log2(math.e))


def _tile_starts(threads: int) -> tuple[int, int, int]:
    """Return where in shared memory the tiles of keys and of values start, behind that of queries, and all end."""
    keys = _query_rows(threads) * SPAN
    return keys, keys + KEYS * SPAN, keys + 2 * KEYS * SPAN


def _query_rows(threads: int) -> int:
    """Return the lines of a block's tile of queries; one of keys or of values has KEYS."""
    return threads // (2 * WARP) * ROWS


def _score_multiplier(name: str) -> Any:
    """Return a device function that adds the product of a warp's queries and half a tile of keys to its scores."""
    multiply_add = multiplier(name, M_TILES, N_TILES)

    def part(step: int) -> Any:
        load_queries = fragment_loader([(step, i * 16 * SPAN) for i in range(M_TILES)], transposed=False)
        load_keys = fragment_loader([(step, pair * 16 * SPAN) for pair in range(N_TILES // 2)], transposed=False)

        @inlined
        def multiply(scores, fragments, tiles, fragment_offsets):
            (a_fragments, _, b_fragments), (query_offsets, key_offsets, _) = fragments, fragment_offsets
            load_queries(a_fragments, tiles, query_offsets, 0)
            load_keys(b_fragments, tiles, key_offsets, 0)
            multiply_add(scores, 0, a_fragments, 0, b_fragments, 0)

        return multiply

    return _unrolled_k_steps(part)


def _value_multiplier(name: str) -> Any:
    """Return a device function that adds the product of a warp's weights and half a tile of values to its sums."""
    multiply_add = multiplier(name, M_TILES, N_TILES)

    def part(step: int) -> Any:
        load_values = fragment_loader([(i, step * 16 * SPAN) for i in range(LDMATRIX_ADDRESSES)], transposed=True)
        first = step * A_FRAGMENTS

        @inlined
        def multiply(sums, fragments, tiles, fragment_offsets):
            (_, words, b_fragments), (_, _, value_offsets) = fragments, fragment_offsets
            load_values(b_fragments, tiles, value_offsets, 0)
            multiply_add(sums, 0, words, first, b_fragments, 0)

        return multiply

    return _unrolled_k_steps(part)


def _unrolled_k_steps(part: Callable[[int], Any]) -> Any:
    """Return a device function that multiplies the K_STEPS parts of half a tile, one after the other."""
    first, second, third, last = map(part, range(K_STEPS))

    @inlined
    def multiply(sums, fragments, tiles, fragment_offsets):
        first(sums, fragments, tiles, fragment_offsets)
        second(sums, fragments, tiles, fragment_offsets)
        third(sums, fragments, tiles, fragment_offsets)
        last(sums, fragments, tiles, fragment_offsets)

    return multiply


def _fragment_offset_finder(threads: int) -> Any:
    """Return a device function that finds where a lane loads its lines of queries, keys and values from."""
    to_keys, to_values, _ = _tile_starts(threads)

    @inlined
    def find(fragment_offsets, lane, warp):
        query_offsets, key_offsets, value_offsets = fragment_offsets
        rows, half = warp // 2 * ROWS * SPAN, warp % 2 * SPAN * SPAN
        line, key = lane % 16, lane // 16 * 8 + lane % 8
        for i in range(LDMATRIX_ADDRESSES):
            swizzled, key_chunk = i * 2 + lane // 16 ^ lane % 8, i * 2 + lane // 8 % 2 ^ lane % 8
            query_offsets[i] = materialize(rows + line * SPAN + swizzled * VECTOR)
            key_offsets[i] = materialize(to_keys + half + key * SPAN + key_chunk * VECTOR)
            value_offsets[i] = materialize(to_values + half + line * SPAN + swizzled * VECTOR)

    return find


def _whole_tiles(name: str, threads: int) -> Any:
    """Return a device function that goes along the keys of whole tiles up to `end`, whose first is on its way.

    Where a thread's first copy starts in a tile of a head is `start`, with its others `step` apart, and where it goes
    `into`.
    """
    score = _score_multiplier(name)
    accumulate = _value_multiplier(name)
    update = online_softmax_update(M_TILES, N_TILES, N_TILES)
    pack = pack_fragments(M_TILES, N_TILES)
    copy = _tile_copier(threads)
    to_keys, to_values, _ = _tile_starts(threads)

    @inlined
    def main_loop(lane_state, fragments, tiles, fragment_offsets, arrays, copies, end):
        (sums, scores, maxima, totals), (_, words, _) = lane_state, fragments
        (k, v), (start, step, into) = arrays, copies
        depth, scale = k.shape[1], _scale_of(k.shape[1])
        for key in range(0, end, KEYS):
            wait_for_copies(0)
            cuda.syncthreads()
            copy(tiles, to_values + into, v, start + key * depth, step)
            commit_copies()
            clear(scores, SUMS)
            score(scores, fragments, tiles, fragment_offsets)
            update(scores, sums, maxima, totals, scale)
            pack(words, scores, tiles)
            wait_for_copies(0)
            cuda.syncthreads()
            following = min(key + KEYS, end - KEYS)  # the last comes again, and is not read
            copy(tiles, to_keys + into, k, start + following * depth, step)
            commit_copies()
            accumulate(sums, fragments, tiles, fragment_offsets)
        wait_for_copies(0)

    return main_loop


def _tile_copier(threads: int) -> Any:
    """Return the function that starts a thread's copies of a whole tile of keys or values."""
    sweep = threads // CHUNKS
    return lines_copier(KEYS // sweep, sweep * SPAN)


def _edge_copier(lines: int, threads: int) -> Any:
    """Return a device function that starts to copy a tile of a head, from line `top` and column `left` on.

    Below the last line there is any number, as no sum of those is read, and zeros right of the head.
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
            element = thread
            while element < lines * SPAN:
                line, column = element // SPAN, element % SPAN
                offset = line * SPAN + (column ^ line % 8 * VECTOR)
                inside = top + line < length and left + column < depth
                value = read(source, (top + line) * depth + left + column) if inside else tiles.dtype.type(0)
                write(tiles, first + offset, value)
                # & says that it is not negative; the loop stays one
                element = materialize(element + threads) & (lines * SPAN * 2 - 1)

    return copy


@inlined
def _scale_of(depth: Any) -> Any:
    """Return what scores are multiplied by so that weights are powers of two."""
    return TO_POWERS_OF_TWO / math.sqrt(np.float32(depth))


def _edge_tiles(name: str, threads: int) -> Any:
    """Return a device function that goes along the keys from `start` on, SPAN terms of the scores at a time."""
    rows = _query_rows(threads)
    to_keys, to_values, _ = _tile_starts(threads)
    score = _score_multiplier(name)
    accumulate = _value_multiplier(name)
    update = online_softmax_update(M_TILES, N_TILES, N_TILES)
    pack = pack_fragments(M_TILES, N_TILES)
    mask = key_mask(M_TILES, N_TILES)
    copy_rows = _edge_copier(rows, threads)
    copy_keys = _edge_copier(KEYS, threads)

    @inlined
    def main_loop(lane_state, fragments, tiles, fragment_offsets, arrays, thread, start):
        (sums, scores, maxima, totals), (_, words, _), (q, k, v) = lane_state, fragments, arrays
        (length, depth), scale, warp, left = k.shape, _scale_of(k.shape[1]), thread // WARP, cuda.blockIdx.y * SPAN
        half, top = warp % 2 * SPAN, cuda.blockIdx.x % (-(-length // SPAN) * SPAN // rows) * rows
        key, term = start, 0
        while key < length:
            if term == 0:
                clear(scores, SUMS)
            cuda.syncthreads()
            now = materialize(thread) & (threads - 1)  # so that no address of a copy is kept for the next pass
            copy_rows(tiles, 0, now, q, top, term)
            copy_keys(tiles, to_keys, now, k, key, term)
            commit_copies()
            term += SPAN
            if term >= depth:
                copy_keys(tiles, to_values, now, v, key, left)
            commit_copies()
            wait_for_copies(1)
            cuda.syncthreads()
            score(scores, fragments, tiles, fragment_offsets)
            if term >= depth:
                mask(scores, length - key - half - thread % 4 * 2)
                update(scores, sums, maxima, totals, scale)
                pack(words, scores, tiles)
                wait_for_copies(0)
                cuda.syncthreads()
                accumulate(sums, fragments, tiles, fragment_offsets)
                key, term = key + KEYS, 0

    return main_loop


@inlined
def _allocate() -> Any:
    """Return what a lane keeps of its rows, its fragments, and where in the tiles it loads them from."""
    sums, scores = cuda.local.array(SUMS, np.float32), cuda.local.array(SUMS, np.float32)
    maxima, totals = cuda.local.array(LANE_ROWS, np.float32), cuda.local.array(LANE_ROWS, np.float32)
    a_fragments, words = cuda.local.array(A_FRAGMENTS, np.uint32), cuda.local.array(WEIGHTS, np.uint32)
    b_fragments = cuda.local.array(B_FRAGMENTS, np.uint32)
    query_offsets, key_offsets = (
        cuda.local.array(LDMATRIX_ADDRESSES, np.int32),
        cuda.local.array(LDMATRIX_ADDRESSES, np.int32),
    )
    value_offsets = cuda.local.array(LDMATRIX_ADDRESSES, np.int32)
    return (
        (sums, scores, maxima, totals),
        (a_fragments, words, b_fragments),
        (query_offsets, key_offsets, value_offsets),
    )


def _whole_tiles_starter(name: str, threads: int) -> Any:
    """Return a device function that goes along whole tiles, where that can be done, and returns the key behind them."""
    to_keys = _tile_starts(threads)[0]
    sweep = threads // CHUNKS
    main_loop = _whole_tiles(name, threads)
    copy_rows = _edge_copier(_query_rows(threads), threads)
    copy = _tile_copier(threads)

    @inlined
    def start_and_go(lane_state, fragments, tiles, fragment_offsets, arrays, thread, top):
        q, k, v = arrays
        (length, depth), done = q.shape, 0
        if depth <= SPAN and depth % VECTOR == 0 and length >= KEYS:
            line, chunk, done = thread // CHUNKS, thread % CHUNKS, length // KEYS * KEYS
            start = materialize(line * depth + min(chunk * VECTOR, depth - VECTOR))
            step = np.uint32(depth * sweep)
            into = materialize((line * CHUNKS + (chunk ^ line % 8)) * VECTOR)
            copy_rows(tiles, 0, thread, q, top, 0)
            copy(tiles, to_keys + into, k, start, step)
            commit_copies()
            main_loop(lane_state, fragments, tiles, fragment_offsets, (k, v), (start, step, into), done)
        return done

    return start_and_go


def _finisher() -> Any:
    """Return a device function that merges what two warps have of the same rows, in `scratch`, and stores it."""
    spill = spill_partial(M_TILES, N_TILES)
    merge = merge_partial(M_TILES, N_TILES)
    store_sums = accumulator_storer(M_TILES, N_TILES)
    numbers = partial_elements(M_TILES, N_TILES) * WARP

    @inlined
    def finish(out, scratch, lane_state, head, top, lane, warp):
        (sums, _, maxima, totals), (length, depth) = lane_state, out.shape[2:]
        cuda.syncthreads()
        first = warp // 2 * numbers + lane
        if warp % 2 == 1:
            spill(scratch, first, sums, maxima, totals)
        cuda.syncthreads()
        if warp % 2 == 0:
            merge(scratch, first, sums, maxima, totals)
            row, column = top + warp // 2 * ROWS + lane // 4, cuda.blockIdx.y * SPAN + lane % 4 * 2
            store_sums(out, (head * length + row) * depth + column, sums, depth, length - row, depth - column)

    return finish


def _make_on_tensor_cores(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes softmax(q kᵀ / √d) v of three (b, h, s, d) to `out` (b, h, s, d)."""
    element = dtype.storage
    threads = block[0]
    name = dtype.name
    last = threads - 1
    scratch_type = np.dtype(np.float32)
    rows = _query_rows(threads)
    find_fragment_offsets = _fragment_offset_finder(threads)
    finish = _finisher()
    whole_tile_loop = _whole_tiles_starter(name, threads)
    edge_loop = _edge_tiles(name, threads)

    def attention(q, k, v, out):
        tiles = cuda.shared.array(0, element, ALIGNMENT)
        scratch = cuda.shared.array(0, scratch_type, ALIGNMENT)  # in the bytes of the tiles
        lane_state, fragments, fragment_offsets = _allocate()
        (sums, _, maxima, totals), thread = lane_state, cuda.threadIdx.x & last  # & says that it is not negative
        (heads, length, _), lane, warp = q.shape[1:], thread % WARP, thread // WARP
        blocks = (length + SPAN - 1) // SPAN * SPAN // rows
        head, top = cuda.blockIdx.x // blocks, cuda.blockIdx.x % blocks * rows
        b, h = head // heads, head % heads
        find_fragment_offsets(fragment_offsets, lane, warp)
        clear(sums, SUMS)
        clear(totals, LANE_ROWS)
        for row in range(LANE_ROWS):
            maxima[row] = LOWEST
        arrays = q[b, h], k[b, h], v[b, h]
        done = whole_tile_loop(lane_state, fragments, tiles, fragment_offsets, arrays, thread, top)
        again = materialize(thread) & last  # so that nothing computed before is kept for the edges
        edge_loop(lane_state, fragments, tiles, fragment_offsets, arrays, again, done)
        finish(out, scratch, lane_state, head, top, lane, warp)

    return attention


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes softmax(q kᵀ / √d) v of three (b, h, s, d) to `out` (b, h, s, d)."""
    if dtype.name in ON_TENSOR_CORES:
        return _make_on_tensor_cores(dtype, block)
    return ONLINE.make(dtype, block)


def _resident_threads(dtype: DType) -> int:
    """Return how many threads have to fit on a multiprocessor: with fewer, each has more registers."""
    return 256 if dtype.name in ON_TENSOR_CORES else ONLINE.resident_threads(dtype)


def shared_bytes(dtype: DType, block: Block) -> int:
    """Return the bytes of all tiles; the other kernel's have a fixed size."""
    return 2 * _tile_starts(block[0])[2] if dtype.name in ON_TENSOR_CORES else 0


KERNEL = CudaKernel(_make, TILED_ROWS, resident_threads=_resident_threads, dynamic_shared_bytes=shared_bytes)
