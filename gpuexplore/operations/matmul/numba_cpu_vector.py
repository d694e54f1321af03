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
from numba import njit, prange, typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import add_product, join, lanes_of, narrow, packed_dtype, terms_of, tile_for

ROWS = 96
DEPTH = 512  # operands along the sum
COLUMNS = 3072
FEWEST_TERMS_PER_THREAD = 2**19  # below it, a second thread takes longer to start than it saves


@njit(cache=True)
def _pack_rows(a, packed, top, bottom, begin, end):
    """Pack a[top:bottom, begin:end] into operands (rows, steps)."""
    terms = terms_of(packed.dtype)
    steps = (end - begin) // terms
    other = np.uintp(terms - 1)
    for i in range(top, bottom):
        source = a[i][begin:end]
        row = packed[i - top]
        for step in range(steps):
            at = np.uintp(step * terms)  # unsigned: no check for an index from the end, which would not vectorise
            row[step] = join(source[at], source[at + other], packed.dtype)
        if (end - begin) % terms:
            row[steps] = join(source[steps * terms], a.dtype.type(0), packed.dtype)


@njit(cache=True)
def _pack_columns(b, packed, begin, end, left, right):
    """Pack b[begin:end, left:right] into operands (panels, steps, columns of a tile)."""
    terms = terms_of(packed.dtype)
    width = packed.shape[2]
    for start in range(left, right, width):
        panel = packed[(start - left) // width]
        stop = min(start + width, right)
        for step in range((end - begin) // terms):
            term = begin + step * terms
            row = panel[step]
            first = b[term][start:stop]
            second = b[term + terms - 1][start:stop]
            for j in range(stop - start):
                row[j] = join(first[j], second[j], packed.dtype)
        if (end - begin) % terms:
            first = b[end - 1][start:stop]
            row = panel[(end - begin) // terms]
            for j in range(stop - start):
                row[j] = join(first[j], b.dtype.type(0), packed.dtype)


@njit(cache=True)
def _add(tile, sums, first):
    """Add the part of `tile` that lies in `sums` to them, or store it there when `first`."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            sums[i, j] = tile[i, j] if first else sums[i, j] + tile[i, j]


@njit(cache=True)
def _multiply(rows, panels, tile, sums, steps, first):
    """Add rows (m, steps) @ panels to `sums` (m, n), or store it there when `first`."""
    height, width = tile.shape
    for left in range(0, sums.shape[1], width):
        right = min(left + width, sums.shape[1])
        panel = panels[left // width, :steps, : right - left]
        for top in range(0, sums.shape[0], height):
            kept = sums[top : top + height, left:right]
            whole = kept.shape[0] == height and (right - left) % lanes_of(rows.dtype) == 0
            add_product(rows[top : top + height, :steps], panel, kept if whole else tile[:, :width], first or not whole)
            if not whole:
                _add(tile, kept, first)


@njit(cache=True)
def _narrow(sums, out, top, bottom, left, right):
    """Write a part of the sums (m, n), rounded to the format of `out`."""
    for i in range(top, bottom):
        source = sums[i][left:right]
        row = out[i][left:right]
        for j in range(right - left):
            row[j] = narrow(source[j], out.dtype)


@njit(cache=True)
def _rectangle(code, terms, a, b, out, sums, rows, panels, tile, edges):
    """Write the part of a (m, k) @ b (k, n) inside `edges` (top, bottom, left, right) to `out`, by compiled `code`."""
    pack_rows = code[0]
    pack_columns = code[1]
    multiply = code[2]
    narrowing = code[3]
    k = a.shape[1]
    depth = rows.shape[1] * terms
    height = rows.shape[0] // tile.shape[0] * tile.shape[0]
    width = panels.shape[0] * panels.shape[2]
    for left in range(edges[2], edges[3], width):
        right = min(left + width, edges[3])
        for begin in range(0, k, depth):
            end = min(begin + depth, k)
            steps = (end - begin + terms - 1) // terms
            call_at(pack_columns, b, panels, begin, end, left, right)
            for top in range(edges[0], edges[1], height):
                bottom = min(top + height, edges[1])
                call_at(pack_rows, a, rows, top, bottom, begin, end)
                call_at(multiply, rows, panels, tile, sums[top:bottom, left:right], steps, begin == 0)
                if narrowing and end == k:
                    call_at(narrowing, sums, out, top, bottom, left, right)


@njit(parallel=True, cache=True)
def _rectangles(address, code, terms, a, b, out, sums, rows, panels, tiles, edges):
    """Write the product, a rectangle a thread, by the compiled `_rectangle` at `address`."""
    for part in prange(edges.shape[0]):
        call_at(address, code, terms, a, b, out, sums, rows[part], panels[part], tiles[part], edges[part])


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    m, k = a.shape
    n = b.shape[1]
    packed = packed_dtype(a.dtype)
    tile = tile_for(packed)
    edges = _edges(m, k, n, tile.rows, tile.lanes)
    steps = _even(ceil(k / tile.terms), DEPTH, 1)
    height = _even(int((edges[:, 1] - edges[:, 0]).max()), ROWS, tile.rows)
    width = _even(int((edges[:, 3] - edges[:, 2]).max()), COLUMNS, tile.columns)
    kind = np.dtype(DTYPES[dtype.accumulate].storage)
    parts = len(edges)
    rows = _aligned((parts, height, steps), packed)
    panels = _aligned((parts, width // tile.columns, steps, tile.columns), packed)
    tiles = _aligned((parts, tile.rows, tile.columns), kind)
    sums = out if out.dtype == kind else _aligned((m, n), kind)
    part = np.empty((2, 2), kind)[:, :1]  # of the sums: its rows do not follow each other

    @cache
    def code() -> Any:
        return np.array(
            [
                address_of(_pack_rows, a, rows[0], 0, 0, 0, 0),
                address_of(_pack_columns, b, panels[0], 0, 0, 0, 0),
                address_of(_multiply, rows[0], panels[0], tiles[0], part, 0, True),
                0 if sums is out else address_of(_narrow, sums, out, 0, 0, 0, 0),
            ]
        )

    arrays = [untyped(array) for array in (a, b, out, sums)]
    buffers = [untyped(array) for array in (rows, panels, tiles)]
    if parts == 1:  # no thread to wake
        buffers = [array[0] for array in buffers]
        return lambda: _rectangle(code(), tile.terms, *arrays, *buffers, edges[0])
    firsts = [array[0] for array in (*buffers, edges)]
    address = cache(lambda: address_of(_rectangle, code(), tile.terms, *arrays, *firsts))
    return lambda: _rectangles(address(), code(), tile.terms, *arrays, *buffers, edges)


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
    height = _even(m, ceil(m / down), rows)
    width = _even(n, ceil(n / across), columns)
    corners = [(top, left) for top in range(0, m, height) for left in range(0, n, width)]
    return np.array([(top, min(m, top + height), left, min(n, left + width)) for top, left in corners])


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Return zeros that begin at a cache line: a vector that crosses two lines takes two loads."""
    size = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


# Calls of compiled functions by their address.
#
# A function that Numba compiles contains a copy of each one it calls, which LLVM optimises again: 2.8 s for the
# threads' loop of a product, most of it for code that is compiled already. Called by its address, a function is
# compiled once.


def address_of(function: Any, *arguments: Any) -> int:
    """Return where the code of a jitted function without a result lies for such arguments, which may compile it."""
    kinds = tuple(map(typeof, arguments))
    function.compile(kinds)
    compiled = function.overloads[kinds]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def untyped(array: Any) -> Any:
    """Return the first bytes of the elements of `array`, for code that passes it on and is compiled once for all."""
    first = np.dtype({"names": ["first"], "formats": [np.uint8], "offsets": [0], "itemsize": array.itemsize})
    return array.view(first)["first"]


@intrinsic
def call_at(_typing: Any, address: Any, *arguments: Any) -> Any:
    """Call the function at `address`, without a result, with arguments of the types that `address_of` was given.

    An `untyped` array stands for the one it was made of.
    """

    def emit(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.none, arguments)
        pointer = builder.inttoptr(values[0], kind.as_pointer())
        each = cgutils.unpack_tuple(builder, values[1], len(arguments))
        status, _ = convention.call_function(builder, pointer, types.none, arguments, each)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(address, types.StarArgTuple(arguments)), emit
