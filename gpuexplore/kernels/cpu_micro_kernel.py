"""The micro-kernel of a matrix product: a tile of sums in vector registers, as LLVM instructions.

Loops over a small array would leave it to the compiler to find the registers, and it does not: the sums go
through memory. Here every vector of sums is a value of its own. A step loads a row of B's panel, and each
element of A's column is spread over a vector and multiplied with that row.

A product of a few rows on one thread, in Numba: what our parallel CPU loops are made of.

The sums of up to 16 rows and 256 columns stay in the L1 cache while panels of 32 rows of B pass by; four
terms are added at a time, so that a sum is loaded and stored once for four multiply-adds.
Only modules that load Numba import this.

Widening and narrowing on the CPU, as LLVM instructions that vectorise.

The integer type names the format: uint16 holds bf16, int16 holds fp16. bf16 is the upper half of an
fp32, so widening is a shift and narrowing rounds to nearest even with integers; fp16 goes through
LLVM's `half`, which is one instruction where the CPU has F16C or NEON.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from platform import machine
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from gpuexplore.kernels.llvm_values import F32, I16, I32, I64

_HALF = ir.HalfType()


def _widen_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    shifted = builder.shl(builder.zext(arguments[0], I32), I32(16))
    return builder.bitcast(shifted, F32)


def _widen_fp16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.fpext(builder.bitcast(arguments[0], _HALF), F32)


def _narrow_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    value = arguments[0]
    bits = builder.bitcast(value, I32)
    odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
    nearest = builder.add(builder.add(bits, I32(0x7FFF)), odd)
    rounded = builder.trunc(builder.lshr(nearest, I32(16)), I16)
    return builder.select(builder.fcmp_unordered("uno", value, value), I16(0x7FC0), rounded)


def _narrow_fp16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.bitcast(builder.fptrunc(arguments[0], _HALF), I16)


def _unchanged(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
    return arguments[0]


_WIDEN = {types.uint16: _widen_bf16, types.int16: _widen_fp16}
_NARROW = {types.uint16: _narrow_bf16, types.int16: _narrow_fp16}


@intrinsic
def widen(_typing: Any, value: Any) -> Any:
    """Return a stored element as the number it is computed with: fp32 for 16-bit formats."""
    if value in _WIDEN:
        return types.float32(value), _WIDEN[value]
    return value(value), _unchanged


@intrinsic
def narrow(_typing: Any, value: Any, dtype: Any) -> Any:
    """Return a computed number as an element of an array whose `dtype` is given."""
    if dtype.dtype in _NARROW:
        return dtype.dtype(types.float32, dtype), _NARROW[dtype.dtype]
    return value(value, dtype), _unchanged


ROWS = 16  # what a caller should hand over at a time
COLUMNS = 256
TERMS = 32  # 32 x 256 fp32 are 32 KiB: the L1 cache of one core


@njit(fastmath={"contract"}, cache=True)
def _add_terms(sums: Any, a_row: Any, panel: Any, left: int) -> None:
    """Add a_row (terms) @ panel (terms, n), from column `left` on, to `sums` (columns)."""
    right = left + sums.size
    whole = a_row.size // 4 * 4
    for p in range(0, whole, 4):
        a0 = widen(a_row[p])
        a1 = widen(a_row[p + 1])
        a2 = widen(a_row[p + 2])
        a3 = widen(a_row[p + 3])
        b0 = panel[p][left:right]
        b1 = panel[p + 1][left:right]
        b2 = panel[p + 2][left:right]
        b3 = panel[p + 3][left:right]
        for j in range(sums.size):
            sums[j] += a0 * widen(b0[j]) + a1 * widen(b1[j]) + a2 * widen(b2[j]) + a3 * widen(b3[j])
    for p in range(whole, a_row.size):
        a0 = widen(a_row[p])
        b0 = panel[p][left:right]
        for j in range(sums.size):
            sums[j] += a0 * widen(b0[j])


@njit(cache=True)
def multiply_rows(a: Any, b: Any, out: Any, zero: Any) -> None:
    """Write (rows, k) @ (k, n) to `out` (rows, n); `zero` (1) has the dtype of the sums."""
    rows, k = a.shape
    n = b.shape[1]
    sums = np.empty((rows, min(n, COLUMNS)), zero.dtype)
    for left in range(0, n, COLUMNS):
        width = min(COLUMNS, n - left)
        sums[:] = zero[0]
        for top in range(0, k, TERMS):
            bottom = min(k, top + TERMS)
            for row in range(rows):
                _add_terms(sums[row][:width], a[row][top:bottom], b[top:bottom], left)
        for row in range(rows):
            for j in range(width):
                out[row, left + j] = narrow(sums[row, j], out.dtype)


# The tile of a matrix product that stays in a CPU's vector registers, chosen by the features Numba compiles for.
#
# A multiply-add takes 4 cycles and up to two start in each, so at least 8 sums must be in flight; the more
# of them there are, the fewer loads each one costs. 32 registers hold 8 rows of 3 vectors, 16 hold 6 rows of 2,
# and leave some for the factors.


_ELEMENTS = {"float64": ("double", "f64", 8), "float32": ("float", "f32", 4), "uint32": ("float", "f32", 4)}
_PAIRS = np.dtype(np.uint32)  # two bf16 of neighbouring terms: what one dot-product instruction takes for a sum


@dataclass(frozen=True, slots=True)
class _Tile:
    """Sums of a product that stay in registers.

    Attributes:
        rows: rows of the tile.
        vectors: vector registers in each row.
        lanes: sums in a register.
        element: LLVM type of a sum.
        instruction: LLVM function that multiplies and adds.
        terms: terms of one packed operand.
    """

    rows: int
    vectors: int
    lanes: int
    element: str
    instruction: str
    terms: int = 1

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.lanes


@cache
def features() -> frozenset[str]:
    """Return LLVM's names of the features Numba compiles for."""
    from numba.core.registry import cpu_target

    listed = cpu_target.target_context.codegen().magic_tuple()[2]
    return frozenset(word[1:] for word in listed.split(",") if word.startswith("+"))


def packed_dtype(stored: np.dtype, having: frozenset[str] | None = None) -> np.dtype:
    """Return what an array of `stored` elements is packed as: itself, pairs of bf16, or fp32.

    The integers name the 16-bit formats, see `gpuexplore.kernels.cpu_micro_kernel`.
    """
    if stored.kind == "f":
        return stored
    dots = _dot_product(features() if having is None else having)
    return _PAIRS if stored.kind == "u" and dots else np.dtype(np.float32)


def tile_for(packed: np.dtype, having: frozenset[str] | None = None) -> _Tile:
    """Return the tile for operands packed as `packed`."""
    found = features() if having is None else having
    element, suffix, size_bytes = _ELEMENTS[packed.name]
    lanes = _register_bytes(found) // size_bytes
    rows, vectors = (8, 3) if "avx512f" in found or _is_arm(found) else (6, 2)
    if packed == _PAIRS:
        return _Tile(rows, vectors, lanes, element, _dot_product(found) or "", terms=2)
    # fmuladd is one instruction where the host has it, else a multiply and an add: never a library call.
    return _Tile(rows, vectors, lanes, element, f"llvm.fmuladd.v{lanes}{suffix}")


def _register_bytes(having: frozenset[str]) -> int:
    return 64 if "avx512f" in having else 32 if "avx" in having else 16


def _dot_product(having: frozenset[str]) -> str | None:
    # Intel's runs at half the rate of fp32 multiply-adds (241 of 482 GFLOP/s on two cores with AMX), AMD's at twice.
    is_slower = "avx512fp16" in having and "sse4a" not in having
    if "avx512bf16" in having and not is_slower:
        return "llvm.x86.avx512bf16.dpbf16ps.512"
    return "llvm.aarch64.neon.bfdot.v4f32.v8bf16" if _is_arm(having) and "bf16" in having else None


def _is_arm(having: frozenset[str]) -> bool:
    return "neon" in having or (not having and machine() in ("aarch64", "arm64"))


_I8 = ir.IntType(8)
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
            too_few = builder.icmp_signed("<=", columns, I64(tile.lanes * (vectors - 1)))
            too_many = builder.icmp_signed(">", columns, I64(tile.lanes * vectors))
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

    def __init__(self, builder: Any, tile: _Tile, vectors: int, matrices: Sequence[_Matrix]) -> None:
        self.builder = builder
        self.tile = tile
        self.vectors = vectors
        self.a, self.b, self.sums = matrices
        element = _FLOATS[tile.element]
        self.vector = ir.VectorType(element, tile.lanes)
        self.word = element if tile.terms == 1 else I32
        self.operand = self.vector if tile.terms == 1 else ir.VectorType(_BFloat(), tile.terms * tile.lanes)
        self.positions = [(row, column) for row in range(tile.rows) for column in range(vectors)]

    def emit(self, first: Any) -> None:
        """Write the loop over the steps, then the stores."""
        zero = ir.Constant(self.vector, None)
        totals = {position: cgutils.alloca_once(self.builder, self.vector) for position in self.positions}
        for total in totals.values():
            self.builder.store(zero, total)
        # Ask for the sums now: they are far away, and come while the loop runs.
        hints = (I32(1), I32(3), I32(1))  # to be written; into the first-level cache; data
        kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer(), I32, I32, I32])
        function = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        for row, column in self.positions:
            self.builder.call(function, [self._at(self.sums, row, column, _I8), *hints])
        steps = self.a.shape[1]
        with cgutils.for_range(self.builder, self.builder.lshr(steps, I64(1))) as loop:
            even = self.builder.shl(loop.index, I64(1))
            self._step(even, totals)
            self._step(self.builder.add(even, I64(1)), totals)
        with self.builder.if_then(self.builder.trunc(steps, ir.IntType(1))):
            self._step(self.builder.sub(steps, I64(1)), totals)
        with self.builder.if_then(self.builder.not_(first)):
            self._add(totals)
        self._store(totals)

    def _step(self, step: Any, totals: _Totals) -> None:
        lanes = self.tile.lanes
        words = ir.VectorType(self.word, lanes)
        starts = [self._pointer(self.b, step, I64(column * lanes), words) for column in range(self.vectors)]
        terms = [self._operand(self.builder.load(start, align=self.sums.size_bytes)) for start in starts]
        for row in range(self.tile.rows):
            factor = self._operand(self._spread(self._pointer(self.a, I64(row), step, self.word)))
            for column, term in enumerate(terms):
                total = totals[row, column]
                self.builder.store(self._multiply_add(self.builder.load(total), factor, term), total)

    def _multiply_add(self, total: Any, factor: Any, term: Any) -> Any:
        arguments = [factor, term, total] if self.tile.terms == 1 else [total, factor, term]
        kind = ir.FunctionType(self.vector, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, self.tile.instruction)
        return self.builder.call(function, arguments)

    def _add(self, totals: _Totals) -> None:
        for position, total in totals.items():
            kept = self.builder.load(self._at(self.sums, *position, self.vector), align=self.sums.size_bytes)
            self.builder.store(self.builder.fadd(kept, self.builder.load(total)), total)

    def _store(self, totals: _Totals) -> None:
        for position, total in totals.items():
            pointer = self._at(self.sums, *position, self.vector)
            self.builder.store(self.builder.load(total), pointer, align=self.sums.size_bytes)

    def _operand(self, words: Any) -> Any:
        return self.builder.bitcast(words, self.operand)

    def _spread(self, pointer: Any) -> Any:
        lanes = self.tile.lanes
        none = ir.Constant(ir.VectorType(self.word, lanes), ir.Undefined)
        alone = self.builder.insert_element(none, self.builder.load(pointer), I32(0))
        return self.builder.shuffle_vector(alone, none, ir.Constant(ir.VectorType(I32, lanes), None))

    def _at(self, matrix: _Matrix, row: int, vector: int, kind: Any) -> Any:
        return self._pointer(matrix, I64(row), I64(vector * self.tile.lanes), kind)

    def _pointer(self, matrix: _Matrix, row: Any, column: Any, kind: Any) -> Any:
        along = self.builder.mul(column, I64(matrix.size_bytes))
        offset = self.builder.add(self.builder.mul(row, matrix.row_bytes), along)
        return cgutils.pointer_add(self.builder, matrix.start, offset, kind.as_pointer())


# How stored elements become the operands of the micro-kernel: as they are, widened, or two bf16 in one.


def terms_of(packed: Any) -> int:
    """Return how many terms an operand of an array whose dtype is `packed` has."""
    raise NotImplementedError("compiled only")


def lanes_of(packed: Any) -> int:
    """Return how many sums a vector register holds for operands of an array whose dtype is `packed`."""
    raise NotImplementedError("compiled only")


def join(first: Any, second: Any, packed: Any) -> Any:
    """Return the operand of `first` and, where it has two terms, `second`."""
    raise NotImplementedError("compiled only")


@overload(terms_of, strict=False)
def _terms_of(packed: Any) -> Callable[..., Any]:
    count = 2 if packed.dtype == types.uint32 else 1
    return lambda packed: count  # noqa: ARG005 Numba matches names


@overload(lanes_of, strict=False)
def _lanes_of(packed: Any) -> Callable[..., Any]:
    lanes = tile_for(np.dtype(str(packed.dtype))).lanes
    return lambda packed: lanes  # noqa: ARG005 Numba matches names


@overload(join, strict=False)
def _join(first: Any, second: Any, packed: Any) -> Callable[..., Any]:
    if packed.dtype == types.uint32:
        return lambda first, second, packed: np.uint32(first) | (np.uint32(second) << np.uint32(16))  # noqa: ARG005 Numba matches names
    return lambda first, second, packed: widen(first)  # noqa: ARG005 Numba matches names
