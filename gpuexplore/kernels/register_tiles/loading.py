"""Elements of A and B on their way from device memory to the tiles: into a thread's registers, then into the tiles.

A loader is two device functions: one loads what lies at a place into registers, the other returns the place of the
next tile. What a place is, each loader says; the thread's part of it is found once, before the first step.
"""

from typing import Any

from gpuexplore.kernels.cuda_kernel import inlined
from gpuexplore.kernels.formats.numba_cuda import widen
from gpuexplore.kernels.intrinsics.edges import edge_loader
from gpuexplore.kernels.intrinsics.vectors import lines_loader, vector_loader, write
from gpuexplore.kernels.register_tiles.tiling import Share, Tiling

Loader = tuple[Any, Any]


def whole_a_loader(tiling: Tiling) -> Loader:
    """Return the loader of a tile inside A; its place is the thread's first element and k."""
    depth = tiling.depth

    @inlined
    def following(place):
        return place[0] + depth, place[1]

    return _whole(tiling.share_a), following


def whole_b_loader(tiling: Tiling) -> Loader:
    """Return the loader of a tile inside B; its place is the thread's first element and n."""
    depth = tiling.depth

    @inlined
    def following(place):
        return place[0] + depth * place[1], place[1]

    return _whole(tiling.share_b), following


def _whole(share: Share) -> Any:
    sweep, load_lines = share.sweep, lines_loader(share.count, share.vector)

    @inlined
    def load(staged, source, place):
        at, width = place
        load_lines(staged, source, at, sweep * width)

    return load


def repeating_a_loader(tiling: Tiling) -> Loader:
    """Return the loader of whole vectors that repeats A's last row below it; its place is that of `edge_a_loader`."""
    share = tiling.share_a
    count, sweep, vector, load_vector = share.count, share.sweep, share.vector, vector_loader(share.vector)
    _, following = edge_a_loader(tiling)

    @inlined
    def load(staged, source, place):
        start, row, term, m, k = place
        for i in range(count):
            load_vector(staged, i * vector, source, start + min(row + i * sweep, m - 1) * k + term)

    return load, following


def edge_a_loader(tiling: Tiling) -> Loader:
    """Return the loader with zeros beyond A; its place is where A starts, the thread's row and term, m and k."""
    depth = tiling.depth

    @inlined
    def following(place):
        start, row, term, m, k = place
        return start, row, term + depth, m, k

    return _with_zeros(tiling.share_a), following


def edge_b_loader(tiling: Tiling) -> Loader:
    """Return the loader with zeros beyond B; its place is where B starts, the thread's term and column, k and n."""
    depth = tiling.depth

    @inlined
    def following(place):
        start, term, column, k, n = place
        return start, term + depth, column, k, n

    return _with_zeros(tiling.share_b), following


def _with_zeros(share: Share) -> Any:
    load_vectors = edge_loader(share.count, share.sweep, share.vector)

    @inlined
    def load(staged, source, place):
        start, row, column, height, width = place
        load_vectors(staged, source, start, row, column, height, width)

    return load


def a_filler(tiling: Tiling) -> Any:
    """Return a device function that puts what a thread loaded of A into its tile, row by row as columns."""
    count, sweep, vector, padded = tiling.share_a.count, tiling.share_a.sweep, tiling.share_a.vector, tiling.padded

    @inlined
    def fill(tile, staged, into):
        for load in range(count):
            for i in range(vector):
                write(tile, into + load * sweep + i * padded, widen(staged[load * vector + i]))

    return fill


def b_filler(tiling: Tiling) -> Any:
    """Return a device function that puts what a thread loaded of B into its tile."""
    count, vector, step = tiling.share_b.count, tiling.share_b.vector, tiling.share_b.sweep * tiling.columns

    @inlined
    def fill(tile, staged, into):
        for load in range(count):
            for i in range(vector):
                write(tile, into + load * step + i, widen(staged[load * vector + i]))

    return fill
