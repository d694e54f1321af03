"""The steps of a block along k: tiles are loaded and filled while others are multiplied."""

from typing import Any

from numba import cuda

from gpuexplore.kernels.cuda_kernel import inlined
from gpuexplore.kernels.intrinsics.vectors import ALIGNMENT
from gpuexplore.kernels.register_tiles.loading import Loader, a_filler, b_filler
from gpuexplore.kernels.register_tiles.multiplying import tile_multipliers
from gpuexplore.kernels.register_tiles.tiling import Tiling


def memory(tiling: Tiling) -> Any:
    """Return a device function that gives a thread's registers and the pairs of tiles in shared memory."""
    kind, storage, down, across = tiling.kind, tiling.storage, tiling.down, tiling.across
    pair_a, pair_b = (2 * size for size in tiling.sizes)
    loaded_a, loaded_b = tiling.share_a.elements, tiling.share_b.elements

    @inlined
    def reserve():
        tile_a = cuda.shared.array(pair_a, kind, ALIGNMENT)  # transposed
        tile_b = cuda.shared.array(pair_b, kind, ALIGNMENT)
        sums = cuda.local.array((down, across), kind, ALIGNMENT)
        staged_a = cuda.local.array(loaded_a, storage, ALIGNMENT)
        staged_b = cuda.local.array(loaded_b, storage, ALIGNMENT)
        for i in range(down):
            for j in range(across):
                sums[i, j] = kind(0)
        return (sums, (staged_a, staged_b)), (tile_a, tile_b)

    return reserve


def steps(tiling: Tiling, loaders: tuple[Loader, Loader], fill_b: Any = None) -> Any:
    """Return a device function that adds up the product of a row and a column of tiles, each tile written out.

    Its arguments: what `memory` gave, the arrays, the loaders' places, where in the tiles the thread fills and reads,
    and k.
    """
    (load_a, next_a), (load_b, next_b) = loaders
    fill_a, fill_b, (size_a, size_b) = a_filler(tiling), fill_b or b_filler(tiling), tiling.sizes
    (multiply, _), depth = tile_multipliers(tiling), tiling.depth

    @inlined
    def go(registers, tiles, arrays, places, tile_places, k):
        sums, (staged_a, staged_b) = registers
        (tile_a, tile_b), (a, b), (a_place, b_place), (into_a, into_b, y, x) = tiles, arrays, places, tile_places
        load_a(staged_a, a, a_place)
        load_b(staged_b, b, b_place)
        fill_a(tile_a, staged_a, into_a)
        fill_b(tile_b, staged_b, into_b)
        cuda.syncthreads()
        now = 0
        for _ in range(depth, k, depth):
            a_place, b_place = next_a(a_place), next_b(b_place)
            load_a(staged_a, a, a_place)
            load_b(staged_b, b, b_place)
            multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)
            now = 1 - now
            fill_a(tile_a, staged_a, now * size_a + into_a)
            fill_b(tile_b, staged_b, now * size_b + into_b)
            cuda.syncthreads()
        multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)

    return go


def short_steps(tiling: Tiling, loaders: tuple[Loader, Loader], fill_b: Any = None) -> Any:
    """Return a device function that does as `steps` does with the terms of a tile in a loop: less code, for edges."""
    (load_a, next_a), (load_b, next_b) = loaders
    fill_a, fill_b, (size_a, size_b) = a_filler(tiling), fill_b or b_filler(tiling), tiling.sizes
    (_, multiply), depth = tile_multipliers(tiling), tiling.depth

    @inlined
    def go(registers, tiles, arrays, places, tile_places, k):
        sums, (staged_a, staged_b) = registers
        (tile_a, tile_b), (a, b), (a_place, b_place), (into_a, into_b, y, x) = tiles, arrays, places, tile_places
        now = 1
        for term in range(-depth, k, depth):
            load_a(staged_a, a, a_place)
            load_b(staged_b, b, b_place)
            a_place, b_place = next_a(a_place), next_b(b_place)
            if term >= 0:
                multiply(sums, tile_a, tile_b, now * size_a + y, now * size_b + x)
            now = 1 - now
            fill_a(tile_a, staged_a, now * size_a + into_a)
            fill_b(tile_b, staged_b, now * size_b + into_b)
            cuda.syncthreads()

    return go
