"""The steps of a block along k: tiles are loaded and filled while others are multiplied."""

from typing import Any

from numba import cuda

from gpuexplore.kernels.cuda_kernel import Kernel, inlined, narrow, widen
from gpuexplore.kernels.intrinsics.tensor_cores import Lines, outer_adder
from gpuexplore.kernels.intrinsics.vectors import (
    ALIGNMENT,
    edge_loader,
    lines_loader,
    store_vector,
    vector_loader,
    write,
)
from gpuexplore.kernels.register_tiles.tiling import (
    WARP_HEIGHT,
    WARP_WIDTH,
    LoadShare,
    Tiling,
    load_coordinates,
    sum_coordinates,
)

Loader = tuple[Any, Any]

UNROLLED_ROWS = 8  # rows of sums that LLVM unrolls the stores of


def tile_memory(tiling: Tiling) -> Any:
    """Return a device function that gives a thread's registers and the pairs of tiles in shared memory."""
    kind = tiling.kind
    storage = tiling.storage
    thread_rows = tiling.thread_rows
    thread_columns = tiling.thread_columns
    pair_a, pair_b = (2 * size for size in tiling.sizes)
    loaded_a = tiling.share_a.elements
    loaded_b = tiling.share_b.elements

    @inlined
    def allocate():
        tile_a = cuda.shared.array(pair_a, kind, ALIGNMENT)  # transposed
        tile_b = cuda.shared.array(pair_b, kind, ALIGNMENT)
        sums = cuda.local.array((thread_rows, thread_columns), kind, ALIGNMENT)
        staged_a = cuda.local.array(loaded_a, storage, ALIGNMENT)
        staged_b = cuda.local.array(loaded_b, storage, ALIGNMENT)
        for i in range(thread_rows):
            for j in range(thread_columns):
                sums[i, j] = kind(0)
        return (sums, (staged_a, staged_b)), (tile_a, tile_b)

    return allocate


def unrolled_main_loop(tiling: Tiling, loaders: tuple[Loader, Loader], fill_b: Any = None) -> Any:
    """Return a device function that adds up the product of a row and a column of tiles, each tile written out.

    Its arguments: what `tile_memory` gave, the arrays, the loaders' cursors, where in the tiles the thread fills and
    reads, and k.
    """
    (load_a, next_a), (load_b, next_b) = loaders
    fill_a = _a_filler(tiling)
    fill_b = fill_b or _b_filler(tiling)
    size_a, size_b = tiling.sizes
    multiply, _ = _tile_multipliers(tiling)
    depth = tiling.depth

    @inlined
    def main_loop(registers, tiles, arrays, cursors, tile_offsets, k):
        sums, (staged_a, staged_b) = registers
        tile_a, tile_b = tiles
        a, b = arrays
        a_cursor, b_cursor = cursors
        into_a, into_b, y, x = tile_offsets
        load_a(staged_a, a, a_cursor)
        load_b(staged_b, b, b_cursor)
        fill_a(tile_a, staged_a, into_a)
        fill_b(tile_b, staged_b, into_b)
        cuda.syncthreads()
        now = 0
        for _ in range(depth, k, depth):
            a_cursor = next_a(a_cursor)
            b_cursor = next_b(b_cursor)
            load_a(staged_a, a, a_cursor)
            load_b(staged_b, b, b_cursor)
            multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)
            now = 1 - now
            fill_a(tile_a, staged_a, now * size_a + into_a)
            fill_b(tile_b, staged_b, now * size_b + into_b)
            cuda.syncthreads()
        multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)

    return main_loop


def compact_main_loop(tiling: Tiling, loaders: tuple[Loader, Loader], fill_b: Any = None) -> Any:
    """Return the device function of `unrolled_main_loop` with the terms of a tile in a loop: less code, for edges."""
    (load_a, next_a), (load_b, next_b) = loaders
    fill_a = _a_filler(tiling)
    fill_b = fill_b or _b_filler(tiling)
    size_a, size_b = tiling.sizes
    _, multiply = _tile_multipliers(tiling)
    depth = tiling.depth

    @inlined
    def main_loop(registers, tiles, arrays, cursors, tile_offsets, k):
        sums, (staged_a, staged_b) = registers
        tile_a, tile_b = tiles
        a, b = arrays
        a_cursor, b_cursor = cursors
        into_a, into_b, y, x = tile_offsets
        now = 1
        for term in range(-depth, k, depth):
            load_a(staged_a, a, a_cursor)
            load_b(staged_b, b, b_cursor)
            a_cursor = next_a(a_cursor)
            b_cursor = next_b(b_cursor)
            if term >= 0:
                multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)
            now = 1 - now
            fill_a(tile_a, staged_a, now * size_a + into_a)
            fill_b(tile_b, staged_b, now * size_b + into_b)
            cuda.syncthreads()

    return main_loop


# A thread's sums: terms of two tiles in shared memory added to them, and what they are in the end stored.


def _tile_multipliers(tiling: Tiling) -> tuple[Any, Any]:
    """Return device functions that add the product of two tiles to a thread's sums: written out, and in a loop.

    Their arguments: the sums, the tiles, and where in them the thread's first vectors lie.
    """
    rows = Lines(tiling.thread_rows, tiling.shared_vector, tiling.shared_vector * WARP_HEIGHT, tiling.padded)
    columns = Lines(tiling.thread_columns, tiling.shared_vector, tiling.shared_vector * WARP_WIDTH, tiling.columns)
    return outer_adder(tiling.depth, rows, columns), adder_in_loop(tiling.depth, rows, columns)


def adder_in_loop(terms: int, rows: Lines, columns: Lines) -> Any:
    """Return a device function that does as `outer_adder` does, with the terms in a loop: less code, for edges."""
    add = outer_adder(1, rows, columns)
    step_a = rows.term
    step_b = columns.term

    @inlined
    def add_in_loop(sums, tile_a, tile_b, at_a, at_b):
        for term in range(terms):
            add(sums, tile_a, tile_b, at_a + term * step_a, at_b + term * step_b)

    return add_in_loop


def _sum_storer(tiling: Tiling) -> Any:
    """Return a device function that stores a thread's sums where they are inside a matrix, (m, n), of the output."""
    thread_columns = tiling.thread_columns
    shared_vector = tiling.shared_vector
    keeps_format = tiling.storage is tiling.kind
    halves = tiling.thread_rows > UNROLLED_ROWS

    @inlined
    def store_rows(out, sums, start, row, column, m, n, first):
        m_left = m - row
        n_left = n - column
        for i in range(first, first + UNROLLED_ROWS):
            lower = i // shared_vector * shared_vector * WARP_HEIGHT + i % shared_vector
            for j in range(0, thread_columns, shared_vector):
                right = j * WARP_WIDTH
                offset = start + (row + lower) * n + column + right
                if keeps_format and n % shared_vector == 0:
                    if lower < m_left and right < n_left:
                        store_vector(out, offset, sums, i * thread_columns + j)
                else:
                    for each in range(shared_vector):
                        if lower < m_left and right + each < n_left:
                            write(out, offset + each, narrow(sums[i, j + each], out.dtype))

    @inlined
    def store(out, sums, start, row, column, m, n):
        store_rows(out, sums, start, row, column, m, n, 0)
        if halves:
            store_rows(out, sums, start, row, column, m, n, UNROLLED_ROWS)

    return store


# Elements of A and B on their way from device memory to the tiles: into a thread's registers, then into the tiles.
#
# A loader is two device functions: one loads what lies at a cursor into registers, the other returns the cursor of the
# next tile. What is in a cursor, each loader says; the thread's part of it is computed once, before the first step.


def _whole_a_loader(tiling: Tiling) -> Loader:
    """Return the loader of a tile inside A; its cursor is the thread's first element and k."""
    depth = tiling.depth

    @inlined
    def advance(cursor):
        return cursor[0] + depth, cursor[1]

    return _whole(tiling.share_a), advance


def _whole_b_loader(tiling: Tiling) -> Loader:
    """Return the loader of a tile inside B; its cursor is the thread's first element and n."""
    depth = tiling.depth

    @inlined
    def advance(cursor):
        return cursor[0] + depth * cursor[1], cursor[1]

    return _whole(tiling.share_b), advance


def _whole(share: LoadShare) -> Any:
    sweep = share.sweep
    load_lines = lines_loader(share.count, share.vector)

    @inlined
    def load(staged, source, cursor):
        at, width = cursor
        load_lines(staged, source, at, sweep * width)

    return load


def repeating_a_loader(tiling: Tiling) -> Loader:
    """Return the loader of whole vectors that repeats A's last row below it; its cursor is `edge_a_loader`'s."""
    count = tiling.share_a.count
    sweep = tiling.share_a.sweep
    vector = tiling.share_a.vector
    load_vector = vector_loader(vector)
    _, advance = edge_a_loader(tiling)

    @inlined
    def load(staged, source, cursor):
        start, row, term, m, k = cursor
        for i in range(count):
            load_vector(staged, i * vector, source, start + min(row + i * sweep, m - 1) * k + term)

    return load, advance


def edge_a_loader(tiling: Tiling) -> Loader:
    """Return the loader with zeros beyond A; its cursor is where A starts, the thread's row and term, m and k."""
    depth = tiling.depth

    @inlined
    def advance(cursor):
        start, row, term, m, k = cursor
        return start, row, term + depth, m, k

    return _with_zeros(tiling.share_a), advance


def _edge_b_loader(tiling: Tiling) -> Loader:
    """Return the loader with zeros beyond B; its cursor is where B starts, the thread's term and column, k and n."""
    depth = tiling.depth

    @inlined
    def advance(cursor):
        start, term, column, k, n = cursor
        return start, term + depth, column, k, n

    return _with_zeros(tiling.share_b), advance


def _with_zeros(share: LoadShare) -> Any:
    load_vectors = edge_loader(share.count, share.sweep, share.vector)

    @inlined
    def load(staged, source, cursor):
        start, row, column, height, width = cursor
        load_vectors(staged, source, start, row, column, height, width)

    return load


def _a_filler(tiling: Tiling) -> Any:
    """Return a device function that puts what a thread loaded of A into its tile, row by row as columns."""
    count = tiling.share_a.count
    sweep = tiling.share_a.sweep
    vector = tiling.share_a.vector
    padded = tiling.padded

    @inlined
    def fill(tile, staged, into):
        for load in range(count):
            for i in range(vector):
                write(tile, into + load * sweep + i * padded, widen(staged[load * vector + i]))

    return fill


def _b_filler(tiling: Tiling) -> Any:
    """Return a device function that puts what a thread loaded of B into its tile."""
    count = tiling.share_b.count
    vector = tiling.share_b.vector
    step = tiling.share_b.sweep * tiling.columns

    @inlined
    def fill(tile, staged, into):
        for load in range(count):
            for i in range(vector):
                write(tile, into + load * step + i, widen(staged[load * vector + i]))

    return fill


# The product of two matrices, which may lie in larger arrays: a block's tile of it, made of steps along k.


def matrix_product(tiling: Tiling) -> Any:
    """Return a device function that writes a tile of the product of two matrices.

    Its arguments: the arrays a, b and out, the offsets in them at which the matrices start, the first row and column of
    the tile, and the lengths m, k and n. Where the tile and all that it is made of lie inside the matrices, it looks
    at no bounds.
    """
    rows = tiling.rows
    columns = tiling.columns
    depth = tiling.depth
    padded = tiling.padded
    vector = tiling.share_b.vector
    width = tiling.block[0]
    last = tiling.threads - 1
    inside = unrolled_main_loop(tiling, (_whole_a_loader(tiling), _whole_b_loader(tiling)))
    along_edges = compact_main_loop(tiling, (edge_a_loader(tiling), _edge_b_loader(tiling)))
    allocate = tile_memory(tiling)
    load_position = load_coordinates(tiling)
    sum_position = sum_coordinates(tiling)
    store = _sum_storer(tiling)

    @inlined
    def multiply(arrays, starts, corner, lengths):
        a, b, out = arrays
        a_start, b_start, out_start = starts
        top, left = corner
        m, k, n = lengths
        registers, tiles = allocate()
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & last  # & says that it is not negative
        y, x = sum_position(thread)
        a_row, a_term, b_term, b_column = load_position(thread)
        tile_offsets = a_term * padded + a_row, b_term * columns + b_column, y, x
        if top + rows <= m and left + columns <= n and k > 0 and k % depth == 0 and n % vector == 0:
            cursors = (a_start + (top + a_row) * k + a_term, k), (b_start + b_term * n + left + b_column, n)
            inside(registers, tiles, (a, b), cursors, tile_offsets, k)
        else:
            edge_cursors = (a_start, top + a_row, a_term, m, k), (b_start, b_term, left + b_column, k, n)
            along_edges(registers, tiles, (a, b), edge_cursors, tile_offsets, k)
        store(out, registers[0], out_start, top + y, left + x, m, n)

    return multiply


def matrix_kernel(tiling: Tiling, passes: int = 1) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n), each block `passes` tiles below each other."""
    multiply = matrix_product(tiling)
    rows = tiling.rows
    columns = tiling.columns
    further = passes > 1

    def matmul(a, b, out):
        for tile in range(passes):
            corner = (cuda.blockIdx.y * passes + tile) * rows, cuda.blockIdx.x * columns
            multiply((a, b, out), (0, 0, 0), corner, (out.shape[0], a.shape[1], out.shape[1]))
            if further:
                cuda.syncthreads()

    return matmul
