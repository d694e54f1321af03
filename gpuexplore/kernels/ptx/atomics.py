"""Atomic updates, `atom` and `red`: lane by lane in the order of their numbers, one of the possible orders."""

from collections.abc import Callable

import numpy as np

from gpuexplore.errors import Unsupported
from gpuexplore.kernels.ptx.access import space_named
from gpuexplore.kernels.ptx.arithmetic import flushed
from gpuexplore.kernels.ptx.decoder import Decoder, Step
from gpuexplore.kernels.ptx.memories import Memories
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.registers import LANES
from gpuexplore.kernels.ptx.rounding import narrowed
from gpuexplore.kernels.ptx.scalars import Scalar, Values, scalar, widened
from gpuexplore.kernels.ptx.warp import Mask, Warp

_WHOLE, _BITS = {"u32", "s32", "u64", "s64"}, {"b32", "b64"}
_KINDS = {  # PTX ISA, "Parallel Synchronization and Communication Instructions: atom"
    "add": {"u32", "s32", "u64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64"},
    "min": _WHOLE,
    "max": _WHOLE,
    "and": _BITS,
    "or": _BITS,
    "xor": _BITS,
    "exch": _BITS,
    "cas": _BITS | {"b16"},
    "inc": {"u32"},
    "dec": {"u32"},
}
_UPDATES: dict[str, Callable[..., Values]] = {
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _, new: new,
    "cas": lambda old, expected, new: np.asarray(np.where(old == expected, new, old)),
    "inc": lambda old, last: np.where(old >= last, np.zeros_like(old), old + old.dtype.type(1)),
    "dec": lambda old, last: np.where((old == 0) | (old > last), last, old - old.dtype.type(1)),
}


def _add(kind: Scalar, *, flushes: bool) -> Callable[[Values, Values], Values]:
    """Return the sum, rounded once to nearest; of fp32 in device memory the hardware makes small numbers zeros."""
    if not kind.is_float or kind.name == "f64":
        return np.add
    if flushes:
        return lambda a, b: flushed(flushed(a) + flushed(b))
    return lambda a, b: narrowed(kind, widened(kind, a) + widened(kind, b))


def _atomic(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    name = next((modifier for modifier in instruction.modifiers if modifier in _KINDS), None)
    if (
        name is None
        or instruction.kind not in _KINDS[name]
        or (instruction.opcode == "red" and name in ("exch", "cas"))
    ):
        raise Unsupported(instruction.name)
    number = scalar(instruction.kind.removesuffix("x2"))
    whole = scalar("b32") if instruction.kind.endswith("x2") else number
    target = instruction.operands[0] if instruction.opcode == "atom" else None
    place, *given = instruction.operands[1:] if target is not None else instruction.operands
    address, gets = decoder.address(place), [decoder.read(operand, whole) for operand in given]
    put = decoder.write(target, whole) if target is not None else None
    space, at_place, size_bytes = space_named(instruction), decoder.place, whole.bits // 8

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(at_place, lanes, where, size_bytes)
        if not lanes.at.size:
            return
        update = _UPDATES.get(name) or _add(number, flushes=where == "global" and number.name == "f32")
        columns = [np.ascontiguousarray(warp.lanes_of(lanes.mask, get(warp))) for get in gets]

        def change(old: Values, lane: int) -> Values:
            arguments = [column[lane : lane + 1].view(number.dtype) for column in columns]
            return np.asarray(update(old.view(number.dtype), *arguments), number.dtype).view(f"u{size_bytes}")

        before = memories.update(at_place, lanes, (where, size_bytes), change).view(whole.dtype)
        if put is not None:
            values = np.zeros(LANES, whole.dtype)
            values[lanes.numbers] = before
            put(warp, lanes.mask, values)

    return step


ATOMICS: dict[str, Callable[[Decoder, Memories, Instruction], Step]] = {"atom": _atomic, "red": _atomic}
