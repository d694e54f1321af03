"""Tensor cores in CUDA kernels: `ldmatrix` and `mma.sync` of PTX on fragments, which lie across the lanes of a warp.

A product of 16 x 8 sums takes 16 bytes of terms of each row of A and each column of B, 8 of them for the two
numbers b0 and b1 of a lane; which lane holds which element is fixed by the hardware (PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions"). A register holds 4 bytes: one TF32 or two 16-bit numbers.

Terms of a matrix product added to a thread's sums, all written out: the code has no loop, and no copy of a number.

Written as loops in Python, the same code took forty seconds to compile: Numba copies a function, with all the names of
the one that it has become part of, wherever it is called.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.llvm_values import F32, I32, I64, element_pointer, shared_address

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
