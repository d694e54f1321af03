"""The product of two matrices, which may lie in larger arrays: a block's tile of it, made of steps along k."""

from typing import Any

from numba import cuda

from gpuexplore.kernels.cuda_kernel import Kernel, inlined
from gpuexplore.kernels.register_tiles.steps import (
    edge_a_loader,
    edge_b_loader,
    memory,
    short_steps,
    steps,
    sum_storer,
    whole_a_loader,
    whole_b_loader,
)
from gpuexplore.kernels.register_tiles.tiling import Tiling, load_places, sum_places


def matrix_product(tiling: Tiling) -> Any:
    """Return a device function that writes a tile of the product of two matrices.

    Its arguments: the arrays a, b and out, the places in them where the matrices start, the first row and column of
    the tile, and the lengths m, k and n. Where the tile and all that it is made of lie inside the matrices, it looks
    at no bounds.
    """
    rows, columns, depth, padded, vector = (
        tiling.rows,
        tiling.columns,
        tiling.depth,
        tiling.padded,
        tiling.share_b.vector,
    )
    (width, _), last = tiling.block, tiling.threads - 1
    inside = steps(tiling, (whole_a_loader(tiling), whole_b_loader(tiling)))
    along_edges = short_steps(tiling, (edge_a_loader(tiling), edge_b_loader(tiling)))
    reserve, placed, sums_placed, store = memory(tiling), load_places(tiling), sum_places(tiling), sum_storer(tiling)

    @inlined
    def multiply(arrays, starts, corner, lengths):
        (a, b, out), (a_start, b_start, out_start), (top, left), (m, k, n) = arrays, starts, corner, lengths
        registers, tiles = reserve()
        thread = (cuda.threadIdx.y * width + cuda.threadIdx.x) & last  # & says that it is not negative
        (y, x), (a_row, a_term, b_term, b_column) = sums_placed(thread), placed(thread)
        tile_places = a_term * padded + a_row, b_term * columns + b_column, y, x
        if top + rows <= m and left + columns <= n and k > 0 and k % depth == 0 and n % vector == 0:
            places = (a_start + (top + a_row) * k + a_term, k), (b_start + b_term * n + left + b_column, n)
            inside(registers, tiles, (a, b), places, tile_places, k)
        else:
            edges = (a_start, top + a_row, a_term, m, k), (b_start, b_term, left + b_column, k, n)
            along_edges(registers, tiles, (a, b), edges, tile_places, k)
        store(out, registers[0], out_start, top + y, left + x, m, n)

    return multiply


def matrix_kernel(tiling: Tiling, passes: int = 1) -> Kernel:
    """Return the kernel that writes (m, k) @ (k, n) to `out` (m, n), each block `passes` tiles below each other."""
    multiply, rows, columns, further = matrix_product(tiling), tiling.rows, tiling.columns, passes > 1

    def matmul(a, b, out):
        for tile in range(passes):
            corner = (cuda.blockIdx.y * passes + tile) * rows, cuda.blockIdx.x * columns
            multiply((a, b, out), (0, 0, 0), corner, (out.shape[0], a.shape[1], out.shape[1]))
            if further:
                cuda.syncthreads()

    return matmul
