"""Numbers of a convolution's input on their way to a tile: loaded where there are any, zeros in the padding.

A pixel of the output has a padding mask of 16 bits: bit y is set where line y of the filter's window lies in the
padding, bit MAX_R + x where its column x does; two pixels share a word. A tap of the window has the bits of its line
and its column, in both halves: where the AND of the two is not 0, the number is not loaded. The numbers, of 16 bits,
wait in registers of 32: as halves of one they would have to be put together before they are there.
"""

from typing import Any

import numpy as np
from numba import config

NUMBER_BYTES = 2
MAX_R = 7  # lines of the largest window whose padding fits the masks
PIXELS = 4  # neighbours of an image that a thread loads together
_HALVES = 0xFFFF, 0xFFFF0000  # of a word


if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.intrinsics.vectors import read, write

    def patch_loader(groups: int, parts: tuple[int, ...]) -> Any:
        """Return the function that loads a thread's groups of PIXELS pixels of some parts into registers.

        Its arguments: the registers, the array, where in it the first pixel of each group lies in the first part, how
        far apart the parts are, the bits of the tap, and the masks, a word for two pixels.
        """

        def load(staged: Any, source: Any, offsets: Any, part_stride: Any, tap_bits: Any, masks: Any) -> None:
            for i, (part, group, j) in enumerate(_numbers_of(groups, parts)):
                pixel = group * PIXELS + j
                exists = not int(tap_bits) & int(masks[pixel // 2]) & _HALVES[pixel % 2]
                offset = int(offsets[group]) + part * int(part_stride) + j
                staged[i] = read(source, offset).view(np.uint16) if exists else 0

        return load

    def patch_filler(groups: int, parts: tuple[int, ...], part_elements: int) -> Any:
        """Return the function that stores what a thread loaded of some parts in the pair of tiles from `first` on.

        `into`: where in a pair the first pixel of each group lies, in the first part; the parts are `part_elements`
        apart there.
        """

        def fill(tile: Any, staged: Any, into: Any, first: Any) -> None:
            for i, (part, group, j) in enumerate(_numbers_of(groups, parts)):
                offset = first + int(into[group]) + part * part_elements + j
                write(tile, offset, np.uint16(staged[i]).view(tile.dtype))

        return fill

    def _numbers_of(groups: int, parts: tuple[int, ...]) -> list[tuple[int, int, int]]:
        return [(part, group, j) for part in parts for group in range(groups) for j in range(PIXELS)]

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.intrinsics.addresses import element_pointer, global_address, int64, vector_of

    _NUMBER, _I32, _I64 = ir.IntType(8 * NUMBER_BYTES), ir.IntType(32), ir.IntType(64)

    def patch_loader(groups: int, parts: tuple[int, ...]) -> Any:
        """Return the function that loads a thread's groups of PIXELS pixels of some parts into registers.

        Its arguments: the registers, the array, where in it the first pixel of each group lies in the first part, how
        far apart the parts are, the bits of the tap, and the masks, a word for two pixels.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            staged, source, offsets, (_, part_stride), (_, tap_bits), masks = zip(
                signature.args, arguments, strict=True
            )
            count, loads = groups * PIXELS, [_assembly(len(parts), half) for half in _HALVES]
            for group in range(groups):
                start = builder.load(element_pointer(context, builder, offsets, int64(group)))
                indices = [builder.add(start, builder.mul(part_stride, ir.Constant(_I32, part))) for part in parts]
                firsts = [global_address(context, builder, source, builder.sext(index, _I64)) for index in indices]
                for j in range(group * PIXELS, (group + 1) * PIXELS):
                    bits = builder.load(element_pointer(context, builder, masks, int64(j // 2)))
                    further = int64(j % PIXELS * NUMBER_BYTES)
                    addresses = [builder.add(first, further) for first in firsts]
                    found = builder.call(loads[j % 2], [*addresses, tap_bits, bits])
                    for part in range(len(parts)):
                        into = element_pointer(context, builder, staged, int64(part * count + j))
                        builder.store(builder.extract_value(found, part), into)
            return context.get_dummy_value()

        @intrinsic
        def load(
            _typing: Any, staged: Any, source: Any, offsets: Any, part_stride: Any, tap_bits: Any, masks: Any
        ) -> Any:
            return types.void(staged, source, offsets, types.int32, types.int32, masks), emit

        return load

    def _assembly(count: int, half: int) -> Any:
        """Return the PTX that loads so many numbers, with no branch; zeros where the tap is in the padding."""
        results, addresses = [f"${i}" for i in range(count)], [f"${count + i}" for i in range(count)]
        lines = [
            ".reg .pred %exists; .reg .b32 %missing;",
            f"and.b32 %missing, ${2 * count}, ${2 * count + 1};",
            f"and.b32 %missing, %missing, {half};",
            "setp.eq.s32 %exists, %missing, 0;",
            *(f"mov.b32 {result}, 0;" for result in results),
            *(
                f"@%exists ld.global.u16 {result}, [{address}];"
                for result, address in zip(results, addresses, strict=True)
            ),
        ]
        kind = ir.FunctionType(ir.LiteralStructType([_I32] * count), [_I64] * count + [_I32] * 2)
        constraints = ",".join(["=&r"] * count + ["l"] * count + ["r", "r", "~{memory}"])
        return ir.InlineAsm(kind, f"{{ {' '.join(lines)} }}", constraints, side_effect=True)

    def patch_filler(groups: int, parts: tuple[int, ...], part_elements: int) -> Any:
        """Return the function that stores what a thread loaded of some parts in the pair of tiles from `first` on.

        `into`: where in a pair the first pixel of each group lies, in the first part; the parts are `part_elements`
        apart there.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            tile, staged, into, (_, first) = zip(signature.args, arguments, strict=True)
            at = 0
            for part in parts:
                for group in range(groups):
                    found = builder.sext(builder.load(element_pointer(context, builder, into, int64(group))), _I64)
                    offset = builder.add(builder.add(first, found), int64(part * part_elements))
                    pointers = [element_pointer(context, builder, staged, int64(at + j)) for j in range(PIXELS)]
                    vector = vector_of(builder, [builder.trunc(builder.load(pointer), _NUMBER) for pointer in pointers])
                    pointer = element_pointer(context, builder, tile, offset)
                    target = builder.bitcast(pointer, vector.type.as_pointer())
                    builder.store(vector, target, align=PIXELS * NUMBER_BYTES)
                    at += PIXELS
            return context.get_dummy_value()

        @intrinsic
        def fill(_typing: Any, tile: Any, staged: Any, into: Any, first: Any) -> Any:
            return types.void(tile, staged, into, types.int64), emit

        return fill


__all__ = ["MAX_R", "PIXELS", "patch_filler", "patch_loader"]
