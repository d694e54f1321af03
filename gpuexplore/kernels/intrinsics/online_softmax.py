"""Online softmax on the sums that `mma.sync` leaves in the lanes of a warp, written out: all of it stays in registers.

Scores are `m_tiles` times 16 rows and `n_tiles` times 8 keys. Of each product a lane has two neighbours of a row and
the two that lie 8 rows below, so four neighbouring lanes share a row. Weights are powers of two, for which the hardware
has an instruction: `scale` takes scores to their exponents, and `maxima`, the highest exponent of each row so far,
starts at `LOWEST`. `totals` are of a lane's own weights until `merge_partial` adds them up.
"""

from typing import Any

import numpy as np
from numba import config

LOWEST = np.float32(np.finfo(np.float32).min / 2)  # not -inf, which cannot be subtracted from itself


def row_offsets(row: int, n_tiles: int) -> list[int]:
    """Return the indices of the numbers of a row of a lane, its first, second, ..., among its sums."""
    first = row // 2 * n_tiles * 4 + row % 2 * 2
    return [first + tile * 4 + each for tile in range(n_tiles) for each in range(2)]


def partial_elements(m_tiles: int, n_tiles: int) -> int:
    """Return how many elements of a lane `spill_partial` stores."""
    return 2 * m_tiles * 2 + m_tiles * n_tiles * 4


if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.cuda_formats import narrow
    from gpuexplore.kernels.geometry import WARP
    from gpuexplore.kernels.intrinsics.warps import from_every_lane, this_lane

    def _quad(value: Any) -> list[Any]:
        first = this_lane() // 4 * 4
        return from_every_lane(value)[first : first + 4]

    def online_softmax_update(m_tiles: int, n_tiles: int, sum_tiles: int) -> Any:
        """Return the function that makes weights of scores, below the highest so far, and rescales what was summed.

        Its arguments: `scores`, `sums` of `sum_tiles` times 8 columns, `maxima`, `totals` and `scale`.
        """

        def update(scores: Any, sums: Any, maxima: Any, totals: Any, scale: Any) -> None:
            for row in range(2 * m_tiles):
                offsets = row_offsets(row, n_tiles)
                higher = max(maxima[row], max(_quad(scores[offsets].max())) * scale)
                correction = np.exp2(maxima[row] - higher)
                scores[offsets] = np.exp2(scores[offsets] * scale - higher)
                sums[row_offsets(row, sum_tiles)] *= correction
                maxima[row], totals[row] = higher, totals[row] * correction + scores[offsets].sum()

        return update

    def key_mask(m_tiles: int, n_tiles: int) -> Any:
        """Return the function that masks a lane's keys from the one at `inside` on: their scores are -inf."""

        def mask(scores: Any, inside: Any) -> None:
            for row in range(2 * m_tiles):
                for number, offset in enumerate(row_offsets(row, n_tiles)):
                    if number // 2 * 8 + number % 2 >= inside:
                        scores[offset] = -np.inf

        return mask

    def pack_fragments(m_tiles: int, n_tiles: int) -> Any:
        """Return the function that rounds weights to the format of `like`, as fragments of A of the next products."""

        def pack(words: Any, weights: Any, like: Any) -> None:
            for word, (low, high) in enumerate(_pairs(m_tiles, n_tiles)):
                halves = [narrow(weights[offset], like.dtype) for offset in (low, high)]
                words[word] = np.array(halves, like.dtype).view(np.uint32)[0]

        return pack

    def spill_partial(m_tiles: int, n_tiles: int) -> Any:
        """Return the function that stores a lane's `maxima`, `totals` and sums in `scratch`, for `merge_partial`."""

        def spill(scratch: Any, first: Any, sums: Any, maxima: Any, totals: Any) -> None:
            numbers = [*maxima[: 2 * m_tiles], *totals[: 2 * m_tiles], *sums[: m_tiles * n_tiles * 4]]
            for index, number in enumerate(numbers):
                scratch[first + index * WARP] = number

        return spill

    def merge_partial(m_tiles: int, n_tiles: int) -> Any:
        """Return the function that merges a lane's sums with what `spill_partial` stored, and divides by the totals."""

        def merge(scratch: Any, first: Any, sums: Any, maxima: Any, totals: Any) -> None:
            rows, numbers = 2 * m_tiles, scratch[first : first + partial_elements(m_tiles, n_tiles) * WARP : WARP]
            for row in range(rows):
                higher, offsets = max(maxima[row], numbers[row]), row_offsets(row, n_tiles)
                own, other = np.exp2(maxima[row] - higher), np.exp2(numbers[row] - higher)
                total = sum(_quad(totals[row] * own + numbers[rows + row] * other))
                sums[offsets] = (sums[offsets] * own + numbers[2 * rows :][offsets] * other) / total

        return merge

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.geometry import WARP
    from gpuexplore.kernels.intrinsics.addresses import element_pointer, int64

    _F32, _I32 = ir.FloatType(), ir.IntType(32)
    ROUNDED = {types.float16: "f16x2", types.uint16: "bf16x2"}

    def _operation(builder: Any, text: str, *numbers: Any, result: Any = _F32, together: bool = False) -> Any:
        """Return what an instruction makes of fp32 numbers; `together`: the lanes of the warp do it together."""
        operands = ", ".join(f"${i + 1}" for i in range(len(numbers)))
        kind = ir.FunctionType(result, [_F32] * len(numbers))
        constraints = ",".join(["=f" if result == _F32 else "=r", *["f"] * len(numbers)])
        assembly = ir.InlineAsm(kind, text.format(operands=operands), constraints, side_effect=together)
        return builder.call(assembly, numbers)

    def _larger(builder: Any, left: Any, right: Any) -> Any:
        return _operation(builder, "max.f32 $0, {operands};", left, right)

    def _power(builder: Any, exponent: Any) -> Any:
        return _operation(builder, "ex2.approx.ftz.f32 $0, {operands};", exponent)

    def _fma(builder: Any, left: Any, right: Any, added: Any) -> Any:
        return _operation(builder, "fma.rn.f32 $0, {operands};", left, right, added)

    def _added(builder: Any, left: Any, right: Any) -> Any:
        return builder.fadd(left, right)

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

    def _pointer(context: Any, builder: Any, array: Any, offset: int) -> Any:
        return element_pointer(context, builder, array, int64(offset))

    def _loaded(context: Any, builder: Any, array: Any, offsets: list[int]) -> list[Any]:
        return [builder.load(_pointer(context, builder, array, offset)) for offset in offsets]

    def _stored(context: Any, builder: Any, array: Any, offsets: list[int], numbers: list[Any]) -> None:
        for offset, number in zip(offsets, numbers, strict=True):
            builder.store(number, _pointer(context, builder, array, offset))

    def online_softmax_update(m_tiles: int, n_tiles: int, sum_tiles: int) -> Any:
        """Return the function that makes weights of scores, below the highest so far, and rescales what was summed.

        Its arguments: `scores`, `sums` of `sum_tiles` products across, `maxima`, `totals` and `scale`.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, sums, maxima, totals, (_, scale) = zip(signature.args, arguments, strict=True)
            rows = range(2 * m_tiles)
            score_rows = [_loaded(context, builder, scores, row_offsets(row, n_tiles)) for row in rows]
            old_maxima = _loaded(context, builder, maxima, [*rows])
            highest = [_of_quad(builder, _folded(builder, row, _larger), _larger) for row in score_rows]
            new_maxima = [
                _larger(builder, old, builder.fmul(high, scale)) for old, high in zip(old_maxima, highest, strict=True)
            ]
            for row, (numbers, old, new) in enumerate(zip(score_rows, old_maxima, new_maxima, strict=True)):
                below, correction = builder.fsub(ir.Constant(_F32, -0.0), new), _power(builder, builder.fsub(old, new))
                weights = [_power(builder, _fma(builder, number, scale, below)) for number in numbers]
                _stored(context, builder, scores, row_offsets(row, n_tiles), weights)
                (total,) = _loaded(context, builder, totals, [row])
                total = _fma(builder, total, correction, _folded(builder, weights, _added))
                _stored(context, builder, totals, [row], [total])
                summed = _loaded(context, builder, sums, row_offsets(row, sum_tiles))
                scaled = [builder.fmul(number, correction) for number in summed]
                _stored(context, builder, sums, row_offsets(row, sum_tiles), scaled)
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
                is_inside = builder.icmp_signed("<", int64(number // 2 * 8 + number % 2), inside)
                offsets = [row_offsets(row, n_tiles)[number] for row in range(2 * m_tiles)]
                masked = [
                    builder.select(is_inside, score, ir.Constant(_F32, float("-inf")))
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
            text = f"cvt.rn.{ROUNDED[like.dtype]}.f32 $0, {{operands}};"
            for word, (low, high) in enumerate(_pairs(m_tiles, n_tiles)):
                numbers = _loaded(context, builder, weights, [high, low])  # the first is the upper half
                packed = _operation(builder, text, *numbers, result=_I32)
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
            numbers = [
                number for array, count in counts for number in _loaded(context, builder, array, [*range(count)])
            ]
            for i, number in enumerate(numbers):
                index = builder.add(first, int64(i * WARP))
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
                index = builder.add(first, int64(offset * WARP))
                return builder.load(element_pointer(context, builder, scratch, index))

            for row in range(rows):
                (own_max,), (total,) = (_loaded(context, builder, array, [row]) for array in (maxima, totals))
                new_max = _larger(builder, own_max, other_warp(row))
                own, other = (_power(builder, builder.fsub(each, new_max)) for each in (own_max, other_warp(row)))
                total = _fma(builder, total, own, builder.fmul(other_warp(rows + row), other))
                reciprocal = builder.fdiv(ir.Constant(_F32, 1), _of_quad(builder, total, _added))
                own, other = (builder.fmul(each, reciprocal) for each in (own, other))
                offsets = row_offsets(row, n_tiles)
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


__all__ = [
    "LOWEST",
    "key_mask",
    "merge_partial",
    "online_softmax_update",
    "pack_fragments",
    "partial_elements",
    "spill_partial",
]
