"""Copies from device memory to shared memory that do not pass through registers (`cp.async`, compute capability 8.0).

A thread starts copies of 16 bytes, closes groups of them and later waits for a group; in Numba's simulator a copy is
there at once.
"""

from typing import Any

import numpy as np
from numba import config

from gpuexplore.kernels.intrinsics.vectors import VECTOR_BYTES, vector_length

if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.intrinsics.vectors import copy_elements

    def copy_vector_async(target: Any, offset: Any, source: Any, start: Any, exists: Any) -> None:
        """Start a copy of 16 bytes from device memory to shared memory, or of zeros where the source does not exist."""
        count = vector_length(source.dtype)
        if exists:
            copy_elements(target, offset, source, start, count)
        else:
            copy_elements(target, offset, np.zeros(count, source.dtype), 0, count)

    def vectors_copier(count: int, apart: int) -> Any:
        """Return the function that starts `count` copies of 16 bytes that exist, to offsets `apart` elements apart.

        Copy i starts at element `starts[i] + along` of the source; `starts` are of 32 bits, without a sign.
        """

        def copy(target: Any, offset: Any, source: Any, starts: Any, along: Any) -> None:
            for i in range(count):
                copy_vector_async(target, offset + i * apart, source, int(starts[i]) + along, exists=True)

        return copy

    def lines_copier(count: int, apart: int) -> Any:
        """Return the function that starts copies of 16 bytes of `count` lines to offsets `apart` elements apart.

        Those of line i start at element `start + i * step` of the source; `step` is of 32 bits, without a sign.
        """

        def copy(target: Any, offset: Any, source: Any, start: Any, step: Any) -> None:
            for i in range(count):
                copy_vector_async(target, offset + i * apart, source, start + i * int(step), exists=True)

        return copy

    def edge_lines_copier(count: int, apart: int, sweep: int) -> Any:
        """Return the function that does so for lines of a matrix `sweep` apart: below the last it copies that again.

        Its arguments: target, offset, the matrix, the first line and its column; right of the matrix there are zeros.
        """

        def copy(target: Any, offset: Any, source: Any, line: Any, column: Any) -> None:
            lines, length = source.shape
            for i in range(count):
                start = min(line + i * sweep, lines - 1) * length + column
                copy_vector_async(target, offset + i * apart, source, start, exists=column < length)

        return copy

    def commit_copies() -> None:
        """Close the group of copies that were started."""

    def wait_for_copies(pending: Any) -> None:
        """Wait until at most `pending` groups of this thread are on their way."""

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.intrinsics.addresses import element_pointer, global_address, shared_address

    _I32, _I64, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()

    def _assembly(text: str, operands: tuple[Any, ...] = (), constraints: str = "") -> Any:
        return ir.InlineAsm(ir.FunctionType(_VOID, operands), text, f"{constraints}~{{memory}}", side_effect=True)

    def _start(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, offset, out_of, start, exists = zip(signature.args, arguments, strict=True)
        size = builder.select(exists[1], ir.Constant(_I32, VECTOR_BYTES), ir.Constant(_I32, 0))
        text = f"cp.async.cg.shared.global [$0], [$1], {VECTOR_BYTES}, $2;"
        target = shared_address(context, builder, into, offset[1])
        source = global_address(context, builder, out_of, start[1])
        builder.call(_assembly(text, (_I32, _I64, _I32), "r,l,r,"), [target, source, size])
        return context.get_dummy_value()

    @intrinsic
    def copy_vector_async(_typing: Any, target: Any, offset: Any, source: Any, start: Any, exists: Any) -> Any:
        """Start a copy of 16 bytes from device memory to shared memory, or of zeros where the source does not exist."""
        return types.void(target, types.int64, source, types.int64, types.boolean), _start

    def vectors_copier(count: int, apart: int) -> Any:
        """Return the function that starts `count` copies of 16 bytes that exist, to offsets `apart` elements apart.

        Copy i starts at element `starts[i] + along` of the source; `starts` are of 32 bits, without a sign.
        """
        assembly = _assembly(f"cp.async.cg.shared.global [$0], [$1], {VECTOR_BYTES};", (_I32, _I64), "r,l,")

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, (_, offset), source, starts, (_, along) = zip(signature.args, arguments, strict=True)
            for i in range(count):
                index = builder.add(offset, ir.Constant(_I64, i * apart))
                start = builder.load(element_pointer(context, builder, starts, ir.Constant(_I64, i)))
                address = global_address(context, builder, source, builder.add(builder.zext(start, _I64), along))
                builder.call(assembly, [shared_address(context, builder, target, index), address])
            return context.get_dummy_value()

        @intrinsic
        def copy(_typing: Any, target: Any, offset: Any, source: Any, starts: Any, along: Any) -> Any:
            return types.void(target, types.int64, source, starts, types.int64), emit

        return copy

    def _line(builder: Any, number: Any, step_bytes: Any, first: Any) -> Any:
        """Return the address of a line, `number` times `step_bytes` behind the first."""
        kind = ir.FunctionType(_I64, [_I32, _I32, _I64])
        constraints = "=l,n,r,l" if isinstance(number, ir.Constant) else "=l,r,r,l"
        return builder.call(
            ir.InlineAsm(kind, "mad.wide.u32 $0, $2, $1, $3;", constraints), [number, step_bytes, first]
        )

    def lines_copier(count: int, apart: int) -> Any:
        """Return the function that starts copies of 16 bytes of `count` lines to offsets `apart` elements apart.

        Those of line i start at element `start + i * step` of the source; `step` is of 32 bits, without a sign.
        """
        assembly = _assembly(f"cp.async.cg.shared.global [$0], [$1], {VECTOR_BYTES};", (_I32, _I64), "r,l,")

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, (_, offset), source, (_, start), (_, step) = zip(signature.args, arguments, strict=True)
            first = global_address(context, builder, source, start)
            for i in range(count):
                target_address = shared_address(
                    context, builder, target, builder.add(offset, ir.Constant(_I64, i * apart))
                )
                number = ir.Constant(_I32, i * source[0].dtype.bitwidth // 8)
                builder.call(assembly, [target_address, _line(builder, number, step, first)])
            return context.get_dummy_value()

        @intrinsic
        def copy(_typing: Any, target: Any, offset: Any, source: Any, start: Any, step: Any) -> Any:
            return types.void(target, types.int64, source, types.int64, types.uint32), emit

        return copy

    def edge_lines_copier(count: int, apart: int, sweep: int) -> Any:
        """Return the function that does so for lines of a matrix `sweep` apart: below the last it copies that again.

        Its arguments: target, offset, the matrix, the first line and its column; right of the matrix there are zeros.
        """
        text = f"cp.async.cg.shared.global [$0], [$1], {VECTOR_BYTES}, $2;"
        assembly = _assembly(text, (_I32, _I64, _I32), "r,l,r,")

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, (_, offset), source, (_, line), (_, column) = zip(signature.args, arguments, strict=True)
            shape = context.make_array(source[0])(context, builder, source[1]).shape
            lines, length = (builder.extract_value(shape, axis) for axis in range(2))
            exists = builder.icmp_signed("<", column, length)
            size = builder.select(exists, ir.Constant(_I32, VECTOR_BYTES), ir.Constant(_I32, 0))
            first = global_address(context, builder, source, builder.select(exists, column, ir.Constant(_I64, 0)))
            step_bytes = builder.mul(builder.trunc(length, _I32), ir.Constant(_I32, source[0].dtype.bitwidth // 8))
            last = builder.sub(builder.trunc(lines, _I32), ir.Constant(_I32, 1))
            for i in range(count):
                target_address = shared_address(
                    context, builder, target, builder.add(offset, ir.Constant(_I64, i * apart))
                )
                number = builder.add(builder.trunc(line, _I32), ir.Constant(_I32, i * sweep))
                number = builder.select(builder.icmp_signed("<", number, last), number, last)
                builder.call(assembly, [target_address, _line(builder, number, step_bytes, first), size])
            return context.get_dummy_value()

        @intrinsic
        def copy(_typing: Any, target: Any, offset: Any, source: Any, line: Any, column: Any) -> Any:
            return types.void(target, types.int64, source, types.int64, types.int64), emit

        return copy

    @intrinsic
    def commit_copies(_typing: Any) -> Any:
        """Close the group of copies that were started."""

        def emit(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            builder.call(_assembly("cp.async.commit_group;"), [])
            return context.get_dummy_value()

        return types.void(), emit

    @intrinsic
    def wait_for_copies(_typing: Any, pending: Any) -> Any:
        """Wait until at most `pending` groups of this thread are on their way."""
        if not isinstance(pending, types.IntegerLiteral):
            return None  # Numba asks again with the number

        def emit(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            builder.call(_assembly(f"cp.async.wait_group {pending.literal_value};"), [])
            return context.get_dummy_value()

        return types.void(pending), emit
