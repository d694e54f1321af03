"""A thread's sums: terms of two tiles in shared memory added to them, and what they are in the end stored."""

from typing import Any

from gpuexplore.kernels.cuda_kernel import inlined
from gpuexplore.kernels.formats.numba_cuda import narrow
from gpuexplore.kernels.intrinsics.vectors import load_vector, store_vector, write
from gpuexplore.kernels.register_tiles.tiling import WARP_HEIGHT, WARP_WIDTH, Tiling

STORED = 8  # rows of sums that LLVM unrolls the stores of


def tile_multipliers(tiling: Tiling) -> tuple[Any, Any]:
    """Return device functions that add the product of two tiles to a thread's sums: written out, and in a loop.

    Their arguments: the sums, the registers for a column of A and a row of B, the tiles, and where in them the
    thread's first vectors lie.
    """
    down, across, wide, depth = tiling.down, tiling.across, tiling.wide, tiling.depth
    step_a, step_b = tiling.padded, tiling.columns

    @inlined
    def multiply(sums, a_column, b_row, tile_a, tile_b, at_a, at_b):
        for i in range(0, down, wide):
            load_vector(a_column, i, tile_a, at_a + i * WARP_HEIGHT)
        for j in range(0, across, wide):
            load_vector(b_row, j, tile_b, at_b + j * WARP_WIDTH)
        for i in range(down):
            for j in range(across):
                sums[i, j] += a_column[i] * b_row[j]

    @inlined
    def multiply_in_loop(sums, a_column, b_row, tile_a, tile_b, at_a, at_b):
        for term in range(depth):
            multiply(sums, a_column, b_row, tile_a, tile_b, at_a + term * step_a, at_b + term * step_b)

    return _written_out(multiply, depth, step_a, step_b), multiply_in_loop


def _written_out(multiply: Any, terms: int, step_a: int, step_b: int) -> Any:
    """Return a device function that does `multiply` for so many terms, each step further, without a loop.

    LLVM unrolls no loop over so many instructions; functions made of two halves it inlines.
    """
    if terms == 1:
        return multiply
    half = _written_out(multiply, terms // 2, step_a, step_b)
    further_a, further_b = terms // 2 * step_a, terms // 2 * step_b

    @inlined
    def both(sums, a_column, b_row, tile_a, tile_b, at_a, at_b):
        half(sums, a_column, b_row, tile_a, tile_b, at_a, at_b)
        half(sums, a_column, b_row, tile_a, tile_b, at_a + further_a, at_b + further_b)

    return both


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
