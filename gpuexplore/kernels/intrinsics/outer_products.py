"""Terms of a matrix product added to a thread's sums, all written out: the code has no loop, and no copy of a number.

Written as loops in Python, the same code took forty seconds to compile: Numba copies a function, with all the names of
the one that it has become part of, wherever it is called.
"""

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.llvm_values import I32, I64, element_pointer


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
