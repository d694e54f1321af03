"""Online softmax on the sums that `mma.sync` leaves in the lanes of a warp, written out: all of it stays in registers.

Scores are `m_tiles` times 16 rows and `n_tiles` times 8 keys. Of each product a lane has two neighbours of a row and
the two that lie 8 rows below, so four neighbouring lanes share a row. Weights are powers of two, for which the hardware
has an instruction: `scale` takes scores to their exponents, and `maxima`, the highest exponent of each row so far,
starts at `LOWEST`. `totals` are of a lane's own weights until `merge_partial` adds them up.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.llvm_values import F32, I32, I64, element_pointer

LOWEST = np.float32(np.finfo(np.float32).min / 2)  # not -inf, which cannot be subtracted from itself


def _row_offsets(row: int, n_tiles: int) -> list[int]:
    """Return the indices of the numbers of a row of a lane, its first, second, ..., among its sums."""
    first = row // 2 * n_tiles * 4 + row % 2 * 2
    return [first + tile * 4 + each for tile in range(n_tiles) for each in range(2)]


def partial_elements(m_tiles: int, n_tiles: int) -> int:
    """Return how many elements of a lane `spill_partial` stores."""
    return 2 * m_tiles * 2 + m_tiles * n_tiles * 4


def _operation(builder: Any, text: str, *numbers: Any, result: Any = F32, together: bool = False) -> Any:
    """Return what an instruction makes of fp32 numbers; `together`: the lanes of the warp do it together."""
    operands = ", ".join(f"${i + 1}" for i in range(len(numbers)))
    kind = ir.FunctionType(result, [F32] * len(numbers))
    constraints = ",".join(["=f" if result == F32 else "=r", *["f"] * len(numbers)])
    assembly = ir.InlineAsm(kind, text.format(operands=operands), constraints, side_effect=together)
    return builder.call(assembly, numbers)


def _larger(builder: Any, left: Any, right: Any) -> Any:
    return _operation(builder, "max.f32 $0, {operands};", left, right)


def _power(builder: Any, exponent: Any) -> Any:
    return _operation(builder, "ex2.approx.ftz.f32 $0, {operands};", exponent)


def _fma(builder: Any, left: Any, right: Any, added: Any) -> Any:
    return _operation(builder, "fma.rn.f32 $0, {operands};", left, right, added)


def _folded(builder: Any, numbers: list[Any], fold: Any) -> Any:
    """Return all numbers folded into one, in pairs: as few as can be wait for one another."""
    while len(numbers) > 1:
        pairs = [fold(builder, *numbers[at : at + 2]) for at in range(0, len(numbers) - 1, 2)]
        numbers = [*pairs, *numbers[len(pairs) * 2 :]]
    return numbers[0]


def _of_quad(builder: Any, number: Any, fold: Any) -> Any:
    """Return a number folded over the four lanes that share a row."""
    for distance in (1, 2):
        text = f"shfl.sync.bfly.b32 $0, {{operands}}, {distance}, 31, 0xffffffff;"
        number = fold(builder, number, _operation(builder, text, number, together=True))
    return number


def _loaded(context: Any, builder: Any, array: Any, offsets: list[int]) -> list[Any]:
    return [builder.load(element_pointer(context, builder, array, I64(offset))) for offset in offsets]


def _stored(context: Any, builder: Any, array: Any, offsets: list[int], numbers: list[Any]) -> None:
    for offset, number in zip(offsets, numbers, strict=True):
        builder.store(number, element_pointer(context, builder, array, I64(offset)))


def online_softmax_update(m_tiles: int, n_tiles: int, sum_tiles: int) -> Any:
    """Return the function that makes weights of scores, below the highest so far, and rescales what was summed.

    Its arguments: `scores`, `sums` of `sum_tiles` products across, `maxima`, `totals` and `scale`.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scores, sums, maxima, totals, (_, scale) = zip(signature.args, arguments, strict=True)
        rows = range(2 * m_tiles)
        score_rows = [_loaded(context, builder, scores, _row_offsets(row, n_tiles)) for row in rows]
        old_maxima = _loaded(context, builder, maxima, [*rows])
        highest = [_of_quad(builder, _folded(builder, row, _larger), _larger) for row in score_rows]
        new_maxima = [
            _larger(builder, old, builder.fmul(high, scale)) for old, high in zip(old_maxima, highest, strict=True)
        ]
        for row, (numbers, old, new) in enumerate(zip(score_rows, old_maxima, new_maxima, strict=True)):
            below = builder.fsub(F32(-0.0), new)
            correction = _power(builder, builder.fsub(old, new))
            weights = [_power(builder, _fma(builder, number, scale, below)) for number in numbers]
            _stored(context, builder, scores, _row_offsets(row, n_tiles), weights)
            (total,) = _loaded(context, builder, totals, [row])
            total = _fma(builder, total, correction, _folded(builder, weights, ir.IRBuilder.fadd))
            _stored(context, builder, totals, [row], [total])
            summed = _loaded(context, builder, sums, _row_offsets(row, sum_tiles))
            scaled = [builder.fmul(number, correction) for number in summed]
            _stored(context, builder, sums, _row_offsets(row, sum_tiles), scaled)
        _stored(context, builder, maxima, [*rows], new_maxima)
        return context.get_dummy_value()

    @intrinsic
    def update(_typing: Any, scores: Any, sums: Any, maxima: Any, totals: Any, scale: Any) -> Any:
        return types.void(scores, sums, maxima, totals, types.float32), emit

    return update


def key_mask(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that masks a lane's keys from the one at `inside` on: their scores are -inf."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scores, (_, inside) = zip(signature.args, arguments, strict=True)
        for number in range(n_tiles * 2):
            is_inside = builder.icmp_signed("<", I64(number // 2 * 8 + number % 2), inside)
            offsets = [_row_offsets(row, n_tiles)[number] for row in range(2 * m_tiles)]
            masked = [
                builder.select(is_inside, score, F32(float("-inf")))
                for score in _loaded(context, builder, scores, offsets)
            ]
            _stored(context, builder, scores, offsets, masked)
        return context.get_dummy_value()

    @intrinsic
    def mask(_typing: Any, scores: Any, inside: Any) -> Any:
        return types.void(scores, types.int64), emit

    return mask


def pack_fragments(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that rounds weights to the format of `like`, as fragments of A of the next products."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words, weights, (like, _) = zip(signature.args, arguments, strict=True)
        rounded = {types.float16: "f16x2", types.uint16: "bf16x2"}[like.dtype]
        text = f"cvt.rn.{rounded}.f32 $0, {{operands}};"
        for word, (low, high) in enumerate(_pairs(m_tiles, n_tiles)):
            numbers = _loaded(context, builder, weights, [high, low])  # the first is the upper half
            packed = _operation(builder, text, *numbers, result=I32)
            _stored(context, builder, words, [word], [packed])
        return context.get_dummy_value()

    @intrinsic
    def pack(_typing: Any, words: Any, weights: Any, like: Any) -> Any:
        return types.void(words, weights, like), emit

    return pack


def spill_partial(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that stores a lane's `maxima`, `totals` and sums in `scratch`, for `merge_partial`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scratch, (_, first), sums, maxima, totals = zip(signature.args, arguments, strict=True)
        counts = ((maxima, 2 * m_tiles), (totals, 2 * m_tiles), (sums, m_tiles * n_tiles * 4))
        numbers = [number for array, count in counts for number in _loaded(context, builder, array, [*range(count)])]
        for i, number in enumerate(numbers):
            index = builder.add(first, I64(i * WARP))
            builder.store(number, element_pointer(context, builder, scratch, index))
        return context.get_dummy_value()

    @intrinsic
    def spill(_typing: Any, scratch: Any, first: Any, sums: Any, maxima: Any, totals: Any) -> Any:
        return types.void(scratch, types.int64, sums, maxima, totals), emit

    return spill


def merge_partial(m_tiles: int, n_tiles: int) -> Any:
    """Return the function that merges a lane's sums with what `spill_partial` stored, and divides by the totals."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scratch, (_, first), sums, maxima, totals = zip(signature.args, arguments, strict=True)
        rows = 2 * m_tiles

        def other_warp(offset: int) -> Any:
            index = builder.add(first, I64(offset * WARP))
            return builder.load(element_pointer(context, builder, scratch, index))

        for row in range(rows):
            (own_max,), (total,) = (_loaded(context, builder, array, [row]) for array in (maxima, totals))
            new_max = _larger(builder, own_max, other_warp(row))
            own, other = (_power(builder, builder.fsub(each, new_max)) for each in (own_max, other_warp(row)))
            total = _fma(builder, total, own, builder.fmul(other_warp(rows + row), other))
            reciprocal = builder.fdiv(F32(1), _of_quad(builder, total, ir.IRBuilder.fadd))
            own, other = (builder.fmul(each, reciprocal) for each in (own, other))
            offsets = _row_offsets(row, n_tiles)
            merged = [
                _fma(builder, number, own, builder.fmul(other_warp(2 * rows + offset), other))
                for offset, number in zip(offsets, _loaded(context, builder, sums, offsets), strict=True)
            ]
            _stored(context, builder, sums, offsets, merged)
        return context.get_dummy_value()

    @intrinsic
    def merge(_typing: Any, scratch: Any, first: Any, sums: Any, maxima: Any, totals: Any) -> Any:
        return types.void(scratch, types.int64, sums, maxima, totals), emit

    return merge


def _pairs(m_tiles: int, n_tiles: int) -> list[tuple[int, int]]:
    """Return the offsets of the two weights in each register of the fragments of A, 16 keys after 16 keys."""
    return [
        (offset, offset + 1)
        for pair in range(n_tiles // 2)
        for i in range(m_tiles)
        for tile in range(2)
        for offset in ((i * n_tiles + 2 * pair + tile) * 4, (i * n_tiles + 2 * pair + tile) * 4 + 2)
    ]
