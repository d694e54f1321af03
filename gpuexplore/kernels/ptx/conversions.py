"""Moves between registers, conversions between types, comparisons and choices by predicates."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.arithmetic import flushed, saturated
from gpuexplore.kernels.ptx.decoder import Decode, Decoder, Step, items, mode_of
from gpuexplore.kernels.ptx.memory import WINDOWS
from gpuexplore.kernels.ptx.numbers import LANES, Scalar, Values, narrowed, rounded_sum, scalar, widened
from gpuexplore.kernels.ptx.program import Instruction, Operand
from gpuexplore.kernels.ptx.warp import Mask, Warp

_TO_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _mov(decoder: Decoder, instruction: Instruction) -> Step:
    target, source = instruction.operands
    if isinstance(source, tuple):
        return _packed(decoder, instruction, source)
    if isinstance(target, tuple):
        return _unpacked(decoder, instruction, target)
    kind = scalar(instruction.kind)
    return decoder.mapped(instruction, kind, [kind], lambda values: values)


def _packed(decoder: Decoder, instruction: Instruction, parts: tuple[Operand, ...]) -> Step:
    """Decode a move of several registers into a wider one, the first into its low bits."""
    whole = scalar(instruction.kind)
    part = scalar(f"b{whole.bits // len(parts)}")
    gets = [decoder.read(item, part) for item in parts]
    put = decoder.write(instruction.operands[0], whole)

    def step(warp: Warp, mask: Mask) -> None:
        put(warp, mask, np.stack([get(warp) for get in gets], 1).view(whole.dtype)[:, 0])

    return step


def _unpacked(decoder: Decoder, instruction: Instruction, parts: tuple[Operand, ...]) -> Step:
    whole = scalar(instruction.kind)
    part = scalar(f"b{whole.bits // len(parts)}")
    get = decoder.read(instruction.operands[1], whole)
    puts = [decoder.write(item, part) for item in parts]

    def step(warp: Warp, mask: Mask) -> None:
        columns = np.ascontiguousarray(get(warp)).view(part.dtype).reshape(LANES, -1)
        for i, put in enumerate(puts):
            put(warp, mask, columns[:, i])

    return step


def _cvta(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a conversion between an address in one memory and a generic one: a window of the generic addresses."""
    kind = scalar(instruction.kind)
    window = WINDOWS[instruction.modifiers[-2]]
    difference = kind.dtype.type((-window if instruction.modifiers[0] == "to" else window) % 2**kind.bits)
    return decoder.mapped(instruction, kind, [kind], lambda addresses: addresses + difference)


def _cvt(decoder: Decoder, instruction: Instruction) -> Step:
    *modifiers, to, of = instruction.modifiers
    if to in ("f16x2", "bf16x2"):
        return _two(decoder, instruction)
    target = scalar(to)
    source = scalar(of)
    return decoder.mapped(instruction, target, [source], _conversion(target, source, modifiers, mode_of(instruction)))


def _two(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a conversion of two numbers into the halves of a register, the first into the upper half."""
    if ignored := {"sat", "relu", "ftz"} & {*instruction.modifiers}:
        raise Unsupported(f"the modifier .{min(ignored)} of a conversion of two numbers")
    half = scalar(instruction.modifiers[-2][:-2])
    source = scalar(instruction.kind)
    mode = mode_of(instruction)

    def packed(upper: Values, lower: Values) -> Values:
        halves = [narrowed(half, widened(source, values), mode) for values in (lower, upper)]
        return np.stack(halves, 1).view(np.uint32)[:, 0]

    return decoder.mapped(instruction, scalar("b32"), [source] * 2, packed)


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
        limits = np.iinfo(target.dtype)

        def convert(values: Values) -> Values:
            given = np.iinfo(values.dtype)
            return values.clip(max(limits.min, given.min), min(limits.max, given.max)).astype(target.dtype)

        return convert
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
        found = rounded_sum(target, (values - low).astype(np.float64), low.astype(np.float64), mode)
        return saturated(found) if saturates else found

    if saturates and target.name == "bf16":
        raise Unsupported("saturation of bf16")
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


_PREDICATE = scalar("pred")
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def _comparison(name: str, kind: Scalar, *, flush: bool) -> Callable[[Values, Values], Values]:
    """Return a comparison: with a NaN it is false, or true where the name ends in `u`."""
    if not kind.is_float:
        return _COMPARISONS[name]
    if name in ("num", "nan"):
        return lambda a, b: np.logical_xor(_unordered(kind, a, b), name == "num")
    compare = _COMPARISONS[name.removesuffix("u")]

    def compared(*pair: Values) -> Values:
        a, b = map(flushed, pair) if flush else pair
        found: Values = compare(widened(kind, a), widened(kind, b))
        unordered = _unordered(kind, a, b)
        return found | unordered if name.endswith("u") else found & ~unordered

    return compared


def _unordered(kind: Scalar, a: Values, b: Values) -> Values:
    return np.isnan(widened(kind, a)) | np.isnan(widened(kind, b))


def _setp(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `setp`: one predicate or a pair, combined with a third where the instruction says how."""
    kind = scalar(instruction.kind)
    name, *rest = instruction.modifiers
    compare = _comparison(name, kind, flush="ftz" in rest)
    targets, left, right, *others = instruction.operands
    puts = [decoder.write(target, _PREDICATE) for target in items(targets)]
    a = decoder.read(left, kind)
    b = decoder.read(right, kind)
    combine = {"or": np.logical_or, "xor": np.logical_xor}.get(rest[0], np.logical_and)
    third = decoder.read(others[0] if others else 1, _PREDICATE)

    def step(warp: Warp, mask: Mask) -> None:
        found = compare(a(warp), b(warp))
        for put, values in zip(puts, (found, ~found), strict=False):
            put(warp, mask, combine(values, third(warp)) if others else values)

    return step


def _set(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `set`: all bits, or 1.0, where the comparison holds."""
    *_, to, of = instruction.modifiers
    if len(instruction.operands) > 3 or to not in ("u32", "s32", "f32"):
        raise Unsupported(f"this form of {instruction.name}")
    kind = scalar(of)
    result = scalar(to)
    compare = _comparison(instruction.modifiers[0], kind, flush="ftz" in instruction.modifiers)
    true = result.dtype.type(1) if result.is_float else np.array(-1).astype(result.dtype)
    return decoder.mapped(
        instruction, result, [kind] * 2, lambda a, b: np.where(compare(a, b), true, result.dtype.type(0))
    )


def _selp(decoder: Decoder, instruction: Instruction) -> Step:
    kind = scalar(instruction.kind)
    return decoder.mapped(instruction, kind, (kind, kind, _PREDICATE), _chosen)


def _chosen(yes: Values, no: Values, condition: Values) -> Values:
    return np.where(condition, yes, no)


def _slct(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `slct`: the first source where the third is not negative."""
    kind = scalar(instruction.modifiers[-2])
    kinds = (kind, kind, scalar(instruction.kind))
    return decoder.mapped(instruction, kind, kinds, lambda yes, no, sign: _chosen(yes, no, sign >= 0))


CONVERSIONS: dict[str, Decode] = {
    "mov": _mov,
    "cvta": _cvta,
    "cvt": _cvt,
    "setp": _setp,
    "set": _set,
    "selp": _selp,
    "slct": _slct,
}
