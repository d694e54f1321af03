"""Numbers of a convolution's input on their way to a tile: loaded where there are any, zeros in the padding.

A pixel of the output has a padding mask of 16 bits: bit y is set where line y of the filter's window lies in the
padding, bit MAX_R + x where its column x does; two pixels share a word. A tap of the window has the bits of its line
and its column, in both halves: where the AND of the two is not 0, the number is not loaded. The numbers, of 16 bits,
wait in registers of 32: as halves of one they would have to be put together before they are there.
"""

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.llvm_values import I16, I32, I64, element_pointer, global_address, vector_of

MAX_R = 7  # lines of the largest window whose padding fits the masks
PIXELS = 4  # neighbours of an image that a thread loads together


def patch_loader(groups: int, parts: tuple[int, ...]) -> Any:
    """Return the function that loads a thread's groups of PIXELS pixels of some parts into registers.

    Its arguments: the registers, the array, where in it the first pixel of each group lies in the first part, how
    far apart the parts are, the bits of the tap, and the masks, a word for two pixels.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        staged, source, offsets, (_, part_stride), (_, tap_bits), masks = zip(signature.args, arguments, strict=True)
        loads = [_assembly(len(parts), half) for half in (0xFFFF, 0xFFFF0000)]  # halves of a word of the masks
        for group in range(groups):
            start = builder.load(element_pointer(context, builder, offsets, I64(group)))
            indices = [builder.add(start, builder.mul(part_stride, I32(part))) for part in parts]
            firsts = [global_address(context, builder, source, builder.sext(index, I64)) for index in indices]
            for j in range(group * PIXELS, (group + 1) * PIXELS):
                bits = builder.load(element_pointer(context, builder, masks, I64(j // 2)))
                addresses = [builder.add(first, I64(j % PIXELS * 2)) for first in firsts]
                found = builder.call(loads[j % 2], [*addresses, tap_bits, bits])
                for part in range(len(parts)):
                    into = element_pointer(context, builder, staged, I64(part * groups * PIXELS + j))
                    builder.store(builder.extract_value(found, part), into)
        return context.get_dummy_value()

    @intrinsic
    def load(_typing: Any, staged: Any, source: Any, offsets: Any, part_stride: Any, tap_bits: Any, masks: Any) -> Any:
        return types.void(staged, source, offsets, types.int32, types.int32, masks), emit

    return load


def _assembly(count: int, half: int) -> Any:
    """Return the PTX that loads so many numbers, with no branch; zeros where the tap is in the padding."""
    lines = [
        ".reg .pred %exists; .reg .b32 %missing;",
        f"and.b32 %missing, ${2 * count}, ${2 * count + 1};",
        f"and.b32 %missing, %missing, {half};",
        "setp.eq.s32 %exists, %missing, 0;",
        *(f"mov.b32 ${i}, 0;" for i in range(count)),
        *(f"@%exists ld.global.u16 ${i}, [${count + i}];" for i in range(count)),
    ]
    kind = ir.FunctionType(ir.LiteralStructType([I32] * count), [I64] * count + [I32] * 2)
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
                found = builder.sext(builder.load(element_pointer(context, builder, into, I64(group))), I64)
                offset = builder.add(builder.add(first, found), I64(part * part_elements))
                pointers = [element_pointer(context, builder, staged, I64(at + j)) for j in range(PIXELS)]
                vector = vector_of(builder, [builder.trunc(builder.load(pointer), I16) for pointer in pointers])
                pointer = element_pointer(context, builder, tile, offset)
                target = builder.bitcast(pointer, vector.type.as_pointer())
                builder.store(vector, target, align=PIXELS * 2)
                at += PIXELS
        return context.get_dummy_value()

    @intrinsic
    def fill(_typing: Any, tile: Any, staged: Any, into: Any, first: Any) -> Any:
        return types.void(tile, staged, into, types.int64), emit

    return fill
