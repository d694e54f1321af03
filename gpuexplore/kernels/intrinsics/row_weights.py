"""Softmax on the sums that `mma.sync` leaves in the lanes of a warp, written out: all of it stays in registers.

Scores are products of `down` times 16 rows and `across` times 8 keys. Of each product a lane has two neighbours of a
row and the two that lie 8 rows below, so four lanes side by side share a row. Weights are powers of two, for which the
hardware has an instruction: `scale` takes scores to their exponents, and `tops`, the highest exponent of each row so
far, starts at `LOWEST`. `totals` are of a lane's own weights until `merger` adds them up.
"""

from typing import Any

import numpy as np
from numba import config

LOWEST = np.float32(np.finfo(np.float32).min / 2)  # not -inf, which cannot be subtracted from itself


def row_places(row: int, across: int) -> list[int]:
    """Return where the numbers of a row of a lane, its first, second, ..., lie among its sums."""
    first = row // 2 * across * 4 + row % 2 * 2
    return [first + tile * 4 + each for tile in range(across) for each in range(2)]


def exchanged(down: int, across: int) -> int:
    """Return how many numbers of a lane `sharer` stores."""
    return 2 * down * 2 + down * across * 4


if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.cuda_formats import narrow
    from gpuexplore.kernels.geometry import WARP
    from gpuexplore.kernels.intrinsics.warps import from_every_lane, this_lane

    def _quad(value: Any) -> list[Any]:
        first = this_lane() // 4 * 4
        return from_every_lane(value)[first : first + 4]

    def weigher(down: int, across: int, wide: int) -> Any:
        """Return the function that turns scores into weights below the highest so far, and scales what was summed.

        Its arguments: `scores`, `sums` of `wide` products across, `tops`, `totals` and `scale`.
        """

        def weigh(scores: Any, sums: Any, tops: Any, totals: Any, scale: Any) -> None:
            for row in range(2 * down):
                places = row_places(row, across)
                higher = max(tops[row], max(_quad(scores[places].max())) * scale)
                kept = np.exp2(tops[row] - higher)
                scores[places] = np.exp2(scores[places] * scale - higher)
                sums[row_places(row, wide)] *= kept
                tops[row], totals[row] = higher, totals[row] * kept + scores[places].sum()

        return weigh

    def hider(down: int, across: int) -> Any:
        """Return the function that gives no weight to a lane's keys from the one at `inside` on."""

        def hide(scores: Any, inside: Any) -> None:
            for row in range(2 * down):
                for number, place in enumerate(row_places(row, across)):
                    if number // 2 * 8 + number % 2 >= inside:
                        scores[place] = -np.inf

        return hide

    def packer(down: int, across: int) -> Any:
        """Return the function that rounds weights to the format of `like`, as fragments of A of the next products."""

        def pack(words: Any, weights: Any, like: Any) -> None:
            for word, (low, high) in enumerate(_pairs(down, across)):
                halves = [narrow(weights[place], like.dtype) for place in (low, high)]
                words[word] = np.array(halves, like.dtype).view(np.uint32)[0]

        return pack

    def sharer(down: int, across: int) -> Any:
        """Return the function that stores a lane's `tops`, `totals` and sums in `room`, for `merger`."""

        def share(room: Any, first: Any, sums: Any, tops: Any, totals: Any) -> None:
            numbers = [*tops[: 2 * down], *totals[: 2 * down], *sums[: down * across * 4]]
            for place, number in enumerate(numbers):
                room[first + place * WARP] = number

        return share

    def merger(down: int, across: int) -> Any:
        """Return the function that merges what `sharer` stored with a lane's own, and divides sums by their totals."""

        def merge(room: Any, first: Any, sums: Any, tops: Any, totals: Any) -> None:
            rows, numbers = 2 * down, room[first : first + exchanged(down, across) * WARP : WARP]
            for row in range(rows):
                higher, places = max(tops[row], numbers[row]), row_places(row, across)
                own, other = np.exp2(tops[row] - higher), np.exp2(numbers[row] - higher)
                total = sum(_quad(totals[row] * own + numbers[rows + row] * other))
                sums[places] = (sums[places] * own + numbers[2 * rows :][places] * other) / total

        return merge

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.geometry import WARP
    from gpuexplore.kernels.intrinsics.addresses import element_pointer

    _F32, _I32, _I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
    ROUNDED = {types.float16: "f16x2", types.uint16: "bf16x2"}

    def _whole(number: int) -> Any:
        return ir.Constant(_I64, number)

    def _operation(builder: Any, text: str, *numbers: Any, result: Any = _F32, together: bool = False) -> Any:
        """Return what an instruction makes of fp32 numbers; `together`: the lanes of the warp do it together."""
        operands = ", ".join(f"${place + 1}" for place in range(len(numbers)))
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

    def _pointer(context: Any, builder: Any, array: Any, place: int) -> Any:
        return element_pointer(context, builder, array, _whole(place))

    def _loaded(context: Any, builder: Any, array: Any, places: list[int]) -> list[Any]:
        return [builder.load(_pointer(context, builder, array, place)) for place in places]

    def _stored(context: Any, builder: Any, array: Any, places: list[int], numbers: list[Any]) -> None:
        for place, number in zip(places, numbers, strict=True):
            builder.store(number, _pointer(context, builder, array, place))

    def weigher(down: int, across: int, wide: int) -> Any:
        """Return the function that turns scores into weights below the highest so far, and scales what was summed.

        Its arguments: `scores`, `sums` of `wide` products across, `tops`, `totals` and `scale`.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, sums, tops, totals, (_, scale) = zip(signature.args, arguments, strict=True)
            rows = range(2 * down)
            held = [_loaded(context, builder, scores, row_places(row, across)) for row in rows]
            before = _loaded(context, builder, tops, [*rows])
            found = [_of_quad(builder, _folded(builder, row, _larger), _larger) for row in held]
            after = [_larger(builder, top, builder.fmul(high, scale)) for top, high in zip(before, found, strict=True)]
            for row, (numbers, top, higher) in enumerate(zip(held, before, after, strict=True)):
                below, kept = builder.fsub(ir.Constant(_F32, -0.0), higher), _power(builder, builder.fsub(top, higher))
                weights = [_power(builder, _fma(builder, number, scale, below)) for number in numbers]
                _stored(context, builder, scores, row_places(row, across), weights)
                (total,) = _loaded(context, builder, totals, [row])
                total = _fma(builder, total, kept, _folded(builder, weights, _added))
                _stored(context, builder, totals, [row], [total])
                summed = _loaded(context, builder, sums, row_places(row, wide))
                scaled = [builder.fmul(number, kept) for number in summed]
                _stored(context, builder, sums, row_places(row, wide), scaled)
            _stored(context, builder, tops, [*rows], after)
            return context.get_dummy_value()

        @intrinsic
        def weigh(_typing: Any, scores: Any, sums: Any, tops: Any, totals: Any, scale: Any) -> Any:
            return types.void(scores, sums, tops, totals, types.float32), emit

        return weigh

    def hider(down: int, across: int) -> Any:
        """Return the function that gives no weight to a lane's keys from the one at `inside` on."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            scores, (_, inside) = zip(signature.args, arguments, strict=True)
            for number in range(across * 2):
                is_inside = builder.icmp_signed("<", _whole(number // 2 * 8 + number % 2), inside)
                places = [row_places(row, across)[number] for row in range(2 * down)]
                kept = [
                    builder.select(is_inside, score, ir.Constant(_F32, float("-inf")))
                    for score in _loaded(context, builder, scores, places)
                ]
                _stored(context, builder, scores, places, kept)
            return context.get_dummy_value()

        @intrinsic
        def hide(_typing: Any, scores: Any, inside: Any) -> Any:
            return types.void(scores, types.int64), emit

        return hide

    def packer(down: int, across: int) -> Any:
        """Return the function that rounds weights to the format of `like`, as fragments of A of the next products."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words, weights, (like, _) = zip(signature.args, arguments, strict=True)
            text = f"cvt.rn.{ROUNDED[like.dtype]}.f32 $0, {{operands}};"
            for word, (low, high) in enumerate(_pairs(down, across)):
                numbers = _loaded(context, builder, weights, [high, low])  # the first is the upper half
                packed = _operation(builder, text, *numbers, result=_I32)
                _stored(context, builder, words, [word], [packed])
            return context.get_dummy_value()

        @intrinsic
        def pack(_typing: Any, words: Any, weights: Any, like: Any) -> Any:
            return types.void(words, weights, like), emit

        return pack

    def sharer(down: int, across: int) -> Any:
        """Return the function that stores a lane's `tops`, `totals` and sums in `room`, for `merger`."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            room, (_, first), sums, tops, totals = zip(signature.args, arguments, strict=True)
            counts = ((tops, 2 * down), (totals, 2 * down), (sums, down * across * 4))
            numbers = [
                number for array, count in counts for number in _loaded(context, builder, array, [*range(count)])
            ]
            for place, number in enumerate(numbers):
                index = builder.add(first, _whole(place * WARP))
                builder.store(number, element_pointer(context, builder, room, index))
            return context.get_dummy_value()

        @intrinsic
        def share(_typing: Any, room: Any, first: Any, sums: Any, tops: Any, totals: Any) -> Any:
            return types.void(room, types.int64, sums, tops, totals), emit

        return share

    def merger(down: int, across: int) -> Any:
        """Return the function that merges what `sharer` stored with a lane's own, and divides sums by their totals."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            room, (_, first), sums, tops, totals = zip(signature.args, arguments, strict=True)
            rows = 2 * down

            def theirs(place: int) -> Any:
                index = builder.add(first, _whole(place * WARP))
                return builder.load(element_pointer(context, builder, room, index))

            for row in range(rows):
                (top,), (total,) = (_loaded(context, builder, array, [row]) for array in (tops, totals))
                higher = _larger(builder, top, theirs(row))
                own, other = (_power(builder, builder.fsub(each, higher)) for each in (top, theirs(row)))
                total = _fma(builder, total, own, builder.fmul(theirs(rows + row), other))
                share = builder.fdiv(ir.Constant(_F32, 1), _of_quad(builder, total, _added))
                own, other = (builder.fmul(each, share) for each in (own, other))
                places = row_places(row, across)
                mixed = [
                    _fma(builder, number, own, builder.fmul(theirs(2 * rows + place), other))
                    for place, number in zip(places, _loaded(context, builder, sums, places), strict=True)
                ]
                _stored(context, builder, sums, places, mixed)
            return context.get_dummy_value()

        @intrinsic
        def merge(_typing: Any, room: Any, first: Any, sums: Any, tops: Any, totals: Any) -> Any:
            return types.void(room, types.int64, sums, tops, totals), emit

        return merge


def _pairs(down: int, across: int) -> list[tuple[int, int]]:
    """Return which two weights each register of the fragments of A holds: those of 16 keys after one another."""
    return [
        (place, place + 1)
        for pair in range(across // 2)
        for i in range(down)
        for tile in range(2)
        for place in ((i * across + 2 * pair + tile) * 4, (i * across + 2 * pair + tile) * 4 + 2)
    ]


__all__ = ["LOWEST", "exchanged", "hider", "merger", "packer", "sharer", "weigher"]
