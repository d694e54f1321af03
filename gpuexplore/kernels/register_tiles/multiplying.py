"""A thread's sums: terms of two tiles in shared memory added to them, and what they are in the end stored."""

from typing import Any

from gpuexplore.kernels.cuda_kernel import inlined
from gpuexplore.kernels.formats.numba_cuda import narrow
from gpuexplore.kernels.intrinsics.outer_products import Lines, outer_adder
from gpuexplore.kernels.intrinsics.vectors import store_vector, write
from gpuexplore.kernels.register_tiles.tiling import WARP_HEIGHT, WARP_WIDTH, Tiling

STORED = 8  # rows of sums that LLVM unrolls the stores of


def tile_multipliers(tiling: Tiling) -> tuple[Any, Any]:
    """Return device functions that add the product of two tiles to a thread's sums: written out, and in a loop.

    Their arguments: the sums, the tiles, and where in them the thread's first vectors lie.
    """
    rows = Lines(tiling.down, tiling.wide, tiling.wide * WARP_HEIGHT, tiling.padded)
    columns = Lines(tiling.across, tiling.wide, tiling.wide * WARP_WIDTH, tiling.columns)
    return outer_adder(tiling.depth, rows, columns), adder_in_loop(tiling.depth, rows, columns)


def adder_in_loop(terms: int, rows: Lines, columns: Lines) -> Any:
    """Return a device function that does as `outer_adder` does, with the terms in a loop: less code, for edges."""
    add, step_a, step_b = outer_adder(1, rows, columns), rows.term, columns.term

    @inlined
    def add_in_loop(sums, tile_a, tile_b, at_a, at_b):
        for term in range(terms):
            add(sums, tile_a, tile_b, at_a + term * step_a, at_b + term * step_b)

    return add_in_loop


def sum_storer(tiling: Tiling) -> Any:
    """Return a device function that stores a thread's sums where they are inside a matrix, (m, n), of the output."""
    across, wide, keeps_format, halves = tiling.across, tiling.wide, tiling.storage is tiling.kind, tiling.down > STORED

    @inlined
    def store_rows(out, sums, start, row, column, m, n, first):
        below, beside = m - row, n - column
        for i in range(first, first + STORED):
            lower = i // wide * wide * WARP_HEIGHT + i % wide
            for j in range(0, across, wide):
                right = j * WARP_WIDTH
                place = start + (row + lower) * n + column + right
                if keeps_format and n % wide == 0:
                    if lower < below and right < beside:
                        store_vector(out, place, sums, i * across + j)
                else:
                    for each in range(wide):
                        if lower < below and right + each < beside:
                            write(out, place + each, narrow(sums[i, j + each], out.dtype))

    @inlined
    def store(out, sums, start, row, column, m, n):
        store_rows(out, sums, start, row, column, m, n, 0)
        if halves:
            store_rows(out, sums, start, row, column, m, n, STORED)

    return store
