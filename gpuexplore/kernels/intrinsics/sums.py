"""Stores of the sums that `mma.sync` leaves in the lanes of a warp, without a loop: they stay in registers.

Of each product of 16 x 8 sums, a lane has two neighbours of a row, and the two that lie 8 rows below.
"""

from itertools import product
from typing import Any

from numba import config

ROWS, COLUMNS = 8, 8  # from a lane's pair of sums to its next

if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.formats.numba_cuda import narrow
    from gpuexplore.kernels.intrinsics.vectors import write

    def storer(down: int, across: int) -> Any:
        """Return the function that stores the sums of so many products from element `start` of `out` on.

        `below` and `beside` rows and columns of `out`, which has rows of `n`, are left from there.
        """

        def store(out: Any, start: Any, sums: Any, n: Any, below: Any, beside: Any) -> None:
            for i, j, each in product(range(2 * down), range(across), range(2)):
                if i * ROWS < below and j * COLUMNS + each < beside:
                    held = sums[(i // 2 * across + j) * 4 + i % 2 * 2 + each]
                    write(out, start + i * ROWS * n + j * COLUMNS + each, narrow(held, out.dtype))

        return store

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.formats.numba_cuda import narrowed
    from gpuexplore.kernels.intrinsics.addresses import element_pointer, int64

    def storer(down: int, across: int) -> Any:
        """Return the function that stores the sums of so many products from element `start` of `out` on.

        `below` and `beside` rows and columns of `out`, which has rows of `n`, are left from there.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            out, (_, start), sums, (_, n), (_, below), (_, beside) = zip(signature.args, arguments, strict=True)
            even = builder.icmp_signed("==", builder.and_(n, int64(1)), int64(0))
            for i, j in product(range(2 * down), range(across)):
                first = (i // 2 * across + j) * 4 + i % 2 * 2
                held = [builder.load(element_pointer(context, builder, sums, int64(first + each))) for each in range(2)]
                further = builder.add(builder.mul(n, int64(i * ROWS)), int64(j * COLUMNS))
                inside = builder.and_(_less(builder, i * ROWS, below), _less(builder, j * COLUMNS, beside))
                with builder.if_then(inside):
                    pair = [narrowed(context, builder, number, out[0].dtype) for number in held]
                    whole = _less(builder, j * COLUMNS + 1, beside)
                    _store_pair(context, builder, (out, builder.add(start, further)), pair, (even, whole))
            return context.get_dummy_value()

        @intrinsic
        def store(_typing: Any, out: Any, start: Any, sums: Any, n: Any, below: Any, beside: Any) -> Any:
            index = types.int64
            return types.void(out, index, sums, index, index, index), emit

        return store

    def _store_pair(context: Any, builder: Any, target: Any, pair: list[Any], conditions: Any) -> None:
        """Store two neighbours: together where rows have an even length, else one by one as far as the row goes."""
        (out, place), (even, whole) = target, conditions
        start = element_pointer(context, builder, out, place)
        with builder.if_else(even) as (together, apart):
            with together:
                kind = ir.VectorType(pair[0].type, 2)
                value = ir.Constant(kind, ir.Undefined)
                for i, element in enumerate(pair):
                    value = builder.insert_element(value, element, ir.Constant(ir.IntType(32), i))
                builder.store(value, builder.bitcast(start, kind.as_pointer()), align=out[0].dtype.bitwidth // 4)
            with apart:
                builder.store(pair[0], start)
                with builder.if_then(whole):
                    builder.store(pair[1], builder.gep(start, [int64(1)]))

    def _less(builder: Any, number: int, limit: Any) -> Any:
        return builder.icmp_signed("<", int64(number), limit)


__all__ = ["storer"]
