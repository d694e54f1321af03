"""A block per 64 rows and 64 columns of the output walks the keys once, 64 at a time, and stores no scores in memory.

Scores and output are products of tiles in shared memory, of which each thread keeps 8 x 4 sums in registers: 32
multiply-adds for 12 numbers read, by three loads of 128 bits. Between the two the weights of 64 keys pass through
shared memory; where a higher score comes, the sums before it are scaled. T. Dao et al., "FlashAttention",
https://arxiv.org/abs/2205.14135. On CUDA cores, sums in fp32 (fp64 for fp64). More than 64 columns are further blocks,
which compute the scores again.
"""

import math
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, narrow, sum_type, widen
from gpuexplore.kernels.intrinsics.vectors import (
    ALIGNMENT,
    VECTOR_BYTES,
    load_vector,
    read,
    store_vector,
    vector_length,
    write,
)
from gpuexplore.kernels.intrinsics.warps import half_warp_max, half_warp_sum
from gpuexplore.operations.attention import SPAN, TILED_ROWS

ROWS = 8
COLUMNS = 4  # sums of a thread
HALF = WARP // 2  # neighbouring lanes, which share 8 rows
WRITTEN_OUT = 4  # terms of a pass of the innermost loop
PAD = 4  # so that the columns of a tile begin at different banks


def _tile_multiplier(kind: Any, terms: int, stride_a: int) -> Any:
    """Return a device function that adds the product of two tiles of so many terms to a thread's sums.

    Four terms are written out: LLVM keeps loops over so many instructions.
    """
    shared_vector = vector_length(kind)
    stride_b = SPAN + PAD

    @inlined
    def term(sums, left, right, tile_a, tile_b, at_a, at_b):
        for i in range(0, ROWS, shared_vector):
            load_vector(left, i, tile_a, at_a + i)
        for j in range(0, COLUMNS, shared_vector):
            load_vector(right, j, tile_b, at_b + j)
        for i in range(ROWS):
            for j in range(COLUMNS):
                sums[i, j] += left[i] * right[j]

    @inlined
    def multiply(sums, left, right, tile_a, tile_b, at_a, at_b):
        for _ in range(terms // WRITTEN_OUT):
            term(sums, left, right, tile_a, tile_b, at_a, at_b)
            term(sums, left, right, tile_a, tile_b, at_a + stride_a, at_b + stride_b)
            term(sums, left, right, tile_a, tile_b, at_a + 2 * stride_a, at_b + 2 * stride_b)
            term(sums, left, right, tile_a, tile_b, at_a + 3 * stride_a, at_b + 3 * stride_b)
            at_a += WRITTEN_OUT * stride_a
            at_b += WRITTEN_OUT * stride_b

    return multiply


@inlined
def _load_or_zeros(staged: Any, at: Any, source: Any, start: Any, row: Any, column: Any) -> None:
    """Load neighbours of a row of a head, which begins at element `start`, zeros beyond the head."""
    rows, columns, step = source.shape[2], source.shape[3], VECTOR_BYTES // staged.itemsize
    offset, inside = start + row * columns + column, columns - column if row < rows else 0
    for i in range(step):
        staged[at + i] = staged.dtype.type(0)
    if columns % step == 0:
        if inside > 0:
            load_vector(staged, at, source, offset)
    else:
        for i in range(step):
            if i < inside:
                staged[at + i] = read(source, offset + i)


def _tile_loader(threads: int, lengths: tuple[int, int], step: int) -> tuple[Any, Any]:
    """Return device functions that load a tile of `lengths` into registers, and store it transposed."""
    high, width = lengths
    last = threads - 1
    across = width // step
    loads = high * width // (threads * step)

    @inlined
    def load(staged, source, start, top, left):
        for each in range(loads):
            vector = each * threads + (cuda.threadIdx.x & last)
            _load_or_zeros(staged, each * step, source, start, top + vector // across, left + vector % across * step)

    @inlined
    def store(tile, staged, stride_a):
        for each in range(loads):
            vector = each * threads + (cuda.threadIdx.x & last)
            row, column = vector // across, vector % across * step
            for i in range(step):
                write(tile, (column + i) * stride_a + row, widen(staged[each * step + i]))

    return load, store


def _value_loader(threads: int, terms: int, step: int, shared_vector: int) -> tuple[Any, Any]:
    """Return device functions that load a tile of values, `terms` keys high, into registers, and store it.

    Row i of the tiles of weights and values belongs to key i % 16 * 4 + i // 16: so a thread's weights, of 4 neighbours
    among the keys, go to rows 16 apart, and those of neighbouring threads next to each other.
    """
    across = SPAN // step
    loads = terms * SPAN // (threads * step)
    last = threads - 1

    @inlined
    def load(staged, source, start, key, part, left):
        for each in range(loads):
            vector = each * threads + (cuda.threadIdx.x & last)
            row = part + vector // across
            key_row = key + row % HALF * COLUMNS + row // HALF
            _load_or_zeros(staged, each * step, source, start, key_row, left + vector % across * step)

    @inlined
    def store(tile, staged, numbers):
        for each in range(loads):
            vector = each * threads + (cuda.threadIdx.x & last)
            offset = vector // across * (SPAN + PAD) + vector % across * step
            for i in range(step):
                numbers[i] = widen(staged[each * step + i])
            for i in range(0, step, shared_vector):
                store_vector(tile, offset + i, numbers, i)

    return load, store


def _softmax_rows_update(rows: int) -> Any:
    """Return a device function that makes weights of `rows` rows of a thread's scores, from row `i` on.

    They are below the highest score so far; what was summed before is scaled. The rows are written out, of two halves.
    """
    if rows == 1:

        @inlined
        def update(scores, sums, maxima, totals, scale, i):
            highest = maxima[i]
            for j in range(COLUMNS):
                highest = max(highest, scores[i, j])
            highest = half_warp_max(highest)
            correction = math.exp((maxima[i] - highest) * scale)
            maxima[i], total = highest, totals[i] * correction
            for j in range(COLUMNS):
                scores[i, j] = math.exp((scores[i, j] - highest) * scale)
                total += scores[i, j]
                sums[i, j] *= correction
            totals[i] = total

        return update
    half = _softmax_rows_update(rows // 2)
    further = rows // 2

    @inlined
    def update_halves(scores, sums, maxima, totals, scale, i):
        half(scores, sums, maxima, totals, scale, i)
        half(scores, sums, maxima, totals, scale, i + further)

    return update_halves


@inlined
def _clear(sums: Any) -> None:
    """Set a thread's sums to zero."""
    for i in range(ROWS):
        for j in range(COLUMNS):
            sums[i, j] = sums.dtype.type(0)


@inlined
def _mask_keys(scores: Any, inside: Any) -> None:
    """Mask keys from the one at `inside` on: their scores are -inf."""
    for j in range(COLUMNS):
        if j >= inside:
            for i in range(ROWS):
                scores[i, j] = scores.dtype.type(-math.inf)


@inlined
def _store_weights(tile: Any, scores: Any, column: Any, at: Any, step: Any) -> None:
    """Store a thread's weights: those of a key in a row of the tile."""
    for j in range(COLUMNS):
        for i in range(ROWS):
            column[i] = scores[i, j]
        for i in range(0, ROWS, VECTOR_BYTES // column.itemsize):
            store_vector(tile, at + j * step + i, column, i)


def _output_storer(dtype: DType) -> Any:
    """Return a device function that stores a thread's sums where they are inside the output."""
    shared_vector = vector_length(sum_type(dtype))
    keeps_format = dtype.storage.type is sum_type(dtype)

    @inlined
    def store(out, sums, totals, start, row, column):
        length, depth = out.shape[2], out.shape[3]
        for i in range(ROWS):
            reciprocal = totals.dtype.type(1) / half_warp_sum(totals[i])
            for j in range(COLUMNS):
                sums[i, j] *= reciprocal
            if row + i < length:
                offset = start + (row + i) * depth + column
                if keeps_format and depth % shared_vector == 0:
                    for j in range(0, COLUMNS, shared_vector):
                        if column + j < depth:
                            store_vector(out, offset + j, sums, i * COLUMNS + j)
                else:
                    for j in range(COLUMNS):
                        if column + j < depth:
                            write(out, offset + j, narrow(sums[i, j], out.dtype))

    return store


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes softmax(q kᵀ / √d) v of three (b, h, s, d) to `out` (b, h, s, d)."""
    kind = sum_type(dtype)
    storage = dtype.storage.type
    threads = block[0]
    step = vector_length(dtype.storage)
    rows = threads // HALF * ROWS
    terms = 64 // np.dtype(kind).itemsize
    shared_vector = vector_length(kind)
    stride_a = rows + PAD
    stride_b = SPAN + PAD
    last = threads - 1
    widest = max(step, shared_vector)
    count_a = rows * terms // threads
    count_b = SPAN * terms // threads
    size_a = terms * stride_a
    size_b = terms * stride_b
    size_p = SPAN * stride_a
    lowest = np.finfo(kind).min  # not -inf, which cannot be subtracted from itself
    multiply = _tile_multiplier(kind, terms, stride_a)
    update = _softmax_rows_update(ROWS)
    store = _output_storer(dtype)
    load_queries, store_queries = _tile_loader(threads, (rows, terms), step)
    load_keys, store_keys = _tile_loader(threads, (SPAN, terms), step)
    load_values, store_values = _value_loader(threads, terms, step, shared_vector)

    def attention(q, k, v, out):
        tile_a = cuda.shared.array(size_a, kind, ALIGNMENT)  # terms of the queries, and below of the keys: transposed
        tile_b = cuda.shared.array(size_b, kind, ALIGNMENT)  # or of the values
        tile_p = cuda.shared.array(size_p, kind, ALIGNMENT)  # weights, a row for each key
        sums = cuda.local.array((ROWS, COLUMNS), kind, ALIGNMENT)
        scores = cuda.local.array((ROWS, COLUMNS), kind, ALIGNMENT)
        maxima, totals = cuda.local.array(ROWS, kind), cuda.local.array(ROWS, kind)
        left, right = cuda.local.array(ROWS, kind, ALIGNMENT), cuda.local.array(COLUMNS, kind, ALIGNMENT)
        staged_a = cuda.local.array(count_a, storage, ALIGNMENT)
        staged_b = cuda.local.array(count_b, storage, ALIGNMENT)
        numbers = cuda.local.array(widest, kind, ALIGNMENT)
        length, depth, thread = q.shape[2], q.shape[3], cuda.threadIdx.x & last  # & says that it is not negative
        tiles = (length + SPAN - 1) // SPAN * SPAN // rows
        start, top, first = (
            cuda.blockIdx.x // tiles * length * depth,
            cuda.blockIdx.x % tiles * rows,
            cuda.blockIdx.y * SPAN,
        )
        row, column = thread // HALF * ROWS, thread % HALF * COLUMNS
        scale = kind(1) / math.sqrt(kind(depth))
        _clear(sums)
        for i in range(ROWS):
            maxima[i], totals[i] = lowest, kind(0)
        for key in range(0, length, SPAN):
            _clear(scores)
            load_queries(staged_a, q, start, top, 0)
            load_keys(staged_b, k, start, key, 0)
            for term in range(0, depth, terms):
                cuda.syncthreads()
                store_queries(tile_a, staged_a, stride_a)
                store_keys(tile_b, staged_b, stride_b)
                cuda.syncthreads()
                load_queries(staged_a, q, start, top, term + terms)
                load_keys(staged_b, k, start, key, term + terms)
                multiply(scores, left, right, tile_a, tile_b, row, column)
            load_values(staged_b, v, start, key, 0, first)
            _mask_keys(scores, length - key - column)
            update(scores, sums, maxima, totals, scale, 0)
            _store_weights(tile_p, scores, left, thread % HALF * stride_a + row, HALF * stride_a)
            for part in range(0, SPAN, terms):
                cuda.syncthreads()
                store_values(tile_b, staged_b, numbers)
                cuda.syncthreads()
                if part + terms < SPAN:
                    load_values(staged_b, v, start, key, part + terms, first)
                multiply(sums, left, right, tile_p, tile_b, part * stride_a + row, column)
        store(out, sums, totals, start, top + row, first + column)

    return attention


# 384 threads of a multiprocessor have 168 registers each
KERNEL = CudaKernel(_make, TILED_ROWS, resident_threads=lambda dtype: 256 if dtype.name == "fp64" else 384)
