"""128-bit loads and stores in CUDA kernels: four fp32, two fp64 or eight 16-bit elements with one instruction.

A thread that moves 16 bytes at a time needs a quarter of the load instructions that one fp32 at a time does. The
address must be a multiple of 16 bytes from the start of an array that starts at one, as allocations do; the other array
is a local one, whose elements become registers.

Copies from device memory to shared memory that do not pass through registers (`cp.async`, compute capability 8.0).

A thread starts copies of 16 bytes, closes groups of them and later waits for a group.
"""

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.llvm_values import I32, I64, element_pointer, global_address, shared_address, vector_of

VECTOR_BYTES = 16
ALIGNMENT = VECTOR_BYTES  # of arrays in a kernel


def vector_length(storage: Any) -> int:
    """Return how many elements stored as `storage` fit 16 bytes."""
    return VECTOR_BYTES // int(np.dtype(storage).itemsize)


@intrinsic
def read(_typing: Any, source: Any, at: Any) -> Any:
    """Return an element, counted along the rows and never from the end, which Numba's own indices have to allow."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = element_pointer(context, builder, (source, arguments[0]), arguments[1])
        return context.unpack_value(builder, source.dtype, pointer)

    return source.dtype(source, types.int64), emit


@intrinsic
def write(_typing: Any, target: Any, at: Any, value: Any) -> Any:
    """Set an element, counted as `read` counts."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = element_pointer(context, builder, (target, arguments[0]), arguments[1])
        context.pack_value(builder, target.dtype, arguments[2], pointer)
        return context.get_dummy_value()

    return types.void(target, types.int64, target.dtype), emit


def _mover(count: int, *, load: bool) -> Any:
    """Return the code generator of one load or store of `count` elements."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, at, out_of, start = zip(signature.args, arguments, strict=True)
        (memory, start), (registers, first) = ((out_of, start), (into, at)) if load else ((into, at), (out_of, start))
        element = context.get_data_type(memory[0].dtype)
        indices = [builder.add(first[1], first[1].type(i)) for i in range(count)]
        lanes = [element_pointer(context, builder, registers, index) for index in indices]
        whole = ir.VectorType(element, count) if count <= 4 else ir.VectorType(I32, count // 2)
        pointer = builder.bitcast(element_pointer(context, builder, memory, start[1]), whole.as_pointer())
        size_bytes = count * memory[0].dtype.bitwidth // 8
        if load:
            value = builder.load(pointer, align=size_bytes)
            for lane, number in zip(lanes, _elements(builder, value, element), strict=True):
                builder.store(number, lane)
        else:
            value = _joined(builder, [builder.load(lane) for lane in lanes], whole)
            builder.store(value, pointer, align=size_bytes)
        return context.get_dummy_value()

    return emit


def _elements(builder: Any, value: Any, element: Any) -> list[Any]:
    """Return the elements of a vector; of a vector of words with two each, both halves."""
    found = [builder.extract_element(value, I32(i)) for i in range(value.type.count)]
    if value.type.element == element:
        return found
    shifted = [(word, builder.lshr(word, I32(16))) for word in found]
    return [builder.trunc(half, element) for pair in shifted for half in pair]


def _joined(builder: Any, elements: list[Any], whole: Any) -> Any:
    """Return the vector of elements, or of words with two each; as eight of 16 bits they would move in two."""
    if elements[0].type != whole.element:
        words = [builder.zext(element, I32) for element in elements]
        pairs = zip(words[::2], words[1::2], strict=True)
        elements = [builder.or_(low, builder.shl(high, I32(16))) for low, high in pairs]
    return vector_of(builder, elements)


@intrinsic
def materialize(_typing: Any, number: Any) -> Any:
    """Return an integer that is computed here: LLVM would compute it again in a loop that needs it."""

    def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(I64, [I64])
        return builder.call(ir.InlineAsm(kind, "mov.b64 $0, $1;", "=l,l", side_effect=True), arguments)

    return types.int64(types.int64), emit


@intrinsic
def clear(_typing: Any, registers: Any, count: Any) -> Any:
    """Set the first `count` elements to 0, without a loop."""
    if not isinstance(count, types.IntegerLiteral):
        return None  # Numba asks again with the number

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(context.get_data_type(registers.dtype), 0)
        for i in range(count.literal_value):
            builder.store(zero, element_pointer(context, builder, (registers, arguments[0]), I64(i)))
        return context.get_dummy_value()

    return types.void(registers, count), emit


def _moved(into: Any, out_of: Any) -> Any:
    return types.void(into, types.int64, out_of, types.int64)


@intrinsic
def load_vector(_typing: Any, registers: Any, at: Any, memory: Any, start: Any) -> Any:
    """Load 16 bytes from element `start` of `memory`, counted along the rows, into `registers[at:]`."""
    return _moved(registers, memory), _mover(VECTOR_BYTES * 8 // memory.dtype.bitwidth, load=True)


@cache
def vector_loader(count: int) -> Any:
    """Return what does as `load_vector` does with `count` elements, of 16 bytes or fewer."""

    @intrinsic
    def load(_typing: Any, registers: Any, at: Any, memory: Any, start: Any) -> Any:
        return _moved(registers, memory), _mover(count, load=True)

    return load


@cache
def lines_loader(lines: int, count: int) -> Any:
    """Return what loads `count` elements of each of so many lines, which start `apart` elements apart."""
    move = _mover(count, load=True)

    @intrinsic
    def load(_typing: Any, registers: Any, memory: Any, start: Any, apart: Any) -> Any:
        def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            into, out_of, start, step = arguments
            for line in range(lines):
                move(context, builder, _moved(registers, memory), (into, I64(line * count), out_of, start))
                start = builder.add(start, step)
            return context.get_dummy_value()

        return types.void(registers, memory, types.int64, types.int64), emit

    return load


@intrinsic
def store_vector(_typing: Any, memory: Any, start: Any, registers: Any, at: Any) -> Any:
    """Store 16 bytes from `registers[at:]`, counted along the rows, to element `start` of `memory`."""
    return _moved(memory, registers), _mover(VECTOR_BYTES * 8 // memory.dtype.bitwidth, load=False)


def edge_loader(loads: int, sweep: int, vector: int) -> Any:
    """Return the function that loads vectors of a matrix in an array, each `sweep` lines below the one before.

    Its arguments: the registers, the array, where in it the matrix starts, the line and the column of the first
    vector, and how many lines and columns the matrix has. There are zeros beyond it. All loads are written out: in a
    loop, registers would be an array in memory.
    """
    move = _mover(vector, load=True)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        registers, source = zip(signature.args[:2], arguments[:2], strict=True)
        start, line, column, lines, length = arguments[2:]
        whole_lines = builder.icmp_signed("==", builder.srem(length, I64(vector)), I64(0))
        moved = _moved(registers[0], source[0])
        for each in range(loads):
            row = builder.add(line, I64(each * sweep))
            into = each * vector
            index = builder.add(builder.add(start, builder.mul(row, length)), column)
            below = builder.icmp_signed("<", row, lines)
            inside = builder.select(below, builder.sub(length, column), I64(0))
            enough = builder.icmp_signed(">=", inside, I64(vector))
            with builder.if_else(builder.and_(enough, whole_lines)) as (together, apart):
                with together:
                    move(context, builder, moved, (registers[1], I64(into), source[1], index))
                with apart:
                    _load_part(context, builder, (registers, into), (source, index), (vector, inside))
        return context.get_dummy_value()

    @intrinsic
    def load(
        _typing: Any, registers: Any, source: Any, start: Any, line: Any, column: Any, lines: Any, length: Any
    ) -> Any:
        return types.void(registers, source, *[types.int64] * 5), emit

    return load


def _load_part(context: Any, builder: Any, target: Any, source: Any, count: Any) -> None:
    """Load elements one by one, and put zeros where none are left."""
    registers, into = target
    array, start = source
    vector, inside = count
    zero = ir.Constant(context.get_data_type(array[0].dtype), 0)
    for i in range(vector):
        register = element_pointer(context, builder, registers, I64(into + i))
        builder.store(zero, register)
        with builder.if_then(builder.icmp_signed("<", I64(i), inside)):
            pointer = element_pointer(context, builder, array, builder.add(start, I64(i)))
            builder.store(builder.load(pointer), register)


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
