"""Tensor cores in CUDA kernels: `ldmatrix` and `mma.sync` of PTX on fragments, which lie across the lanes of a warp.

A product of 16 x 8 sums takes 16 bytes of terms of each row of A and each column of B, 8 of them for the two
numbers b0 and b1 of a lane; which lane holds which element is fixed by the hardware (PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions"). A register holds 4 bytes: one TF32 or two 16-bit numbers.

Terms of a matrix product added to a thread's sums, all written out: the code has no loop, and no copy of a number.

Written as loops in Python, the same code took forty seconds to compile: Numba copies a function, with all the names of
the one that it has become part of, wherever it is called.

Stores of the sums that `mma.sync` leaves in the lanes of a warp, without a loop: they stay in registers.

Of each product of 16 x 8 sums, a lane has two neighbours of a row, and the two that lie 8 rows below.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.cuda_kernel import narrowed
from gpuexplore.kernels.llvm_values import F32, I32, I64, element_pointer, shared_address, vector_of

LaneSource = tuple[int, int]  # which of a lane's offsets, and how many elements behind it


def _loader(load: Any, sources: Sequence[LaneSource]) -> Any:
    """Return an intrinsic that does `load` for each source, into as many registers further as `load` returns."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, tile, lane_offsets, (_, first) = zip(signature.args, arguments, strict=True)
        at = 0
        for source in sources:
            # The index of the element that a source names, `first` elements on.
            which, further = source
            pointer = element_pointer(context, builder, lane_offsets, I64(which))
            offset = builder.sext(builder.load(pointer), first.type)
            at += load(
                context, builder, (into, at), (tile, builder.add(builder.add(first, offset), first.type(further)))
            )
        return context.get_dummy_value()

    @intrinsic
    def load_all(_typing: Any, into: Any, tile: Any, lane_offsets: Any, first: Any) -> Any:
        return types.void(into, tile, lane_offsets, types.int64), emit

    return load_all


def fragment_loader(sources: Sequence[LaneSource], *, transposed: bool) -> Any:
    """Return the function that loads four 8 x 8 matrices from each source, one after the other, into registers.

    The elements have 16 bits; lane i points to row i % 8 of matrix i // 8.
    """
    modifier = ".trans" if transposed else ""
    text = f"ldmatrix.sync.aligned.m8n8.x4{modifier}.shared.b16 {{$0, $1, $2, $3}}, [$4];"
    kind = ir.FunctionType(ir.LiteralStructType([I32] * 4), [I32])
    assembly = ir.InlineAsm(kind, text, "=r,=r,=r,=r,r,~{memory}", side_effect=True)

    def load(context: Any, builder: Any, into: Any, source: Any) -> int:
        array, first = into
        found = builder.call(assembly, [shared_address(context, builder, *source)])
        for i in range(4):
            builder.store(builder.extract_value(found, i), element_pointer(context, builder, array, I64(first + i)))
        return 4

    return _loader(load, sources)


def number_loader(sources: Sequence[LaneSource]) -> Any:
    """Return the function that loads an element from each source into registers."""

    def load(context: Any, builder: Any, into: Any, source: Any) -> int:
        array, index = into
        number = builder.load(element_pointer(context, builder, *source))
        builder.store(number, element_pointer(context, builder, array, I64(index)))
        return 1

    return _loader(load, sources)


def multiplier(name: str, m_tiles: int = 1, n_tiles: int = 1) -> Any:
    """Return the function that adds products of fragments of a dtype to `sums[s:]`, which are fp32.

    `m_tiles` fragments of A lie behind one another, and `n_tiles` of B; each product has four sums of a lane.
    """
    operand = {"tf32": "tf32", "bf16": "bf16", "fp16": "f16"}[name]
    shape = "m16n8k8" if name == "tf32" else "m16n8k16"
    text = (
        f"mma.sync.aligned.{shape}.row.col.f32.{operand}.{operand}.f32 "
        "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"
    )
    kind = ir.FunctionType(ir.LiteralStructType([F32] * 4), [I32] * 6 + [F32] * 4)
    assembly = ir.InlineAsm(kind, text, "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3", side_effect=True)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointers(which: int, count: int) -> list[Any]:
            array = signature.args[which], arguments[which]
            start = arguments[which + 1]
            indices = [builder.add(start, start.type(i)) for i in range(count)]
            return [element_pointer(context, builder, array, index) for index in indices]

        def words(which: int, count: int) -> list[Any]:
            return [builder.bitcast(builder.load(pointer), I32) for pointer in pointers(which, count)]

        sums = pointers(0, 4 * m_tiles * n_tiles)
        a = words(2, 4 * m_tiles)
        b = words(4, 2 * n_tiles)
        for i, j in product(range(m_tiles), range(n_tiles)):
            accumulators = sums[(i * n_tiles + j) * 4 :][:4]
            given = [*a[i * 4 :][:4], *b[j * 2 :][:2], *map(builder.load, accumulators)]
            found = builder.call(assembly, given)
            for each, accumulator in enumerate(accumulators):
                builder.store(builder.extract_value(found, each), accumulator)
        return context.get_dummy_value()

    @intrinsic
    def multiply_add(_typing: Any, sums: Any, s: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
        index = types.int64
        return types.void(sums, index, a, index, b, index), emit

    return multiply_add


@dataclass(frozen=True)
class Lines:
    """How the numbers that a thread multiplies lie in a tile.

    Attributes:
        count: a term's numbers, which is the rows or the columns of the sums.
        width: of them that lie together, and are loaded with one instruction.
        apart: elements from the first of those to the first of the next.
        term: elements from a term to the next.
    """

    count: int
    width: int
    apart: int
    term: int

    def offsets(self, term: int) -> list[int]:
        """Return the offsets of the vectors of a term."""
        return [term * self.term + vector * self.apart for vector in range(self.count // self.width)]


def outer_adder(terms: int, rows: Lines, columns: Lines) -> Any:
    """Return the function that adds so many products of a column of A and a row of B to `sums`, (rows, columns).

    Its arguments: the sums, in an array of each thread, the tiles, and where in them the thread's numbers start.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, tile_a, tile_b, (_, at_a), (_, at_b) = zip(signature.args, arguments, strict=True)
        first = element_pointer(context, builder, array, I64(0))
        pointers = [builder.gep(first, [I64(i)]) for i in range(rows.count * columns.count)]
        sums = [builder.load(pointer) for pointer in pointers]
        for term in range(terms):
            column = _numbers(context, builder, (tile_a, at_a), rows, term)
            row = _numbers(context, builder, (tile_b, at_b), columns, term)
            products = [builder.fmul(a, b) for a in column for b in row]
            sums = [builder.fadd(so_far, product) for so_far, product in zip(sums, products, strict=True)]
        for pointer, total in zip(pointers, sums, strict=True):
            builder.store(total, pointer)
        return context.get_dummy_value()

    @intrinsic
    def add(_typing: Any, sums: Any, tile_a: Any, tile_b: Any, at_a: Any, at_b: Any) -> Any:
        return types.void(sums, tile_a, tile_b, types.int64, types.int64), emit

    return add


def _numbers(context: Any, builder: Any, tile: Any, lines: Lines, term: int) -> list[Any]:
    """Return a thread's numbers of a term, loaded vector by vector."""
    array, start = tile
    element = context.get_data_type(array[0].dtype)
    whole = ir.VectorType(element, lines.width)
    size_bytes = lines.width * array[0].dtype.bitwidth // 8
    found = []
    for offset in lines.offsets(term):
        pointer = element_pointer(context, builder, array, builder.add(start, I64(offset)))
        vector = builder.load(builder.bitcast(pointer, whole.as_pointer()), align=size_bytes)
        found += [builder.extract_element(vector, I32(i)) for i in range(lines.width)]
    return found


STEP = 8  # rows and columns from a lane's pair of sums to its next


def accumulator_storer(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that stores the sums of so many products from element `start` of `out` on.

    `m_left` and `n_left` rows and columns of `out`, which has rows of `n`, are left from there.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, (_, start), sums, (_, n), (_, m_left), (_, n_left) = zip(signature.args, arguments, strict=True)
        even = builder.icmp_signed("==", builder.and_(n, I64(1)), I64(0))
        for i, j in product(range(2 * m_tiles), range(n_tiles)):
            first = (i // 2 * n_tiles + j) * 4 + i % 2 * 2
            pair = _pair(context, builder, sums, first)
            further = builder.add(builder.mul(n, I64(i * STEP)), I64(j * STEP))
            inside = builder.and_(_less(builder, i * STEP, m_left), _less(builder, j * STEP, n_left))
            with builder.if_then(inside):
                pair = [narrowed(context, builder, number, out[0].dtype) for number in pair]
                whole = _less(builder, j * STEP + 1, n_left)
                _store_pair(context, builder, (out, builder.add(start, further)), pair, (even, whole))
        return context.get_dummy_value()

    @intrinsic
    def store(_typing: Any, out: Any, start: Any, sums: Any, n: Any, m_left: Any, n_left: Any) -> Any:
        index = types.int64
        return types.void(out, index, sums, index, index, index), emit

    return store


def pixel_storer(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that stores the sums of so many products whose columns are pixels of several images.

    `start`: the element of pixel 0 of the lane's first row in an image, `first_pixel`: the lane's first pixel,
    counted from there through the images behind, of which `end` is the first that does not exist. An image has
    `plane` pixels, the next lies `stride` elements behind, and `m_left` rows are left. Pixels of even planes go in
    pairs.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, sums, *_ = zip(signature.args, arguments, strict=True)
        start, first_pixel, end, plane, stride, m_left = arguments[2:]
        even = builder.icmp_signed("==", builder.and_(plane, I64(1)), I64(0))
        columns = []
        for column in (j * STEP + each for j in range(n_tiles) for each in range(2)):
            position = builder.add(first_pixel, I64(column))
            image, pixel = _divided(builder, position, plane)
            into = builder.add(builder.add(start, builder.mul(image, stride)), pixel)
            columns.append((into, builder.icmp_signed("<", position, end)))
        for i in range(2 * m_tiles):
            further = builder.mul(plane, I64(i * STEP))
            with builder.if_then(_less(builder, i * STEP, m_left)):
                for j in range(n_tiles):
                    pair = _pair(context, builder, sums, (i // 2 * n_tiles + j) * 4 + i % 2 * 2)
                    pair = [narrowed(context, builder, number, out[0].dtype) for number in pair]
                    _store_pixels(context, builder, (out, columns[2 * j : 2 * j + 2], further), pair, even)
        return context.get_dummy_value()

    @intrinsic
    def store(
        _typing: Any,
        out: Any,
        sums: Any,
        start: Any,
        first_pixel: Any,
        end: Any,
        plane: Any,
        stride: Any,
        m_left: Any,
    ) -> Any:
        return types.void(out, sums, *[types.int64] * 6), emit

    return store


def _divided(builder: Any, number: Any, by: Any) -> list[Any]:
    """Return the quotient and the rest of numbers that fit 32 bits."""
    number = builder.trunc(number, I32)
    by = builder.trunc(by, I32)
    return [builder.zext(found, I64) for found in (builder.udiv(number, by), builder.urem(number, by))]


def _store_pixels(context: Any, builder: Any, target: Any, pair: list[Any], even: Any) -> None:
    """Store two numbers of a row, each where its pixel exists: together where they are neighbours."""
    out, columns, further = target
    pointers = [element_pointer(context, builder, out, builder.add(start, further)) for start, _ in columns]
    with builder.if_else(even) as (together, apart):
        with together, builder.if_then(columns[0][1]):
            _store_together(builder, pointers[0], pair, out[0].dtype.bitwidth // 4)
        with apart:
            for pointer, (_, exists), number in zip(pointers, columns, pair, strict=True):
                with builder.if_then(exists):
                    builder.store(number, pointer)


def _pair(context: Any, builder: Any, sums: Any, first: int) -> list[Any]:
    return [builder.load(element_pointer(context, builder, sums, I64(first + each))) for each in range(2)]


def _store_pair(context: Any, builder: Any, target: Any, pair: list[Any], conditions: Any) -> None:
    """Store two neighbours: together where rows have an even length, else one by one as far as the row goes."""
    out, _ = target
    even, whole = conditions
    start = element_pointer(context, builder, *target)
    with builder.if_else(even) as (together, apart):
        with together:
            _store_together(builder, start, pair, out[0].dtype.bitwidth // 4)
        with apart:
            builder.store(pair[0], start)
            with builder.if_then(whole):
                builder.store(pair[1], builder.gep(start, [I64(1)]))


def _store_together(builder: Any, start: Any, pair: list[Any], size_bytes: int) -> None:
    vector = vector_of(builder, pair)
    builder.store(vector, builder.bitcast(start, vector.type.as_pointer()), align=size_bytes)


def _less(builder: Any, number: int, limit: Any) -> Any:
    return builder.icmp_signed("<", I64(number), limit)
