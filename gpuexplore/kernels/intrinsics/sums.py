"""Stores of the sums that `mma.sync` leaves in the lanes of a warp, without a loop: they stay in registers.

Of each product of 16 x 8 sums, a lane has two neighbours of a row, and the two that lie 8 rows below.
"""

from itertools import product
from typing import Any

from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.cuda_formats import narrowed
from gpuexplore.kernels.llvm_values import I32, I64, element_pointer, vector_of

STEP = 8  # rows and columns from a lane's pair of sums to its next


def accumulator_storer(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that stores the sums of so many products from element `start` of `out` on.

    `m_left` and `n_left` rows and columns of `out`, which has rows of `n`, are left from there.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, (_, start), sums, (_, n), (_, m_left), (_, n_left) = zip(signature.args, arguments, strict=True)
        even = builder.icmp_signed("==", builder.and_(n, I64(1)), I64(0))
        for i, j in product(range(2 * m_tiles), range(n_tiles)):
            first = (i // 2 * n_tiles + j) * 4 + i % 2 * 2
            pair = _pair(context, builder, sums, first)
            further = builder.add(builder.mul(n, I64(i * STEP)), I64(j * STEP))
            inside = builder.and_(_less(builder, i * STEP, m_left), _less(builder, j * STEP, n_left))
            with builder.if_then(inside):
                pair = [narrowed(context, builder, number, out[0].dtype) for number in pair]
                whole = _less(builder, j * STEP + 1, n_left)
                _store_pair(context, builder, (out, builder.add(start, further)), pair, (even, whole))
        return context.get_dummy_value()

    @intrinsic
    def store(_typing: Any, out: Any, start: Any, sums: Any, n: Any, m_left: Any, n_left: Any) -> Any:
        index = types.int64
        return types.void(out, index, sums, index, index, index), emit

    return store


def pixel_storer(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that stores the sums of so many products whose columns are pixels of several images.

    `start`: the element of pixel 0 of the lane's first row in an image, `first_pixel`: the lane's first pixel,
    counted from there through the images behind, of which `end` is the first that does not exist. An image has
    `plane` pixels, the next lies `stride` elements behind, and `m_left` rows are left. Pixels of even planes go in
    pairs.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, sums, *_ = zip(signature.args, arguments, strict=True)
        start, first_pixel, end, plane, stride, m_left = arguments[2:]
        even = builder.icmp_signed("==", builder.and_(plane, I64(1)), I64(0))
        columns = []
        for column in (j * STEP + each for j in range(n_tiles) for each in range(2)):
            position = builder.add(first_pixel, I64(column))
            image, pixel = _divided(builder, position, plane)
            into = builder.add(builder.add(start, builder.mul(image, stride)), pixel)
            columns.append((into, builder.icmp_signed("<", position, end)))
        for i in range(2 * m_tiles):
            further = builder.mul(plane, I64(i * STEP))
            with builder.if_then(_less(builder, i * STEP, m_left)):
                for j in range(n_tiles):
                    pair = _pair(context, builder, sums, (i // 2 * n_tiles + j) * 4 + i % 2 * 2)
                    pair = [narrowed(context, builder, number, out[0].dtype) for number in pair]
                    _store_pixels(context, builder, (out, columns[2 * j : 2 * j + 2], further), pair, even)
        return context.get_dummy_value()

    @intrinsic
    def store(
        _typing: Any,
        out: Any,
        sums: Any,
        start: Any,
        first_pixel: Any,
        end: Any,
        plane: Any,
        stride: Any,
        m_left: Any,
    ) -> Any:
        return types.void(out, sums, *[types.int64] * 6), emit

    return store


def _divided(builder: Any, number: Any, by: Any) -> list[Any]:
    """Return the quotient and the rest of numbers that fit 32 bits."""
    number = builder.trunc(number, I32)
    by = builder.trunc(by, I32)
    return [builder.zext(found, I64) for found in (builder.udiv(number, by), builder.urem(number, by))]


def _store_pixels(context: Any, builder: Any, target: Any, pair: list[Any], even: Any) -> None:
    """Store two numbers of a row, each where its pixel exists: together where they are neighbours."""
    out, columns, further = target
    pointers = [element_pointer(context, builder, out, builder.add(start, further)) for start, _ in columns]
    with builder.if_else(even) as (together, apart):
        with together, builder.if_then(columns[0][1]):
            _store_together(builder, pointers[0], pair, out[0].dtype.bitwidth // 4)
        with apart:
            for pointer, (_, exists), number in zip(pointers, columns, pair, strict=True):
                with builder.if_then(exists):
                    builder.store(number, pointer)


def _pair(context: Any, builder: Any, sums: Any, first: int) -> list[Any]:
    return [builder.load(element_pointer(context, builder, sums, I64(first + each))) for each in range(2)]


def _store_pair(context: Any, builder: Any, target: Any, pair: list[Any], conditions: Any) -> None:
    """Store two neighbours: together where rows have an even length, else one by one as far as the row goes."""
    out, _ = target
    even, whole = conditions
    start = element_pointer(context, builder, *target)
    with builder.if_else(even) as (together, apart):
        with together:
            _store_together(builder, start, pair, out[0].dtype.bitwidth // 4)
        with apart:
            builder.store(pair[0], start)
            with builder.if_then(whole):
                builder.store(pair[1], builder.gep(start, [I64(1)]))


def _store_together(builder: Any, start: Any, pair: list[Any], size_bytes: int) -> None:
    vector = vector_of(builder, pair)
    builder.store(vector, builder.bitcast(start, vector.type.as_pointer()), align=size_bytes)


def _less(builder: Any, number: int, limit: Any) -> Any:
    return builder.icmp_signed("<", I64(number), limit)
