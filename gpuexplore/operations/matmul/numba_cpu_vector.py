"""The product as BLIS builds it: packed panels, and a micro-kernel that keeps its sums in vector registers.

Panels of A (rows x depth) stay in the L2 cache while panels of B (depth x columns of a tile) pass through
the L1 cache; packing makes both contiguous, widens the 16-bit formats and puts pairs of bf16 side by side
where the CPU multiplies them as such. Each thread computes a rectangle of the output with buffers of its own.

Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import ceil
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu.calls import address_of, call_at
from gpuexplore.kernels.cpu.micro_kernel import add_product
from gpuexplore.kernels.cpu.operands import join, lanes_of, terms_of
from gpuexplore.kernels.cpu.registers import packed_dtype, tile_for
from gpuexplore.kernels.formats.numba_cpu import narrow

ROWS = 96
STEPS = 512  # operands along the sum
COLUMNS = 3072
FEWEST_TERMS_PER_THREAD = 2**19  # below it, a second thread takes longer to start than it saves


@njit(cache=True)
def _pack_rows(a, packed, top, bottom, begin, end):
    """Pack a[top:bottom, begin:end] into operands (rows, steps)."""
    terms = terms_of(packed.dtype)
    steps, other = (end - begin) // terms, np.uintp(terms - 1)
    for i in range(top, bottom):
        source, row = a[i][begin:end], packed[i - top]
        for step in range(steps):
            at = np.uintp(step * terms)  # unsigned: no check for an index from the end, which would not vectorise
            row[step] = join(source[at], source[at + other], packed.dtype)
        if (end - begin) % terms:
            row[steps] = join(source[steps * terms], a.dtype.type(0), packed.dtype)


@njit(cache=True)
def _pack_columns(b, packed, begin, end, left, right):
    """Pack b[begin:end, left:right] into operands (panels, steps, columns of a tile)."""
    terms, width = terms_of(packed.dtype), packed.shape[2]
    for start in range(left, right, width):
        panel, stop = packed[(start - left) // width], min(start + width, right)
        for step in range((end - begin) // terms):
            term, row = begin + step * terms, panel[step]
            first, second = b[term][start:stop], b[term + terms - 1][start:stop]
            for j in range(stop - start):
                row[j] = join(first[j], second[j], packed.dtype)
        if (end - begin) % terms:
            first, row = b[end - 1][start:stop], panel[(end - begin) // terms]
            for j in range(stop - start):
                row[j] = join(first[j], b.dtype.type(0), packed.dtype)


@njit(cache=True)
def _finish(tile, sums, out, first, last):
    """Add the part of `tile` that lies in `out` to `sums`, or write it to `out` when it is the last."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            total = tile[i, j] if first else sums[i, j] + tile[i, j]
            if last:
                out[i, j] = narrow(total, out.dtype)
            else:
                sums[i, j] = total


@njit(cache=True)
def _multiply(rows, panels, tile, sums, out, first, last):
    """Add rows (m, steps) @ panels to `sums` (m, n); the last time, write `out` (m, n)."""
    height, width = tile.shape
    for left in range(0, out.shape[1], width):
        right = min(left + width, out.shape[1])
        panel = panels[left // width, : rows.shape[1], : right - left]
        for top in range(0, out.shape[0], height):
            bottom = min(top + height, out.shape[0])
            part, kept = out[top:bottom, left:right], sums[top:bottom, left:right]
            whole = bottom - top == height and (right - left) % lanes_of(rows.dtype) == 0
            target = kept if whole else tile[:, :width]
            add_product(rows[top : top + height], panel, target, part, first or not whole, last and whole)
            if not whole:
                _finish(tile, kept, part, first, last)


@njit(cache=True)
def _rectangle(a, b, out, sums, rows, panels, tile, edges):
    """Write the part of a (m, k) @ b (k, n) inside `edges` (top, bottom, left, right) to `out`."""
    k, depth = a.shape[1], rows.shape[1] * terms_of(rows.dtype)
    height, width = rows.shape[0] // tile.shape[0] * tile.shape[0], panels.shape[0] * panels.shape[2]
    for left in range(edges[2], edges[3], width):
        right = min(left + width, edges[3])
        for begin in range(0, k, depth):
            end = min(begin + depth, k)
            steps = (end - begin + terms_of(rows.dtype) - 1) // terms_of(rows.dtype)
            _pack_columns(b, panels, begin, end, left, right)
            for top in range(edges[0], edges[1], height):
                bottom = min(top + height, edges[1])
                _pack_rows(a, rows, top, bottom, begin, end)
                target, part = sums[top:bottom, left:right], out[top:bottom, left:right]
                _multiply(rows[:, :steps], panels, tile, target, part, begin == 0, end == k)


@njit(parallel=True, cache=True)
def _rectangles(address, a, b, out, sums, rows, panels, tiles, edges):
    """Write the product, a rectangle a thread, by the compiled `_rectangle` at `address`."""
    for part in prange(edges.shape[0]):
        call_at(address, a, b, out, sums, rows[part], panels[part], tiles[part], edges[part])


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    (m, k), n = a.shape, b.shape[1]
    packed = packed_dtype(a.dtype)
    tile = tile_for(packed)
    edges = _edges(m, k, n, tile.rows, tile.lanes)
    steps = _even(ceil(k / tile.terms), STEPS, 1)
    height = _even(int((edges[:, 1] - edges[:, 0]).max()), ROWS, tile.rows)
    width = _even(int((edges[:, 3] - edges[:, 2]).max()), COLUMNS, tile.columns)
    kind, parts = np.dtype(DTYPES[dtype.accumulate].storage), len(edges)
    rows = _aligned((parts, height, steps), packed)
    panels = _aligned((parts, width // tile.columns, steps, tile.columns), packed)
    tiles = _aligned((parts, tile.rows, tile.columns), kind)
    sums = out if out.dtype == kind else np.empty((m, n) if steps * tile.terms < k else (1, 1), kind)
    if parts == 1:  # no thread to wake
        return lambda: _rectangle(a, b, out, sums, rows[0], panels[0], tiles[0], edges[0])
    address = cache(lambda: address_of(_rectangle, a, b, out, sums, rows[0], panels[0], tiles[0], edges[0]))
    return lambda: _rectangles(address(), a, b, out, sums, rows, panels, tiles, edges)


def _even(length: int, most: int, multiple: int) -> int:
    """Return the part that divides `length` into equal parts of at most about `most`, a multiple of `multiple`."""
    return ceil(ceil(length / ceil(length / most)) / multiple) * multiple


def _edges(m: int, k: int, n: int, rows: int, columns: int) -> Any:
    """Return top, bottom, left, right of a rectangle for each thread, cut along `rows` and `columns` of a tile."""
    threads = min(numba.get_num_threads(), max(1, m * k * n // FEWEST_TERMS_PER_THREAD))
    down, across = min(
        ((tall, threads // tall) for tall in range(1, threads + 1)),
        key=lambda grid: _even(m, ceil(m / grid[0]), rows) * _even(n, ceil(n / grid[1]), columns),
    )
    height, width = _even(m, ceil(m / down), rows), _even(n, ceil(n / across), columns)
    corners = [(top, left) for top in range(0, m, height) for left in range(0, n, width)]
    return np.array([(top, min(m, top + height), left, min(n, left + width)) for top, left in corners])


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Return zeros that begin at a cache line: a vector that crosses two lines takes two loads."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)
