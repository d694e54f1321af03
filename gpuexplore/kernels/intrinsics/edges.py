"""Loads along the edge of a matrix, written out: in a loop that is not, registers would be an array in memory."""

from typing import Any

from numba import config

if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.intrinsics.vectors import read, vector_loader

    def edge_loader(loads: int, sweep: int, vector: int) -> Any:
        """Return the function that loads vectors of a matrix in an array, each `sweep` lines below the one before.

        Its arguments: the registers, the array, where in it the matrix starts, the line and the column of the first
        vector, and how many lines and columns the matrix has. There are zeros beyond it.
        """
        load_vector = vector_loader(vector)

        def load(registers: Any, source: Any, start: Any, line: Any, column: Any, lines: Any, length: Any) -> None:
            for each in range(loads):
                row, into = line + each * sweep, each * vector
                index, inside = start + row * length + column, length - column if row < lines else 0
                if inside >= vector and length % vector == 0:
                    load_vector(registers, into, source, index)
                else:
                    for i in range(vector):
                        registers[into + i] = read(source, index + i) if i < inside else 0

        return load

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.intrinsics.addresses import element_pointer, int64
    from gpuexplore.kernels.intrinsics.vectors import mover

    def edge_loader(loads: int, sweep: int, vector: int) -> Any:
        """Return the function that loads vectors of a matrix in an array, each `sweep` lines below the one before.

        Its arguments: the registers, the array, where in it the matrix starts, the line and the column of the first
        vector, and how many lines and columns the matrix has. There are zeros beyond it.
        """
        load_vector = mover(vector, load=True)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            registers, source = zip(signature.args[:2], arguments[:2], strict=True)
            start, line, column, lines, length = arguments[2:]
            whole_lines = builder.icmp_signed("==", builder.srem(length, int64(vector)), int64(0))
            moved = types.void(registers[0], types.int64, source[0], types.int64)
            for each in range(loads):
                row, into = builder.add(line, int64(each * sweep)), each * vector
                index = builder.add(builder.add(start, builder.mul(row, length)), column)
                below = builder.icmp_signed("<", row, lines)
                inside = builder.select(below, builder.sub(length, column), int64(0))
                enough = builder.icmp_signed(">=", inside, int64(vector))
                with builder.if_else(builder.and_(enough, whole_lines)) as (together, apart):
                    with together:
                        load_vector(context, builder, moved, (registers[1], int64(into), source[1], index))
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
        (registers, into), (array, start), (vector, inside) = target, source, count
        zero = ir.Constant(context.get_data_type(array[0].dtype), 0)
        for i in range(vector):
            register = element_pointer(context, builder, registers, int64(into + i))
            builder.store(zero, register)
            with builder.if_then(builder.icmp_signed("<", int64(i), inside)):
                pointer = element_pointer(context, builder, array, builder.add(start, int64(i)))
                builder.store(builder.load(pointer), register)


__all__ = ["edge_loader"]
