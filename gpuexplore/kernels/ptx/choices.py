"""Comparisons and choices by predicates."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuexplore.errors import Unsupported
from gpuexplore.kernels.ptx.arithmetic import flushed
from gpuexplore.kernels.ptx.decoder import Decoder, Step, items
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.scalars import Scalar, Values, scalar, widened
from gpuexplore.kernels.ptx.warp import Mask, Warp

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
_COMBINATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def _comparison(name: str, kind: Scalar, *, flush: bool) -> Callable[[Values, Values], Values]:
    """Return a comparison: with a NaN it is false, or true where the name ends in `u`."""
    if not kind.is_float:
        return _COMPARISONS[name]
    if name in ("num", "nan"):
        return lambda a, b: np.logical_xor(_unordered(kind, a, b), name == "num")
    compare, unordered_is = _COMPARISONS[name.removesuffix("u")], name.endswith("u")

    def compared(a: Values, b: Values) -> Values:
        a, b = (flushed(a), flushed(b)) if flush else (a, b)
        found: Values = compare(widened(kind, a), widened(kind, b))
        unordered = _unordered(kind, a, b)
        return found | unordered if unordered_is else found & ~unordered

    return compared


def _unordered(kind: Scalar, a: Values, b: Values) -> Values:
    return np.isnan(widened(kind, a)) | np.isnan(widened(kind, b))


def _setp(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `setp`: one predicate or a pair, combined with a third where the instruction says how."""
    kind, (name, *rest) = scalar(instruction.kind), instruction.modifiers
    compare = _comparison(name, kind, flush="ftz" in rest)
    puts = [decoder.write(target, _PREDICATE) for target in items(instruction.operands[0])]
    a, b = decoder.read(instruction.operands[1], kind), decoder.read(instruction.operands[2], kind)
    combine = _COMBINATIONS.get(rest[0], operator.and_)
    third = decoder.read(instruction.operands[3], _PREDICATE) if len(instruction.operands) > 3 else None

    def step(warp: Warp, mask: Mask) -> None:
        found = compare(a(warp), b(warp))
        pair = (found, ~found)
        if third is not None:
            pair = combine(found, third(warp)), combine(~found, third(warp))
        for put, values in zip(puts, pair, strict=False):
            put(warp, mask, values)

    return step


def _set(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `set`: all bits, or 1.0, where the comparison holds."""
    *_, to, of = instruction.modifiers
    if len(instruction.operands) > 3 or to not in ("u32", "s32", "f32"):
        raise Unsupported(f"this form of {instruction.name}")
    kind, result = scalar(of), scalar(to)
    compare = _comparison(instruction.modifiers[0], kind, flush="ftz" in instruction.modifiers)
    a, b = decoder.read(instruction.operands[1], kind), decoder.read(instruction.operands[2], kind)
    put = decoder.write(instruction.operands[0], result)
    true = result.dtype.type(1) if result.is_float else np.array(-1).astype(result.dtype)
    return lambda warp, mask: put(warp, mask, np.where(compare(a(warp), b(warp)), true, result.dtype.type(0)))


def _selp(decoder: Decoder, instruction: Instruction) -> Step:
    kind = scalar(instruction.kind)
    target, yes, no, chooser = instruction.operands
    a, b, put = decoder.read(yes, kind), decoder.read(no, kind), decoder.write(target, kind)
    choose = decoder.read(chooser, _PREDICATE)
    return lambda warp, mask: put(warp, mask, np.where(choose(warp), a(warp), b(warp)))


def _slct(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `slct`: the first source where the third is not negative."""
    kind, chooser_kind = scalar(instruction.modifiers[-2]), scalar(instruction.kind)
    target, yes, no, chooser = instruction.operands
    a, b, put = decoder.read(yes, kind), decoder.read(no, kind), decoder.write(target, kind)
    choose = decoder.read(chooser, chooser_kind)
    return lambda warp, mask: put(warp, mask, np.where(choose(warp) >= 0, a(warp), b(warp)))


CHOICES: dict[str, Callable[[Decoder, Instruction], Step]] = {
    "setp": _setp,
    "set": _set,
    "selp": _selp,
    "slct": _slct,
}
