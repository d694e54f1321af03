"""A product of the weights, (o, c·r²), and the patches, (c·r², b·h·w), of which no matrix is ever written.

Tiles in shared memory and 8 x 8 sums in each thread's registers, as on the ladder of the matrix product. A term is a
channel and a tap of the r × r window, a column a pixel of an image of the batch. Neighbouring lanes read neighbouring
columns, all of a warp the same term. A thread divides its columns into image, line and column of the image once, and
its terms once; from tile to tile they go on by additions.
"""

from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, narrow, widen
from gpuexplore.kernels.intrinsics.vectors import read, store_vector, write
from gpuexplore.kernels.register_tiles.steps import (
    Loader,
    compact_main_loop,
    edge_a_loader,
    repeating_a_loader,
    tile_memory,
    unrolled_main_loop,
)
from gpuexplore.kernels.register_tiles.tiling import WARP_HEIGHT, WARP_WIDTH, Tiling, load_coordinates, sum_coordinates
from gpuexplore.operations.conv2d import PATCH_TILES, THREAD_TILE

DEPTH = 8  # terms of a tile
OUTSIDE = np.int32(-(2**30))  # a line above every image, however far down the neighbourhood reaches


def _patch_counts(tiling: Tiling) -> tuple[int, int, int]:
    """Return the terms and the columns of a tile of patches that a thread loads, and the warps of a block."""
    warps = tiling.threads // WARP
    return tiling.depth // warps, tiling.columns // WARP, warps


def _patch_loader(tiling: Tiling) -> Loader:
    """Return the loader of patches, with zeros around the image and beyond the last channel.

    Its cursor: where the patch of each column starts, as an element, a line and a column of the image; the channel, the
    line and the column of the window of each term; c, h·w, h, w and r; and what a term goes on by, as its parts.
    """
    terms, columns, _ = _patch_counts(tiling)

    @inlined
    def load(staged, source, cursor):
        (start, top, left), (channel, down, right), (channels, plane, height, width, _), _ = cursor
        for term in range(terms):
            offset = np.int64(channel[term]) * plane + np.int32(down[term] * np.int32(width) + right[term])
            exists = channel[term] < channels
            for column in range(columns):
                y, x = np.uint32(top[column] + down[term]), np.uint32(left[column] + right[term])
                if exists & (y < height) & (x < width):
                    staged[term * columns + column] = read(source, start[column] + offset)
                else:
                    staged[term * columns + column] = staged.dtype.type(0)

    @inlined
    def advance(cursor):
        taps, lengths, (channel_step, line_step, column_step) = cursor[1:]
        channel, down, right = taps
        r = lengths[4]
        for term in range(terms):
            x, y, z = (
                np.int32(right[term] + column_step),
                np.int32(down[term] + line_step),
                np.int32(channel[term] + channel_step),
            )
            if x >= r:
                x, y = np.int32(x - r), np.int32(y + 1)
            if y >= r:
                y, z = np.int32(y - r), np.int32(z + 1)
            channel[term], down[term], right[term] = z, y, x
        return cursor

    return load, advance


def _patch_filler(tiling: Tiling) -> Any:
    """Return a device function that puts what a thread loaded of the patches into their tile."""
    terms, columns, warps = _patch_counts(tiling)
    step = warps * tiling.columns

    @inlined
    def fill(tile, staged, into):
        for term in range(terms):
            for column in range(columns):
                write(tile, into + term * step + column * WARP, widen(staged[term * columns + column]))

    return fill


def _patch_cursor(tiling: Tiling) -> Any:
    """Return a device function that gives the cursor of a thread's first patches, for the loader."""
    terms, columns, warps = _patch_counts(tiling)

    @inlined
    def first_cursor(shape, r, warp, column):
        images, channels, height, width = shape
        plane, reach = height * width, r // 2
        start = cuda.local.array(columns, np.int64)
        top, left = cuda.local.array(columns, np.int32), cuda.local.array(columns, np.int32)
        channel = cuda.local.array(terms, np.int32)
        down, right = cuda.local.array(terms, np.int32), cuda.local.array(terms, np.int32)
        for each in range(columns):
            at = column + each * WARP
            y, x = at % plane // width - reach, at % width - reach
            start[each] = at // plane * channels * plane + y * width + x
            top[each], left[each] = y if at < images * plane else OUTSIDE, x
        for each in range(terms):
            term = warp + each * warps
            channel[each], down[each], right[each] = term // (r * r), term // r % r, term % r
        lengths = np.int32(channels), np.int32(plane), np.uint32(height), np.uint32(width), np.int32(r)
        further = np.int32(DEPTH // (r * r)), np.int32(DEPTH // r % r), np.int32(DEPTH % r)
        return (start, top, left), (channel, down, right), lengths, further

    return first_cursor


def _image_storer(tiling: Tiling) -> Any:
    """Return a device function that stores a thread's sums, each in the image that its column belongs to."""
    thread_rows = tiling.thread_rows
    thread_columns = tiling.thread_columns
    shared_vector = tiling.shared_vector
    keeps_format = tiling.storage is tiling.kind

    @inlined
    def store(out, sums, row, column):
        images, channels, plane = out.shape[0], out.shape[1], out.shape[2] * out.shape[3]
        offsets = cuda.local.array(thread_columns, np.int64)
        for j in range(thread_columns):
            at = column + j // shared_vector * shared_vector * WARP_WIDTH + j % shared_vector
            offsets[j] = (at // plane * channels + row) * plane + at % plane if at < images * plane else -1
        for i in range(thread_rows):
            lower = i // shared_vector * shared_vector * WARP_HEIGHT + i % shared_vector
            if row + lower < channels:
                for j in range(0, thread_columns, shared_vector):
                    if keeps_format and plane % shared_vector == 0:
                        if offsets[j] >= 0:
                            store_vector(out, offsets[j] + lower * plane, sums, i * thread_columns + j)
                    else:
                        for each in range(j, j + shared_vector):
                            if offsets[each] >= 0:
                                write(out, offsets[each] + lower * plane, narrow(sums[i, each], out.dtype))

    return store


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes x (b, c, h, w) * weights (o, c, r, r) to `out` (b, o, h, w)."""
    thread_rows, thread_columns = THREAD_TILE
    width = block[0]
    tiling = Tiling(
        dtype,
        block,
        columns=thread_columns * width,
        depth=DEPTH,
        thread_rows=thread_rows,
        thread_columns=thread_columns,
    )
    rows = tiling.rows
    columns = tiling.columns
    padded = tiling.padded
    last = tiling.threads - 1
    patches = _patch_loader(tiling)
    fill = _patch_filler(tiling)
    by_whole_tiles = unrolled_main_loop(tiling, (repeating_a_loader(tiling), patches), fill)
    to_the_end = compact_main_loop(tiling, (edge_a_loader(tiling), patches), fill)
    allocate = tile_memory(tiling)
    load_position = load_coordinates(tiling)
    first_patches = _patch_cursor(tiling)
    sum_position = sum_coordinates(tiling)
    store = _image_storer(tiling)

    def conv2d(x, weights, out):
        registers, tiles = allocate()
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & last  # & says that it is not negative
        top, left, k = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns, weights.size // weights.shape[0]
        (y, z), (row, term, _, _), warp, lane = (
            sum_position(thread),
            load_position(thread),
            thread // WARP,
            thread % WARP,
        )
        cursors = (0, top + row, term, weights.shape[0], k), first_patches(x.shape, weights.shape[2], warp, left + lane)
        tile_offsets = term * padded + row, warp * columns + lane, y, z
        if k % DEPTH == 0:
            by_whole_tiles(registers, tiles, (weights, x), cursors, tile_offsets, k)
        else:
            to_the_end(registers, tiles, (weights, x), cursors, tile_offsets, k)
        store(out, registers[0], top + y, left + z)

    return conv2d


KERNEL = CudaKernel(_make, PATCH_TILES)
