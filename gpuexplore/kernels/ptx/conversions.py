"""Moves between registers, and conversions between types."""

from collections.abc import Callable

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.arithmetic import flushed, saturated
from gpuexplore.kernels.ptx.decoder import Decoder, Step, mode_of
from gpuexplore.kernels.ptx.device_memory import WINDOWS
from gpuexplore.kernels.ptx.program import Instruction, Operand
from gpuexplore.kernels.ptx.registers import LANES, Scalar, Values, scalar, widened
from gpuexplore.kernels.ptx.rounding import double_add, narrowed, odd_sum
from gpuexplore.kernels.ptx.warp import Mask, Warp

_TO_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _mov(decoder: Decoder, instruction: Instruction) -> Step:
    target, source = instruction.operands
    if isinstance(source, tuple):
        return _packed(decoder, instruction, source)
    if isinstance(target, tuple):
        return _unpacked(decoder, instruction, target)
    kind = scalar(instruction.kind)
    get, put = decoder.read(source, kind), decoder.write(target, kind)
    return lambda warp, mask: put(warp, mask, get(warp))


def _packed(decoder: Decoder, instruction: Instruction, parts: tuple[Operand, ...]) -> Step:
    """Decode a move of several registers into a wider one, the first into its low bits."""
    whole = scalar(instruction.kind)
    part = scalar(f"b{whole.bits // len(parts)}")
    gets, put = [decoder.read(item, part) for item in parts], decoder.write(instruction.operands[0], whole)

    def step(warp: Warp, mask: Mask) -> None:
        put(warp, mask, np.stack([get(warp) for get in gets], 1).view(whole.dtype)[:, 0])

    return step


def _unpacked(decoder: Decoder, instruction: Instruction, parts: tuple[Operand, ...]) -> Step:
    whole = scalar(instruction.kind)
    part = scalar(f"b{whole.bits // len(parts)}")
    get, puts = decoder.read(instruction.operands[1], whole), [decoder.write(item, part) for item in parts]

    def step(warp: Warp, mask: Mask) -> None:
        columns = np.ascontiguousarray(get(warp)).view(part.dtype).reshape(LANES, -1)
        for i, put in enumerate(puts):
            put(warp, mask, columns[:, i])

    return step


def _cvta(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a conversion between an address in one memory and a generic one: a window of the generic addresses."""
    to, space = instruction.modifiers[0] == "to", instruction.modifiers[-2]
    kind, window = scalar(instruction.kind), WINDOWS[space]
    get, put = decoder.read(instruction.operands[1], kind), decoder.write(instruction.operands[0], kind)
    difference = kind.dtype.type((-window if to else window) % 2**kind.bits)
    return lambda warp, mask: put(warp, mask, get(warp) + difference)


def _cvt(decoder: Decoder, instruction: Instruction) -> Step:
    *modifiers, to, of = instruction.modifiers
    if to in ("f16x2", "bf16x2"):
        return _two(decoder, instruction)
    target, source = scalar(to), scalar(of)
    convert = _conversion(target, source, modifiers, mode_of(instruction))
    get, put = decoder.read(instruction.operands[1], source), decoder.write(instruction.operands[0], target)
    return lambda warp, mask: put(warp, mask, convert(get(warp)))


def _two(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a conversion of two numbers into the halves of a register, the first into the upper half."""
    if ignored := {"sat", "relu", "ftz"} & {*instruction.modifiers}:
        raise Unsupported(f"the modifier .{min(ignored)} of a conversion of two numbers")
    half, source, mode = scalar(instruction.modifiers[-2][:-2]), scalar(instruction.kind), mode_of(instruction)
    target, *operands = instruction.operands
    upper, lower = (decoder.read(operand, source) for operand in operands)
    put = decoder.write(target, scalar("b32"))

    def step(warp: Warp, mask: Mask) -> None:
        halves = [narrowed(half, widened(source, get(warp)), mode) for get in (lower, upper)]
        put(warp, mask, np.stack(halves, 1).view(np.uint32)[:, 0])

    return step


def _conversion(target: Scalar, source: Scalar, modifiers: list[str], mode: str) -> Callable[[Values], Values]:
    if target.name == "tf32":
        return _to_tf32(modifiers)
    if source.is_float and target.is_float:
        return _between_floats(target, source, modifiers, mode)
    if source.is_float:
        return _to_whole(target, source, modifiers)
    if target.is_float:
        return _from_whole(target, mode, saturates="sat" in modifiers)
    if "sat" in modifiers:
        return _clamped(target)
    return lambda values: values.astype(target.dtype)


def _between_floats(target: Scalar, source: Scalar, modifiers: list[str], mode: str) -> Callable[[Values], Values]:
    whole = next((_TO_WHOLE[modifier] for modifier in modifiers if modifier in _TO_WHOLE), None)

    def convert(values: Values) -> Values:
        if "ftz" in modifiers and source.name == "f32":
            values = flushed(values)
        exact = widened(source, values)
        found = narrowed(target, exact if whole is None else whole(exact), mode)
        found = flushed(found) if "ftz" in modifiers and target.name == "f32" else found
        found = saturated(found) if "sat" in modifiers else found
        return np.maximum(found, 0) if "relu" in modifiers else found

    if target.name == "bf16" and {"sat", "relu"} & set(modifiers):
        raise Unsupported("saturation of bf16")
    return convert


def _to_whole(target: Scalar, source: Scalar, modifiers: list[str]) -> Callable[[Values], Values]:
    """Return the conversion to a whole number: what is out of its range becomes the nearest, a NaN 0."""
    rounding = next((_TO_WHOLE[modifier] for modifier in modifiers if modifier in _TO_WHOLE), np.trunc)
    limits = np.iinfo(target.dtype)

    def convert(values: Values) -> Values:
        found = rounding(widened(source, flushed(values) if "ftz" in modifiers else values))
        inside = (found >= float(limits.min)) & (found < float(limits.max) + (target.bits < 64))
        beyond = np.where(found > 0, limits.max, np.where(np.isnan(found), 0, limits.min)).astype(target.dtype)
        return np.where(inside, np.where(inside, found, 0).astype(target.dtype), beyond)

    return convert


def _from_whole(target: Scalar, mode: str, *, saturates: bool) -> Callable[[Values], Values]:
    """Return the conversion of whole numbers, in two halves that float64 holds exactly, rounded once."""

    def convert(values: Values) -> Values:
        low = values & values.dtype.type(min(0xFFFF, np.iinfo(values.dtype).max))
        halves = (values - low).astype(np.float64), low.astype(np.float64)
        found = double_add(*halves, mode) if target.name == "f64" else narrowed(target, odd_sum(*halves), mode)
        return saturated(found) if saturates else found

    if saturates and target.name == "bf16":
        raise Unsupported("saturation of bf16")
    return convert


def _clamped(target: Scalar) -> Callable[[Values], Values]:
    limits = np.iinfo(target.dtype)

    def convert(values: Values) -> Values:
        given = np.iinfo(values.dtype)
        return values.clip(max(limits.min, given.min), min(limits.max, given.max)).astype(target.dtype)

    return convert


def _to_tf32(modifiers: list[str]) -> Callable[[Values], Values]:
    """Return the rounding of fp32 to the 19 bits of TF32; `rna`: to nearest, ties away from zero."""
    if ignored := {"sat", "relu", "ftz"} & {*modifiers}:
        raise Unsupported(f"the modifier .{min(ignored)} of a conversion to tf32")

    def convert(values: Values) -> Values:
        bits: Values = values.view(np.uint32)
        odd = bits >> np.uint32(13) & np.uint32(1)
        half = {"rna": np.uint32(0x1000), "rn": np.uint32(0xFFF) + odd, "rz": np.uint32(0)}
        up = next(half[modifier] for modifier in modifiers if modifier in half)
        return np.where(np.isfinite(values), bits + up, bits) & np.uint32(0xFFFFE000)

    return convert


CONVERSIONS: dict[str, Callable[[Decoder, Instruction], Step]] = {"mov": _mov, "cvta": _cvta, "cvt": _cvt}
