"""Tensor cores in CUDA kernels: `ldmatrix` and `mma.sync` of PTX on fragments, which lie across the lanes of a warp.

A product of 16 x 8 sums takes 16 bytes of terms of each row of A and each column of B, 8 of them for the two
numbers b0 and b1 of a lane; which lane holds which element is fixed by the hardware (PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions"). A register holds 4 bytes: one TF32 or two 16-bit numbers. In Numba's simulator
`gpuexplore.kernels.intrinsics.tensor_core_lanes` does the same lane by lane, so that a kernel's indices are tested.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from numba import config

SHAPES = {"tf32": "m16n8k8", "bf16": "m16n8k16", "fp16": "m16n8k16"}
OPERANDS = {"tf32": "tf32", "bf16": "bf16", "fp16": "f16"}
Spot = tuple[int, int]  # which of a lane's places, and how many elements behind it

if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.intrinsics.tensor_core_lanes import (
        fragment_loader,
        multiplier,
        number_loader,
    )
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
            into, at, tile, place = zip(signature.args, arguments, strict=True)
            found = builder.call(assembly, [shared_address(context, builder, tile, place[1])])
            for i in range(4):
                index = builder.add(at[1], ir.Constant(at[1].type, i))
                builder.store(builder.extract_value(found, i), element_pointer(context, builder, into, index))
            return context.get_dummy_value()

        return emit

    def _numbered(builder: Any, start: Any, count: int) -> list[Any]:
        return [builder.add(start, ir.Constant(start.type, i)) for i in range(count)]

    def _found(context: Any, builder: Any, places: Any, first: Any, spot: Spot) -> Any:
        """Return the index of an element that lies so far behind the one in a place."""
        which, further = spot
        pointer = element_pointer(context, builder, places, ir.Constant(ir.IntType(64), which))
        place = builder.sext(builder.load(pointer), first.type)
        return builder.add(builder.add(first, place), ir.Constant(first.type, further))

    def _loader(load: Any, spots: Sequence[Spot]) -> Any:
        """Return an intrinsic that does `load` for each spot; its number of a register grows by what `load` returns."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into, tile, places, (_, first) = zip(signature.args, arguments, strict=True)
            at = 0
            for spot in spots:
                at += load(context, builder, (into, at), (tile, _found(context, builder, places, first, spot)))
            return context.get_dummy_value()

        @intrinsic
        def load_all(_typing: Any, into: Any, tile: Any, places: Any, first: Any) -> Any:
            return types.void(into, tile, places, types.int64), emit

        return load_all

    def fragment_loader(spots: Sequence[Spot], *, transposed: bool) -> Any:
        """Return the function that loads four 8 x 8 matrices from each spot, one after the other, into registers."""
        emit = _ldmatrix(".trans" if transposed else "")

        def load(context: Any, builder: Any, into: Any, source: Any) -> int:
            (array, at), (tile, index) = into, source
            kinds = types.void(array[0], types.int64, tile[0], types.int64)
            emit(context, builder, kinds, (array[1], ir.Constant(ir.IntType(64), at), tile[1], index))
            return 4

        return _loader(load, spots)

    def number_loader(spots: Sequence[Spot]) -> Any:
        """Return the function that loads an element from each spot into registers."""

        def load(context: Any, builder: Any, into: Any, source: Any) -> int:
            (array, at), (tile, index) = into, source
            number = builder.load(element_pointer(context, builder, tile, index))
            builder.store(number, element_pointer(context, builder, array, ir.Constant(ir.IntType(64), at)))
            return 1

        return _loader(load, spots)

    def _mma(operand: str, down: int, across: int) -> Any:
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

            sums, a, b = pointers(0, 4 * down * across), words(2, 4 * down), words(4, 2 * across)
            for i, j in product(range(down), range(across)):
                places = sums[(i * across + j) * 4 :][:4]
                given = [*a[i * 4 :][:4], *b[j * 2 :][:2], *map(builder.load, places)]
                found = builder.call(assembly, given)
                for each, place in enumerate(places):
                    builder.store(builder.extract_value(found, each), place)
            return context.get_dummy_value()

        return emit

    def multiplier(name: str, down: int = 1, across: int = 1) -> Any:
        """Return the function that adds products of fragments of a dtype to `sums[s:]`.

        `down` fragments of A lie behind one another, and `across` of B; each product has four sums of a lane.
        """
        emit = _mma(OPERANDS[name], down, across)

        @intrinsic
        def multiply_add(_typing: Any, sums: Any, s: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
            index = types.int64
            return types.void(sums, index, a, index, b, index), emit

        return multiply_add


__all__ = ["fragment_loader", "multiplier", "number_loader"]
