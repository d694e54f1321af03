"""Numbers of a convolution's input on their way to a tile: loaded where there are any, zeros where there are not.

Which lines and places of a neighbourhood a pixel of the output has is told by bits of half a 32-bit word: bit y where
line y lies outside of the image, bit REACH + x where place x does; a neighbour has the other half. A term asks for one
of each, so one AND answers. The numbers, of 16 bits, wait in registers of 32: as halves of one they would have to be
put together before they are there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import config

NUMBER_BYTES = 2
REACH = 7  # lines and places of the largest neighbourhood that the bits tell of


_HALVES = 0xFFFF, 0xFFFF0000  # of a word


@dataclass(frozen=True)
class Share:
    """What a thread loads of a tile of patches: pixels in groups of neighbours, of a term of each part of the channels.

    Attributes:
        groups: of neighbours.
        pixels: of a group.
        part: elements of the tile from one part of the channels to the next.
    """

    groups: int
    pixels: int
    part: int


if config.ENABLE_CUDASIM:
    from gpuexplore.kernels.intrinsics.vectors import read, write

    def patch_loader(share: Share, parts: tuple[int, ...]) -> Any:
        """Return the function that loads a thread's share of some parts into registers.

        Its arguments: the registers, the array, where in it the first pixel of each group lies in the first part, how
        far apart the parts are, the bits that the term asks for, in both halves, and those of each two pixels.
        """

        def load(staged: Any, source: Any, places: Any, apart: Any, asked: Any, outside: Any) -> None:
            for at, (part, group, j) in enumerate(_spots(share, parts)):
                pixel = group * share.pixels + j
                exists = not int(asked) & int(outside[pixel // 2]) & _HALVES[pixel % 2]
                place = int(places[group]) + part * int(apart) + j
                staged[at] = read(source, place).view(np.uint16) if exists else 0

        return load

    def patch_filler(share: Share, parts: tuple[int, ...]) -> Any:
        """Return the function that stores what a thread loaded of some parts in the pair of tiles from `first` on.

        `into`: where in a pair the first pixel of each group lies, in the first part.
        """

        def fill(tile: Any, staged: Any, into: Any, first: Any) -> None:
            for at, (part, group, j) in enumerate(_spots(share, parts)):
                place = first + int(into[group]) + part * share.part + j
                write(tile, place, np.uint16(staged[at]).view(tile.dtype))

        return fill

    def _spots(share: Share, parts: tuple[int, ...]) -> list[tuple[int, int, int]]:
        return [(part, group, j) for part in parts for group in range(share.groups) for j in range(share.pixels)]

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    from gpuexplore.kernels.intrinsics.addresses import element_pointer, global_address, int64

    _I32, _I64 = ir.IntType(32), ir.IntType(64)

    def patch_loader(share: Share, parts: tuple[int, ...]) -> Any:
        """Return the function that loads a thread's share of some parts into registers.

        Its arguments: the registers, the array, where in it the first pixel of each group lies in the first part, how
        far apart the parts are, the bits that the term asks for, in both halves, and those of each two pixels.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            staged, source, places, (_, apart), (_, asked), outside = zip(signature.args, arguments, strict=True)
            count, loads = share.groups * share.pixels, [_assembly(len(parts), half) for half in _HALVES]
            for group in range(share.groups):
                start = builder.load(element_pointer(context, builder, places, int64(group)))
                spots = [builder.add(start, builder.mul(apart, ir.Constant(_I32, part))) for part in parts]
                addresses = [global_address(context, builder, source, builder.sext(spot, _I64)) for spot in spots]
                for j in range(group * share.pixels, (group + 1) * share.pixels):
                    bits = builder.load(element_pointer(context, builder, outside, int64(j // 2)))
                    further = int64(j % share.pixels * NUMBER_BYTES)
                    spots = [builder.add(address, further) for address in addresses]
                    found = builder.call(loads[j % 2], [*spots, asked, bits])
                    for part in range(len(parts)):
                        into = element_pointer(context, builder, staged, int64(part * count + j))
                        builder.store(builder.extract_value(found, part), into)
            return context.get_dummy_value()

        @intrinsic
        def load(_typing: Any, staged: Any, source: Any, places: Any, apart: Any, asked: Any, outside: Any) -> Any:
            return types.void(staged, source, places, types.int32, types.int32, outside), emit

        return load

    def _assembly(count: int, half: int) -> Any:
        """Return the PTX that loads so many numbers, with no branch; zeros if a bit of a half is asked for and set."""
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

    def patch_filler(share: Share, parts: tuple[int, ...]) -> Any:
        """Return the function that stores what a thread loaded of some parts in the pair of tiles from `first` on.

        `into`: where in a pair the first pixel of each group lies, in the first part.
        """

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            tile, staged, into, (_, first) = zip(signature.args, arguments, strict=True)
            at = 0
            for part in parts:
                for group in range(share.groups):
                    found = builder.sext(builder.load(element_pointer(context, builder, into, int64(group))), _I64)
                    place = builder.add(builder.add(first, found), int64(part * share.part))
                    spots = [element_pointer(context, builder, staged, int64(at + j)) for j in range(share.pixels)]
                    vector = _joined(builder, [builder.load(spot) for spot in spots])
                    pointer = element_pointer(context, builder, tile, place)
                    target = builder.bitcast(pointer, vector.type.as_pointer())
                    builder.store(vector, target, align=share.pixels * NUMBER_BYTES)
                    at += share.pixels
            return context.get_dummy_value()

        @intrinsic
        def fill(_typing: Any, tile: Any, staged: Any, into: Any, first: Any) -> Any:
            return types.void(tile, staged, into, types.int64), emit

        return fill

    def _joined(builder: Any, numbers: list[Any]) -> Any:
        """Return the vector of numbers that each wait in a register of 32 bits."""
        element = ir.IntType(8 * NUMBER_BYTES)
        value = ir.Constant(ir.VectorType(element, len(numbers)), ir.Undefined)
        for i, number in enumerate(numbers):
            value = builder.insert_element(value, builder.trunc(number, element), ir.Constant(_I32, i))
        return value


__all__ = ["REACH", "Share", "patch_filler", "patch_loader"]
