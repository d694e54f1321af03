"""128-bit loads and stores in CUDA kernels: four fp32, two fp64 or eight 16-bit elements with one instruction.

A thread that moves 16 bytes at a time needs a quarter of the load instructions that one fp32 at a time does. The
address must be a multiple of 16 bytes from the start of an array that starts at one, as allocations do; the other array
is a local one, whose elements become registers. In Numba's simulator a copy of a slice.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import config

VECTOR_BYTES = 16
ALIGNMENT = None if config.ENABLE_CUDASIM else VECTOR_BYTES  # of arrays in a kernel; the simulator takes none


def vector_length(storage: Any) -> int:
    """Return how many elements stored as `storage` fit 16 bytes."""
    return VECTOR_BYTES // int(np.dtype(storage).itemsize)


if config.ENABLE_CUDASIM:

    def read(source: Any, at: Any) -> Any:
        """Return an element, counted along the rows and never from the end, which Numba's own indices have to allow."""
        if not 0 <= at < source.size:
            raise IndexError(f"element {at} of {source.size}")
        return source.reshape(source.size)[at]

    def write(target: Any, at: Any, value: Any) -> None:
        """Set an element, counted as `read` counts."""
        if not 0 <= at < target.size:
            raise IndexError(f"element {at} of {target.size}")
        target.reshape(target.size)[at] = value

    def materialize(number: Any) -> Any:
        """Return an integer that is computed here: LLVM would compute it again in a loop that needs it."""
        return number

    def clear(registers: Any, count: Any) -> None:
        """Set the first `count` elements to 0, without a loop."""
        registers[:count] = 0

    def load_vector(registers: Any, at: Any, memory: Any, start: Any) -> None:
        """Load 16 bytes from element `start` of `memory`, counted along the rows, into `registers[at:]`."""
        copy_elements(registers, at, memory, start, vector_length(memory.dtype))

    def vector_loader(count: int) -> Any:
        """Return what does as `load_vector` does with `count` elements, of 16 bytes or fewer."""

        def load(registers: Any, at: Any, memory: Any, start: Any) -> None:
            copy_elements(registers, at, memory, start, count)

        return load

    def lines_loader(lines: int, count: int) -> Any:
        """Return what loads `count` elements of each of so many lines, which start `apart` elements apart."""

        def load(registers: Any, memory: Any, start: Any, apart: Any) -> None:
            for line in range(lines):
                copy_elements(registers, line * count, memory, start + line * apart, count)

        return load

    def store_vector(memory: Any, start: Any, registers: Any, at: Any) -> None:
        """Store 16 bytes from `registers[at:]`, counted along the rows, to element `start` of `memory`."""
        copy_elements(memory, start, registers, at, vector_length(memory.dtype))

    def copy_elements(target: Any, at: Any, source: Any, start: Any, count: int) -> None:
        """Copy `count` elements, as the GPU copies them at once: from a multiple of them to a multiple of them."""
        if at % count or start % count:
            raise IndexError(f"a copy of {count} elements from {start} to {at} is not aligned")
        if start + count > source.size or at + count > target.size:
            raise IndexError(f"a copy of {count} elements from {start} to {at} leaves the array")
        flat_source, flat_target = source.reshape(source.size), target.reshape(target.size)
        for i in range(count):
            flat_target[at + i] = flat_source[start + i]

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.intrinsics.addresses import element_pointer, vector_of

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

    _I32 = ir.IntType(32)

    def mover(count: int, *, load: bool) -> Any:
        """Return the code generator of one load or store of `count` elements."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into, at, out_of, start = zip(signature.args, arguments, strict=True)
            memory, start, registers, first = (out_of, start, into, at) if load else (into, at, out_of, start)
            element = context.get_data_type(memory[0].dtype)
            indices = [builder.add(first[1], ir.Constant(first[1].type, i)) for i in range(count)]
            lanes = [element_pointer(context, builder, registers, index) for index in indices]
            whole = ir.VectorType(element, count) if count <= 4 else ir.VectorType(_I32, count // 2)
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
        found = [builder.extract_element(value, ir.Constant(_I32, i)) for i in range(value.type.count)]
        if value.type.element == element:
            return found
        shifted = [(word, builder.lshr(word, ir.Constant(_I32, 16))) for word in found]
        return [builder.trunc(half, element) for pair in shifted for half in pair]

    def _joined(builder: Any, elements: list[Any], whole: Any) -> Any:
        """Return the vector of elements, or of words with two each; as eight of 16 bits they would move in two."""
        if elements[0].type != whole.element:
            words = [builder.zext(element, _I32) for element in elements]
            pairs = zip(words[::2], words[1::2], strict=True)
            elements = [builder.or_(low, builder.shl(high, ir.Constant(_I32, 16))) for low, high in pairs]
        return vector_of(builder, elements)

    @intrinsic
    def materialize(_typing: Any, number: Any) -> Any:
        """Return an integer that is computed here: LLVM would compute it again in a loop that needs it."""

        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
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
                index = ir.Constant(ir.IntType(64), i)
                builder.store(zero, element_pointer(context, builder, (registers, arguments[0]), index))
            return context.get_dummy_value()

        return types.void(registers, count), emit

    def _moved(into: Any, out_of: Any) -> Any:
        return types.void(into, types.int64, out_of, types.int64)

    @intrinsic
    def load_vector(_typing: Any, registers: Any, at: Any, memory: Any, start: Any) -> Any:
        """Load 16 bytes from element `start` of `memory`, counted along the rows, into `registers[at:]`."""
        return _moved(registers, memory), mover(VECTOR_BYTES * 8 // memory.dtype.bitwidth, load=True)

    @cache
    def vector_loader(count: int) -> Any:
        """Return what does as `load_vector` does with `count` elements, of 16 bytes or fewer."""

        @intrinsic
        def load(_typing: Any, registers: Any, at: Any, memory: Any, start: Any) -> Any:
            return _moved(registers, memory), mover(count, load=True)

        return load

    @cache
    def lines_loader(lines: int, count: int) -> Any:
        """Return what loads `count` elements of each of so many lines, which start `apart` elements apart."""
        move = mover(count, load=True)

        @intrinsic
        def load(_typing: Any, registers: Any, memory: Any, start: Any, apart: Any) -> Any:
            def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
                into, out_of, start, step = arguments
                for line in range(lines):
                    first = ir.Constant(ir.IntType(64), line * count)
                    move(context, builder, _moved(registers, memory), (into, first, out_of, start))
                    start = builder.add(start, step)
                return context.get_dummy_value()

            return types.void(registers, memory, types.int64, types.int64), emit

        return load

    @intrinsic
    def store_vector(_typing: Any, memory: Any, start: Any, registers: Any, at: Any) -> Any:
        """Store 16 bytes from `registers[at:]`, counted along the rows, to element `start` of `memory`."""
        return _moved(memory, registers), mover(VECTOR_BYTES * 8 // memory.dtype.bitwidth, load=False)
