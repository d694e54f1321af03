"""Tensor cores in CUDA kernels: `ldmatrix` and `mma.sync` of PTX on fragments, which lie across the lanes of a warp.

A product of 16 x 8 sums takes 16 bytes of terms of each row of A and each column of B, 8 of them for the two
numbers b0 and b1 of a lane; which lane holds which element is fixed by the hardware (PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions"). A register holds 4 bytes: one TF32 or two 16-bit numbers. In Numba's simulator
the same is done lane by lane, so that a kernel's indices are tested.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from numba import config

SHAPES = {"tf32": "m16n8k8", "bf16": "m16n8k16", "fp16": "m16n8k16"}
OPERANDS = {"tf32": "tf32", "bf16": "bf16", "fp16": "f16"}
LaneSource = tuple[int, int]  # which of a lane's offsets, and how many elements behind it

if config.ENABLE_CUDASIM:
    import numpy as np

    from gpuexplore.kernels.intrinsics.vectors import read
    from gpuexplore.kernels.intrinsics.warps import from_every_lane, this_lane

    _TERMS = {"tf32": 2, "bf16": 4, "fp16": 4}  # that a lane holds of a row

    def load_matrices(into: Any, at: Any, tile: Any, row: Any) -> None:
        """Put four 8 x 8 matrices into registers `into[at:at + 4]`; lane i points to row i % 8 of matrix i // 8."""
        for i, matrix in enumerate(_matrices(tile, row)):
            into.reshape(-1)[at + i] = matrix.view(np.uint32).reshape(-1)[this_lane()]

    def load_transposed(into: Any, at: Any, tile: Any, row: Any) -> None:
        """Do as `load_matrices` does with each of the four matrices transposed."""
        for i, matrix in enumerate(_matrices(tile, row)):
            into.reshape(-1)[at + i] = np.ascontiguousarray(matrix.T).view(np.uint32).reshape(-1)[this_lane()]

    def _matrices(tile: Any, row: Any) -> list[Any]:
        """Return the four matrices of 8 x 8 16-bit elements whose rows the lanes point to."""
        halves, size = tile.reshape(-1).view(np.uint16), tile.dtype.itemsize // 2
        rows = []
        for start in from_every_lane(int(row)):
            if start * size % 8:
                raise IndexError(f"row {start} of a matrix does not start at a multiple of 16 bytes")
            rows.append(halves[start * size : start * size + 8])
        return [np.array(rows[8 * i : 8 * i + 8]) for i in range(4)]

    def fragment_loader(sources: Sequence[tuple[int, int]], *, transposed: bool) -> Any:
        """Return the function that loads four 8 x 8 matrices from each source, one after the other, into registers."""
        load = load_transposed if transposed else load_matrices

        def load_all(into: Any, tile: Any, lane_offsets: Any, first: Any) -> None:
            for number, (which, further) in enumerate(sources):
                load(into, 4 * number, tile, first + lane_offsets[which] + further)

        return load_all

    def number_loader(sources: Sequence[tuple[int, int]]) -> Any:
        """Return the function that loads an element from each source into registers."""

        def load_all(into: Any, tile: Any, lane_offsets: Any, first: Any) -> None:
            for number, (which, further) in enumerate(sources):
                into[number] = read(tile, first + lane_offsets[which] + further)

        return load_all

    def multiplier(name: str, m_tiles: int = 1, n_tiles: int = 1) -> Any:
        """Return the function that adds products of fragments of a dtype to `sums[s:]`, `m_tiles` times `n_tiles`."""

        def multiply_add(sums: Any, s: Any, a: Any, i: Any, b: Any, j: Any) -> None:
            words = from_every_lane((_words(a, i, 4 * m_tiles), _words(b, j, 2 * n_tiles)))
            group, pair = divmod(this_lane(), 4)
            rows, columns = np.zeros((2 * m_tiles, 4 * _TERMS[name])), np.zeros((2 * n_tiles, 4 * _TERMS[name]))
            for row in range(2 * m_tiles):  # of this lane: two of each fragment
                registers = [4 * (row // 2) + row % 2 + r for r in (0, 2)]
                rows[row] = _terms(name, [words[4 * group + t][0][r] for r in registers for t in range(4)])
            for column in range(2 * n_tiles):
                lane, registers = 4 * (2 * pair + column % 2), [2 * (column // 2) + r for r in (0, 1)]
                columns[column] = _terms(name, [words[lane + t][1][r] for r in registers for t in range(4)])
            found = (rows @ columns.T).reshape(m_tiles, 2, n_tiles, 2).transpose(0, 2, 1, 3)
            sums.reshape(-1)[s : s + found.size] += found.ravel().astype(np.float32)

        return multiply_add

    def _words(fragment: Any, start: int, count: int) -> list[int]:
        words = fragment.reshape(-1).view(np.uint32)[start : start + count]
        return [int(word) for word in words]

    def _terms(name: str, words: list[int]) -> Any:
        """Return the numbers that registers hold: one TF32 or two 16-bit ones in each."""
        bits = np.array(words, np.uint32)
        if name == "tf32":
            return (bits & np.uint32(0xFFFFE000)).view(np.float32)
        halves = bits.view(np.uint16)
        if name == "fp16":
            return halves.view(np.float16).astype(np.float32)
        return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.intrinsics.addresses import element_pointer, shared_address

    _F32, _I32 = ir.FloatType(), ir.IntType(32)

    def _ldmatrix(modifier: str) -> Any:
        """Return the code generator of `ldmatrix` for four 8 x 8 matrices of 16-bit elements.

        Lane i points to row i % 8 of matrix i // 8.
        """
        text = f"ldmatrix.sync.aligned.m8n8.x4{modifier}.shared.b16 {{$0, $1, $2, $3}}, [$4];"
        kind = ir.FunctionType(ir.LiteralStructType([_I32] * 4), [_I32])
        assembly = ir.InlineAsm(kind, text, "=r,=r,=r,=r,r,~{memory}", side_effect=True)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into, at, tile, row = zip(signature.args, arguments, strict=True)
            found = builder.call(assembly, [shared_address(context, builder, tile, row[1])])
            for i in range(4):
                index = builder.add(at[1], ir.Constant(at[1].type, i))
                builder.store(builder.extract_value(found, i), element_pointer(context, builder, into, index))
            return context.get_dummy_value()

        return emit

    def _numbered(builder: Any, start: Any, count: int) -> list[Any]:
        return [builder.add(start, ir.Constant(start.type, i)) for i in range(count)]

    def _found(context: Any, builder: Any, lane_offsets: Any, first: Any, source: LaneSource) -> Any:
        """Return the index of the element that a source names, `first` elements on."""
        which, further = source
        pointer = element_pointer(context, builder, lane_offsets, ir.Constant(ir.IntType(64), which))
        offset = builder.sext(builder.load(pointer), first.type)
        return builder.add(builder.add(first, offset), ir.Constant(first.type, further))

    def _loader(load: Any, sources: Sequence[LaneSource]) -> Any:
        """Return an intrinsic that does `load` for each source, into as many registers further as `load` returns."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into, tile, lane_offsets, (_, first) = zip(signature.args, arguments, strict=True)
            at = 0
            for source in sources:
                at += load(context, builder, (into, at), (tile, _found(context, builder, lane_offsets, first, source)))
            return context.get_dummy_value()

        @intrinsic
        def load_all(_typing: Any, into: Any, tile: Any, lane_offsets: Any, first: Any) -> Any:
            return types.void(into, tile, lane_offsets, types.int64), emit

        return load_all

    def fragment_loader(sources: Sequence[LaneSource], *, transposed: bool) -> Any:
        """Return the function that loads four 8 x 8 matrices from each source, one after the other, into registers."""
        emit = _ldmatrix(".trans" if transposed else "")

        def load(context: Any, builder: Any, into: Any, source: Any) -> int:
            (array, at), (tile, index) = into, source
            kinds = types.void(array[0], types.int64, tile[0], types.int64)
            emit(context, builder, kinds, (array[1], ir.Constant(ir.IntType(64), at), tile[1], index))
            return 4

        return _loader(load, sources)

    def number_loader(sources: Sequence[LaneSource]) -> Any:
        """Return the function that loads an element from each source into registers."""

        def load(context: Any, builder: Any, into: Any, source: Any) -> int:
            (array, at), (tile, index) = into, source
            number = builder.load(element_pointer(context, builder, tile, index))
            builder.store(number, element_pointer(context, builder, array, ir.Constant(ir.IntType(64), at)))
            return 1

        return _loader(load, sources)

    def _mma(operand: str, m_tiles: int, n_tiles: int) -> Any:
        """Return the code generator of `mma.sync` for each pair of fragments; sums are fp32."""
        shape = SHAPES[next(name for name, listed in OPERANDS.items() if listed == operand)]
        text = (
            f"mma.sync.aligned.{shape}.row.col.f32.{operand}.{operand}.f32 "
            "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"
        )
        kind = ir.FunctionType(ir.LiteralStructType([_F32] * 4), [_I32] * 6 + [_F32] * 4)
        assembly = ir.InlineAsm(kind, text, "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3", side_effect=True)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def pointers(which: int, count: int) -> list[Any]:
                array = signature.args[which], arguments[which]
                indices = _numbered(builder, arguments[which + 1], count)
                return [element_pointer(context, builder, array, index) for index in indices]

            def words(which: int, count: int) -> list[Any]:
                return [builder.bitcast(builder.load(pointer), _I32) for pointer in pointers(which, count)]

            sums, a, b = pointers(0, 4 * m_tiles * n_tiles), words(2, 4 * m_tiles), words(4, 2 * n_tiles)
            for i, j in product(range(m_tiles), range(n_tiles)):
                accumulators = sums[(i * n_tiles + j) * 4 :][:4]
                given = [*a[i * 4 :][:4], *b[j * 2 :][:2], *map(builder.load, accumulators)]
                found = builder.call(assembly, given)
                for each, accumulator in enumerate(accumulators):
                    builder.store(builder.extract_value(found, each), accumulator)
            return context.get_dummy_value()

        return emit

    def multiplier(name: str, m_tiles: int = 1, n_tiles: int = 1) -> Any:
        """Return the function that adds products of fragments of a dtype to `sums[s:]`.

        `m_tiles` fragments of A lie behind one another, and `n_tiles` of B; each product has four sums of a lane.
        """
        emit = _mma(OPERANDS[name], m_tiles, n_tiles)

        @intrinsic
        def multiply_add(_typing: Any, sums: Any, s: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
            index = types.int64
            return types.void(sums, index, a, index, b, index), emit

        return multiply_add


__all__ = ["fragment_loader", "multiplier", "number_loader"]
