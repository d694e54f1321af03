"""The implicit product on tensor cores, pipelined as in numba-cuda-tensorcore of the matrix product.

The weights, (o, c·r²), are A there, and arrive by asynchronous copies. The patches, (c·r², b·h·w), are B: their numbers
lie wherever the filter's window puts them, so they are gathered by 16-bit loads while a half of a tile is multiplied,
and then stored in the tile that is multiplied three tiles later. A tile takes 8 terms from each quarter of the
channels, with the same taps in each, so that one look at the padding serves four loads. Where the channels are no
multiple of 32, the pixels of an image none of 4, or the window is wider than MAX_R, every number is looked at.
"""

from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_kernel import WARP, Block, CudaKernel, Kernel, inlined, sum_type
from gpuexplore.kernels.intrinsics.patches import MAX_R, PIXELS, patch_filler, patch_loader
from gpuexplore.kernels.intrinsics.tensor_cores import pixel_storer
from gpuexplore.kernels.intrinsics.vectors import (
    ALIGNMENT,
    clear,
    commit_copies,
    materialize,
    read,
    vector_length,
    vectors_copier,
    wait_for_copies,
    write,
)
from gpuexplore.operations.conv2d import WARP_PATCH_TILES
from gpuexplore.operations.matmul import warp_tile
from gpuexplore.operations.matmul.numba_cuda_tensorcore import (
    CHUNKS,
    FRAGMENTS,
    IN_FLIGHT,
    LDMATRIX_ADDRESSES,
    M_TILES,
    N_TILES,
    STAGES,
    SUMS,
    WARP_TILE,
    StagedTiles,
    edge_copier,
    fragment_offset_finder,
    half_multiplier,
    thread_finder,
    tile_multiplier,
)
from gpuexplore.operations.matmul.numba_cuda_tensorcore import KERNEL as OF_MATRICES

TAPS = MAX_R * MAX_R  # of the largest window
ALL_MASKED = (1 << 2 * MAX_R) - 1  # bits of a pixel behind the last image
MOST_NUMBERS = 2**31 - 1  # of an image batch whose offsets fit 32 bits
OUTSIDE = -(2**30)  # a line above every image, however far down the window reaches


def _patch_copier(tiling: StagedTiles) -> Any:
    """Return a device function that copies a tile of patches from term `term` on, with a look at every number.

    `pixel`: where the patch of the thread's column starts, as an element, a line and a column of it.
    """
    columns = tiling.columns
    vector = tiling.vector
    b_chunks = tiling.b_chunks
    swizzle = tiling.swizzle_b
    depth = tiling.depth
    sweep = tiling.threads // columns

    @inlined
    def copy(tiles, first, thread, x, r, pixel, term):
        start, top, left = pixel
        _, channels, height, width = x.shape
        column, first_term = thread % columns, term + thread // columns
        channel, down, right = first_term // (r * r), first_term // r % r, first_term % r
        for line in range(thread // columns, depth, sweep):
            inside = channel < channels and 0 <= top + down < height and 0 <= left + right < width
            offset = start + (channel * height + down) * width + right
            value = read(x, offset) if inside else tiles.dtype.type(0)
            swizzled = column // vector ^ line * swizzle // 2 % 8
            write(tiles, first + (line * b_chunks + swizzled) * vector + column % vector, value)
            right, down, channel = right + sweep % r, down + sweep // r % r, channel + sweep // (r * r)
            if right >= r:
                right, down = right - r, down + 1
            if down >= r:
                down, channel = down - r, channel + 1

    return copy


def _by_number(tiling: StagedTiles, name: str) -> Any:
    """Return a device function that adds up a block's tile with a look at every number of the patches."""
    rows = tiling.rows
    columns = tiling.columns
    threads = tiling.threads
    vector = tiling.vector
    size = tiling.size
    depth = tiling.depth
    size_a = tiling.size_a
    multiply = tile_multiplier(tiling, name)
    copy_a = edge_copier(rows, CHUNKS, threads, vector, swizzle=1)
    copy_b = _patch_copier(tiling)

    @inlined
    def copy_pair(tiles, first, thread, arrays, pixel, top, term):
        x, weights, (filters, r, k) = arrays
        copy_a(tiles, first, thread, weights, (filters, k), top, term)
        copy_b(tiles, first + size_a, thread, x, r, pixel, term)
        commit_copies()

    @inlined
    def add_up(sums, fragments, tiles, thread, arrays, corner):
        (a_fragments, b_fragments, a_offsets, b_offsets), (x, _, (_, r, k)), (top, left) = fragments, arrays, corner
        images, channels, height, width = x.shape
        at, plane = left + thread % columns, height * width
        y, z = at % plane // width - r // 2, at % width - r // 2
        pixel = at // plane * channels * plane + y * width + z, y if at < images * plane else OUTSIDE, z
        for ahead in range(STAGES - 1):
            copy_pair(tiles, ahead * size, thread, arrays, pixel, top, ahead * depth)
        for tile in range((k + depth - 1) // depth):
            wait_for_copies(IN_FLIGHT)
            cuda.syncthreads()
            ahead = tile + STAGES - 1
            copy_pair(tiles, ahead % STAGES * size, thread, arrays, pixel, top, ahead * depth)
            multiply(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, tile % STAGES * size)

    return add_up


def _start_finder(tiling: StagedTiles) -> Any:
    """Return a device function that finds where a thread's copies of the weights start, and returns their target."""
    loads, _ = tiling.loads
    lines = tiling.threads // CHUNKS
    vector = tiling.vector

    @inlined
    def find(starts, thread, top, filters, k):
        line, chunk = thread // CHUNKS, thread % CHUNKS
        for load in range(loads):
            starts[load] = materialize(min(top + line + load * lines, filters - 1) * k + chunk * (k // CHUNKS))
        return materialize((line * CHUNKS + (chunk ^ line // 2 % CHUNKS)) * vector)

    return find


def _pixel_finder(tiling: StagedTiles, groups: int) -> Any:
    """Return a device function that finds which pixels a thread loads, and returns the tap of its first term.

    `pixel_offsets` and `into` have an element for each group (see `patch_loader` and `patch_filler`), `masks` one for
    each two pixels; taps are counted line by line.
    """
    vector = tiling.vector
    b_chunks = tiling.b_chunks
    size_a = tiling.size_a
    swizzle = tiling.swizzle_b
    lanes = tiling.columns // (groups * PIXELS)
    group_stride = tiling.columns // groups

    @inlined
    def find(pixel_offsets, masks, into, x, r, thread, left):
        images, channels, height, width = x.shape
        plane, pad, term = height * width, r // 2, thread // lanes
        down, right = term // r % r - pad, term % r - pad
        swizzled = term * swizzle // 2 % 8
        for group in range(groups):
            column = thread % lanes * PIXELS + group * group_stride
            at = left + column
            image, pixel = at // plane, at % plane
            for j in range(0, PIXELS, 2):
                both = _mask_of(pixel + j, height, width, pad) | _mask_of(pixel + j + 1, height, width, pad) << 16
                masks[group * PIXELS // 2 + j // 2] = np.int32(both if at < images * plane else ALL_MASKED * 65537)
            first = (image * channels + term // (r * r)) * plane + pixel + down * width + right
            pixel_offsets[group] = np.int32(first if at < images * plane else 0)
            into[group] = materialize(
                size_a + (term * b_chunks + (column // vector ^ swizzled)) * vector + column % vector
            )
        return np.int32(term % (r * r))

    return find


@inlined
def _mask_of(pixel: Any, height: Any, width: Any, pad: Any) -> Any:
    """Return the padding mask of a pixel (see `patches`)."""
    y, z, r = pixel // width, pixel % width, 2 * pad + 1
    lines = (1 << min(height + pad - y, r)) - (1 << max(pad - y, 0))
    columns = (1 << min(width + pad - z, r)) - (1 << max(pad - z, 0))
    return ALL_MASKED ^ (lines | columns << MAX_R)


def _tap_table_filler(tiling: StagedTiles) -> Any:
    """Return a device function that writes what is needed of each tap of the window, with all threads.

    `tap_bits`: its bits (see `patches`); `steps`: how many elements behind it a thread's next term lies; `next_tap`:
    the tap of that term.
    """
    threads = tiling.threads
    vector = tiling.vector

    @inlined
    def fill(tap_bits, steps, next_tap, thread, x, r):
        _, _, height, width = x.shape
        for tap in range(thread, r * r, threads):
            term = tap + vector
            down, right = term // r % r - tap // r, term % r - tap % r
            steps[tap] = np.int32(term // (r * r) * (height * width) + down * width + right)
            next_tap[tap] = np.int32(term % (r * r))
            tap_bits[tap] = np.int32((1 << tap // r | 1 << MAX_R + tap % r) * 65537)
        cuda.syncthreads()

    return fill


def _term_stepper(groups: int) -> Any:
    """Return a device function that goes on to a thread's next term, and returns its tap."""

    @inlined
    def advance(pixel_offsets, steps, next_tap, tap):
        for group in range(groups):
            pixel_offsets[group] = np.int32(pixel_offsets[group] + steps[tap])
        return next_tap[tap]

    return advance


def _whole_tiles(tiling: StagedTiles, name: str, groups: int) -> Any:
    """Return a device function that goes along the terms as long as there is another tile to be loaded.

    `start` and `end`: terms of a part of the channels, of the first tile that it starts to load and the first that it
    does not. Returns the tap of the thread's next term.
    """
    vector = tiling.vector
    size = tiling.size
    loads = tiling.loads[0]
    copy_a = vectors_copier(loads, tiling.threads * vector)
    advance = _term_stepper(groups)
    (load_lower, load_upper), (fill_lower, fill_upper) = _halves_of(tiling, groups)
    multiply_lower, multiply_upper = (half_multiplier(tiling, name, half) for half in range(2))

    def stage(number: int) -> Any:
        """Return the device function for one of the pairs that the loop takes at a time."""
        now = number * size
        free = (number + STAGES - 1) % STAGES * size
        ahead = number * vector

        @inlined
        def step(sums, fragments, tiles, staged, arrays, patches, copies, term, tap):
            (a_fragments, b_fragments, a_offsets, b_offsets), (x, weights, part_stride) = fragments, arrays
            (pixel_offsets, masks, into, tap_bits, steps, next_tap), (starts, into_a) = patches, copies
            wait_for_copies(IN_FLIGHT)
            cuda.syncthreads()
            load_lower(staged, x, pixel_offsets, part_stride, tap_bits[tap], masks)
            copy_a(tiles, into_a + free, weights, starts, term + ahead)
            commit_copies()
            multiply_lower(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, now)
            fill_lower(tiles, staged, into, free)
            load_upper(staged, x, pixel_offsets, part_stride, tap_bits[tap], masks)
            multiply_upper(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, now)
            fill_upper(tiles, staged, into, free)
            return advance(pixel_offsets, steps, next_tap, tap)

        return step

    first, second, third, last = map(stage, range(STAGES))

    @inlined
    def main_loop(sums, fragments, tiles, staged, arrays, patches, copies, start, end, tap):
        for term in range(start, end, STAGES * vector):
            tap = first(sums, fragments, tiles, staged, arrays, patches, copies, term, tap)
            tap = second(sums, fragments, tiles, staged, arrays, patches, copies, term, tap)
            tap = third(sums, fragments, tiles, staged, arrays, patches, copies, term, tap)
            tap = last(sums, fragments, tiles, staged, arrays, patches, copies, term, tap)
        return tap

    return main_loop


def _halves_of(tiling: StagedTiles, groups: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return what loads, and what stores, the lower and the upper two parts of the channels."""
    part = tiling.vector * tiling.columns
    return (
        (patch_loader(groups, (0, 1)), patch_loader(groups, (2, 3))),
        (patch_filler(groups, (0, 1), part), patch_filler(groups, (2, 3), part)),
    )


def _pair_loader(tiling: StagedTiles, groups: int) -> Any:
    """Return a device function that fills a pair of tiles, and returns the tap of the thread's next term."""
    copy_a = vectors_copier(tiling.loads[0], tiling.threads * tiling.vector)
    advance = _term_stepper(groups)
    (load_lower, load_upper), (fill_lower, fill_upper) = _halves_of(tiling, groups)

    @inlined
    def load(tiles, staged, arrays, patches, copies, first, term, tap):
        (x, weights, part_stride), (starts, into_a) = arrays, copies
        pixel_offsets, masks, into, tap_bits, steps, next_tap = patches
        copy_a(tiles, into_a + first, weights, starts, term)
        load_lower(staged, x, pixel_offsets, part_stride, tap_bits[tap], masks)
        fill_lower(tiles, staged, into, first)
        load_upper(staged, x, pixel_offsets, part_stride, tap_bits[tap], masks)
        fill_upper(tiles, staged, into, first)
        return advance(pixel_offsets, steps, next_tap, tap)

    return load


def _by_part(tiling: StagedTiles, name: str, groups: int) -> Any:
    """Return a device function that adds up a block's tile where all tiles are whole."""
    vector = tiling.vector
    size = tiling.size
    depth = tiling.depth
    loads = tiling.loads[0]
    pairs = groups * PIXELS // 2
    waiting = 2 * groups * PIXELS
    find_starts = _start_finder(tiling)
    find_pixels = _pixel_finder(tiling, groups)
    fill_tables = _tap_table_filler(tiling)
    load_pair = _pair_loader(tiling, groups)
    main_loop = _whole_tiles(tiling, name, groups)
    multiply = tile_multiplier(tiling, name)

    @inlined
    def add_up(sums, fragments, tiles, thread, arrays, corner):
        tap_bits = cuda.shared.array(TAPS, np.int32)
        steps = cuda.shared.array(TAPS, np.int32)
        next_tap = cuda.shared.array(TAPS, np.int32)
        staged = cuda.local.array(waiting, np.uint32)
        pixel_offsets, into = cuda.local.array(groups, np.int32), cuda.local.array(groups, np.int32)
        masks, starts = cuda.local.array(pairs, np.int32), cuda.local.array(loads, np.uint32)
        (a_fragments, b_fragments, a_offsets, b_offsets), (x, weights, (filters, r, k)), (top, left) = (
            fragments,
            arrays,
            corner,
        )
        fill_tables(tap_bits, steps, next_tap, thread, x, r)
        tap = find_pixels(pixel_offsets, masks, into, x, r, thread, left)
        copies = starts, find_starts(starts, thread, top, filters, k)
        patches = pixel_offsets, masks, into, tap_bits, steps, next_tap
        sources = x, weights, np.int32(x.shape[1] // CHUNKS * (x.shape[2] * x.shape[3]))
        count = k // depth
        for ahead in range(STAGES - 1):
            if ahead < count:
                tap = load_pair(tiles, staged, sources, patches, copies, ahead * size, ahead * vector, tap)
            commit_copies()
        done = max(count - STAGES + 1, 0) // STAGES * STAGES
        start, end = (STAGES - 1) * vector, (STAGES - 1 + done) * vector
        tap = main_loop(sums, fragments, tiles, staged, sources, patches, copies, start, end, tap)
        count = materialize(x.shape[1]) * (r * r) // depth  # so that it takes no registers before
        for tile in range(max(count - STAGES + 1, 0) // STAGES * STAGES, count):
            wait_for_copies(IN_FLIGHT)
            cuda.syncthreads()
            ahead = tile + STAGES - 1
            if ahead < count:
                free = ahead % STAGES * size
                tap = load_pair(tiles, staged, sources, patches, copies, free, ahead * vector, tap)
            commit_copies()
            multiply(sums, a_fragments, b_fragments, tiles, a_offsets, b_offsets, tile % STAGES * size)

    return add_up


def _image_storer(tiling: StagedTiles) -> Any:
    """Return a device function that stores a thread's sums, each in the image that its pixel belongs to.

    Everything is computed from the thread's number again, so that it takes no registers before.
    """
    rows = tiling.rows
    columns = tiling.columns
    store = pixel_storer(M_TILES, N_TILES)
    warps_across = columns // WARP_TILE

    @inlined
    def put(out, sums, thread):
        images, filters, height, width = out.shape
        warp, lane, plane, left = thread // WARP, thread % WARP, height * width, materialize(cuda.blockIdx.x) * columns
        image, top = left // plane, materialize(cuda.blockIdx.y) * rows + warp // warps_across * WARP_TILE + lane // 4
        first_pixel = left % plane + warp % warps_across * WARP_TILE + lane % 4 * 2
        start, end = (image * filters + top) * plane, (images - image) * plane
        store(out, sums, start, first_pixel, end, plane, filters * plane, filters - top)

    return put


def _make(dtype: DType, block: Block) -> Kernel:
    """Return the kernel that writes x (b, c, h, w) * weights (o, c, r, r) to `out` (b, o, h, w)."""
    element = dtype.storage
    width, height = block
    kind = sum_type(dtype)
    vector = vector_length(element)
    rows, columns = warp_tile(block)
    tiling = StagedTiles(rows, columns, width * height, vector)
    find_thread = thread_finder(tiling, block)
    put = _image_storer(tiling)
    find_fragment_offsets = fragment_offset_finder(vector, tiling.b_chunks)
    threads = tiling.threads
    groups = tiling.columns * vector // threads // PIXELS  # of pixels that a thread loads, of each part of the channels
    add_parts = _by_part(tiling, dtype.name, groups)
    add_numbers = _by_number(tiling, dtype.name)

    def conv2d(x, weights, out):
        tiles = cuda.shared.array(0, element, ALIGNMENT)
        sums = cuda.local.array(SUMS, kind)
        a_fragments, b_fragments = cuda.local.array(FRAGMENTS, np.uint32), cuda.local.array(FRAGMENTS, np.uint32)
        a_offsets, b_offsets = cuda.local.array(2, np.int32), cuda.local.array(LDMATRIX_ADDRESSES, np.int32)
        (thread, lane, row, column), (filters, channels, r, _) = find_thread(), weights.shape
        corner, plane = (cuda.blockIdx.y * rows, cuda.blockIdx.x * columns), x.shape[2] * x.shape[3]
        fragments, arrays = (
            (a_fragments, b_fragments, a_offsets, b_offsets),
            (x, weights, (filters, r, channels * r * r)),
        )
        find_fragment_offsets(a_offsets, b_offsets, lane, row, column)
        clear(sums, SUMS)
        if r <= MAX_R and channels % (CHUNKS * vector) == 0 and plane % PIXELS == 0 and x.size <= MOST_NUMBERS:
            add_parts(sums, fragments, tiles, thread, arrays, corner)
        else:
            add_numbers(sums, fragments, tiles, thread, arrays, corner)
        put(out, sums, materialize(thread) & (threads - 1))

    return conv2d


KERNEL = CudaKernel(
    _make,
    WARP_PATCH_TILES,
    resident_threads=OF_MATRICES.resident_threads,
    dynamic_shared_bytes=OF_MATRICES.dynamic_shared_bytes,
)
