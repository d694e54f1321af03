"""Copies from device memory to shared memory that do not pass through registers (`cp.async`, compute capability 8.0).

A thread starts copies of 16 bytes, closes groups of them and later waits for a group.
"""

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.intrinsics.vectors import VECTOR_BYTES
from gpuexplore.kernels.llvm_values import I32, I64, element_pointer, global_address, shared_address


def _assembly(text: str, operands: tuple[Any, ...] = (), constraints: str = "") -> Any:
    kind = ir.FunctionType(ir.VoidType(), operands)
    return ir.InlineAsm(kind, text, f"{constraints}~{{memory}}", side_effect=True)


_COPY = _assembly(f"cp.async.cg.shared.global [$0], [$1], {VECTOR_BYTES};", (I32, I64), "r,l,")
_COPY_OR_CLEAR = _assembly(f"cp.async.cg.shared.global [$0], [$1], {VECTOR_BYTES}, $2;", (I32, I64, I32), "r,l,r,")


def _bytes_where(builder: Any, exists: Any) -> Any:
    """Return how many bytes of the source are copied: the others become zeros."""
    return builder.select(exists, I32(VECTOR_BYTES), I32(0))


@intrinsic
def copy_vector_async(_typing: Any, target: Any, offset: Any, source: Any, start: Any, exists: Any) -> Any:
    """Start a copy of 16 bytes from device memory to shared memory, or of zeros where the source does not exist."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, (_, offset), out_of, (_, start), (_, exists) = zip(signature.args, arguments, strict=True)
        size = _bytes_where(builder, exists)
        address = shared_address(context, builder, into, offset)
        builder.call(_COPY_OR_CLEAR, [address, global_address(context, builder, out_of, start), size])
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.boolean), emit


def vectors_copier(count: int, apart: int) -> Any:
    """Return the function that starts `count` copies of 16 bytes that exist, to offsets `apart` elements apart.

    Copy i starts at element `starts[i] + along` of the source; `starts` are of 32 bits, without a sign.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, (_, offset), source, starts, (_, along) = zip(signature.args, arguments, strict=True)
        for i in range(count):
            index = builder.add(offset, I64(i * apart))
            start = builder.load(element_pointer(context, builder, starts, I64(i)))
            address = global_address(context, builder, source, builder.add(builder.zext(start, I64), along))
            builder.call(_COPY, [shared_address(context, builder, target, index), address])
        return context.get_dummy_value()

    @intrinsic
    def copy(_typing: Any, target: Any, offset: Any, source: Any, starts: Any, along: Any) -> Any:
        return types.void(target, types.int64, source, starts, types.int64), emit

    return copy


def _line(builder: Any, number: Any, step_bytes: Any, first: Any) -> Any:
    """Return the address of a line, `number` times `step_bytes` behind the first."""
    kind = ir.FunctionType(I64, [I32, I32, I64])
    constraints = "=l,n,r,l" if isinstance(number, ir.Constant) else "=l,r,r,l"
    return builder.call(ir.InlineAsm(kind, "mad.wide.u32 $0, $2, $1, $3;", constraints), [number, step_bytes, first])


def lines_copier(count: int, apart: int) -> Any:
    """Return the function that starts copies of 16 bytes of `count` lines to offsets `apart` elements apart.

    Those of line i start at element `start + i * step` of the source; `step` is of 32 bits, without a sign.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, (_, offset), source, (_, start), (_, step) = zip(signature.args, arguments, strict=True)
        first = global_address(context, builder, source, start)
        for i in range(count):
            into = shared_address(context, builder, target, builder.add(offset, I64(i * apart)))
            number = I32(i * source[0].dtype.bitwidth // 8)
            builder.call(_COPY, [into, _line(builder, number, step, first)])
        return context.get_dummy_value()

    @intrinsic
    def copy(_typing: Any, target: Any, offset: Any, source: Any, start: Any, step: Any) -> Any:
        return types.void(target, types.int64, source, types.int64, types.uint32), emit

    return copy


def edge_lines_copier(count: int, apart: int, sweep: int) -> Any:
    """Return the function that does so for lines of a matrix `sweep` apart: below the last it copies that again.

    Its arguments: target, offset, the matrix, the first line and its column; right of the matrix there are zeros.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, (_, offset), source, (_, line), (_, column) = zip(signature.args, arguments, strict=True)
        shape = context.make_array(source[0])(context, builder, source[1]).shape
        lines, length = (builder.extract_value(shape, axis) for axis in range(2))
        exists = builder.icmp_signed("<", column, length)
        size = _bytes_where(builder, exists)
        first = global_address(context, builder, source, builder.select(exists, column, I64(0)))
        step_bytes = builder.mul(builder.trunc(length, I32), I32(source[0].dtype.bitwidth // 8))
        last = builder.sub(builder.trunc(lines, I32), I32(1))
        for i in range(count):
            into = shared_address(context, builder, target, builder.add(offset, I64(i * apart)))
            number = builder.add(builder.trunc(line, I32), I32(i * sweep))
            number = builder.select(builder.icmp_signed("<", number, last), number, last)
            builder.call(_COPY_OR_CLEAR, [into, _line(builder, number, step_bytes, first), size])
        return context.get_dummy_value()

    @intrinsic
    def copy(_typing: Any, target: Any, offset: Any, source: Any, line: Any, column: Any) -> Any:
        return types.void(target, types.int64, source, types.int64, types.int64), emit

    return copy


def _emitting(text: str) -> Any:
    """Return the code generator of an instruction without operands."""

    def emit(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.call(_assembly(text), [])
        return context.get_dummy_value()

    return emit


@intrinsic
def commit_copies(_typing: Any) -> Any:
    """Close the group of copies that were started."""
    return types.void(), _emitting("cp.async.commit_group;")


@intrinsic
def wait_for_copies(_typing: Any, pending: Any) -> Any:
    """Wait until at most `pending` groups of this thread are on their way."""
    if not isinstance(pending, types.IntegerLiteral):
        return None  # Numba asks again with the number
    return types.void(pending), _emitting(f"cp.async.wait_group {pending.literal_value};")
