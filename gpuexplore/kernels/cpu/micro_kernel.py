"""The micro-kernel of a matrix product: a tile of sums in vector registers, as LLVM instructions.

Loops over a small array would leave it to the compiler to find the registers, and it does not: the sums go
through memory. Here every vector of sums is a value of its own. A step loads a row of B's panel, and each
element of A's column is spread over a vector and multiplied with that row.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpuexplore.kernels.cpu.registers import Tile, tile_for

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_FLOATS = {"double": ir.DoubleType(), "float": ir.FloatType()}


class _BFloat(ir.HalfType):  # type: ignore[misc]  # llvmlite has no bf16; its name is all that is needed
    def __str__(self) -> str:
        return "bfloat"


class _Matrix(NamedTuple):
    """A two-dimensional array in memory whose rows are contiguous."""

    start: Any
    row_bytes: Any
    shape: Any
    size_bytes: int


@intrinsic
def add_product(_typing: Any, a: Any, b: Any, sums: Any, first: Any) -> Any:
    """Add a (rows, steps) @ b (steps, columns) to `sums` (rows, columns), or store it there when `first`.

    `rows` is that of the tile and `columns` at most that of the tile; of `b` whole vectors are read and of `sums`
    whole vectors are written. The function that calls this is never copied into its callers.
    """
    tile = tile_for(np.dtype(str(a.dtype)))

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")  # else each caller would compile all this again
        matrices = [_matrix(context, builder, *pair) for pair in zip((a, b, sums), arguments[:3], strict=True)]
        columns = matrices[1].shape[1]
        for vectors in range(1, tile.vectors + 1):
            too_few = builder.icmp_signed("<=", columns, _I64(tile.lanes * (vectors - 1)))
            too_many = builder.icmp_signed(">", columns, _I64(tile.lanes * vectors))
            with builder.if_then(builder.not_(builder.or_(too_few, too_many))):
                _Emitter(builder, tile, vectors, matrices).emit(arguments[3])
        return context.get_dummy_value()

    return types.void(a, b, sums, types.boolean), emit


def _matrix(context: Any, builder: Any, kind: Any, value: Any) -> _Matrix:
    array = context.make_array(kind)(context, builder, value)
    strides, shape = (cgutils.unpack_tuple(builder, pair, 2) for pair in (array.strides, array.shape))
    return _Matrix(array.data, strides[0], shape, kind.dtype.bitwidth // 8)


_Totals = dict[tuple[int, int], Any]  # by row and vector of the tile


class _Emitter:
    """Writes the instructions for a tile of so many vectors a row."""

    def __init__(self, builder: Any, tile: Tile, vectors: int, matrices: Sequence[_Matrix]) -> None:
        self.builder, self.tile, self.vectors = builder, tile, vectors
        self.a, self.b, self.sums = matrices
        element = _FLOATS[tile.element]
        self.vector = ir.VectorType(element, tile.lanes)
        self.word = element if tile.terms == 1 else _I32
        self.operand = self.vector if tile.terms == 1 else ir.VectorType(_BFloat(), tile.terms * tile.lanes)
        self.places = [(row, column) for row in range(tile.rows) for column in range(vectors)]

    def emit(self, first: Any) -> None:
        """Write the loop over the steps, then the stores."""
        zero = ir.Constant(self.vector, None)
        totals = {place: cgutils.alloca_once(self.builder, self.vector) for place in self.places}
        for total in totals.values():
            self.builder.store(zero, total)
        self._prefetch()
        with cgutils.for_range(self.builder, self.a.shape[1]) as loop:
            self._step(loop.index, totals)
        with self.builder.if_then(self.builder.not_(first)):
            self._add(totals)
        self._store(totals)

    def _prefetch(self) -> None:
        """Ask for the sums now: they are far away, and come while the loop runs."""
        write, into_l1, data = _I32(1), _I32(3), _I32(1)
        kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        for row, column in self.places:
            self.builder.call(function, [self._at(self.sums, row, column, _I8), write, into_l1, data])

    def _step(self, step: Any, totals: _Totals) -> None:
        words, lanes = ir.VectorType(self.word, self.tile.lanes), self.tile.lanes
        starts = [self._pointer(self.b, step, _I64(column * lanes), words) for column in range(self.vectors)]
        terms = [self._operand(self.builder.load(start, align=self.sums.size_bytes)) for start in starts]
        for row in range(self.tile.rows):
            factor = self._operand(self._spread(self._pointer(self.a, _I64(row), step, self.word)))
            for column, term in enumerate(terms):
                total = totals[row, column]
                self.builder.store(self._multiply_add(self.builder.load(total), factor, term), total)

    def _multiply_add(self, total: Any, factor: Any, term: Any) -> Any:
        arguments = [factor, term, total] if self.tile.terms == 1 else [total, factor, term]
        kind = ir.FunctionType(self.vector, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, self.tile.instruction)
        return self.builder.call(function, arguments)

    def _add(self, totals: _Totals) -> None:
        for place, total in totals.items():
            kept = self.builder.load(self._at(self.sums, *place, self.vector), align=self.sums.size_bytes)
            self.builder.store(self.builder.fadd(kept, self.builder.load(total)), total)

    def _store(self, totals: _Totals) -> None:
        for place, total in totals.items():
            pointer = self._at(self.sums, *place, self.vector)
            self.builder.store(self.builder.load(total), pointer, align=self.sums.size_bytes)

    def _operand(self, words: Any) -> Any:
        return self.builder.bitcast(words, self.operand)

    def _spread(self, pointer: Any) -> Any:
        none, lanes = ir.Constant(ir.VectorType(self.word, self.tile.lanes), ir.Undefined), self.tile.lanes
        alone = self.builder.insert_element(none, self.builder.load(pointer), _I32(0))
        return self.builder.shuffle_vector(alone, none, ir.Constant(ir.VectorType(_I32, lanes), None))

    def _at(self, matrix: _Matrix, row: int, vector: int, kind: Any) -> Any:
        return self._pointer(matrix, _I64(row), _I64(vector * self.tile.lanes), kind)

    def _pointer(self, matrix: _Matrix, row: Any, column: Any, kind: Any) -> Any:
        along = self.builder.mul(column, _I64(matrix.size_bytes))
        offset = self.builder.add(self.builder.mul(row, matrix.row_bytes), along)
        return cgutils.pointer_add(self.builder, matrix.start, offset, kind.as_pointer())
