"""Instructions as functions of a warp and its lanes, each decoded once before a kernel runs."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.access import ACCESS, access_bytes, space_named
from gpuexplore.kernels.ptx.arithmetic import ARITHMETIC, flushed
from gpuexplore.kernels.ptx.bits import BITS
from gpuexplore.kernels.ptx.conversions import CONVERSIONS
from gpuexplore.kernels.ptx.decoder import Decoder, Getter, Step, expect_known_modifiers, items
from gpuexplore.kernels.ptx.lanes import TOGETHER
from gpuexplore.kernels.ptx.memories import Memories
from gpuexplore.kernels.ptx.program import Instruction, Program
from gpuexplore.kernels.ptx.registers import LANES, Scalar, Values, scalar, widened
from gpuexplore.kernels.ptx.rounding import narrowed
from gpuexplore.kernels.ptx.tensor_cores import TENSOR_CORES
from gpuexplore.kernels.ptx.warp import Mask, Warp, masked
from gpuexplore.kernels.ptx.warpgroups import WARPGROUPS, product_registers, watching_registers

# Comparisons and choices by predicates.


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


# Atomic updates, `atom` and `red`: lane by lane in the order of their numbers, one of the possible orders.


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
    location, *given = instruction.operands[1:] if target is not None else instruction.operands
    address, gets = decoder.address(location), [decoder.read(operand, whole) for operand in given]
    put = decoder.write(target, whole) if target is not None else None
    space, pc, size_bytes = space_named(instruction), decoder.pc, whole.bits // 8

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(pc, lanes, where, size_bytes)
        if not lanes.at.size:
            return
        update = _UPDATES.get(name) or _add(number, flushes=where == "global" and number.name == "f32")
        columns = [np.ascontiguousarray(warp.lanes_of(lanes.mask, get(warp))) for get in gets]

        def change(old: Values, lane: int) -> Values:
            arguments = [column[lane : lane + 1].view(number.dtype) for column in columns]
            return np.asarray(update(old.view(number.dtype), *arguments), number.dtype).view(f"u{size_bytes}")

        before = memories.update(pc, lanes, (where, size_bytes), change).view(whole.dtype)
        if put is not None:
            values = np.zeros(LANES, whole.dtype)
            values[lanes.numbers] = before
            put(warp, lanes.mask, values)

    return step


ATOMICS: dict[str, Callable[[Decoder, Memories, Instruction], Step]] = {"atom": _atomic, "red": _atomic}

_ALONE: Mapping[str, Callable[[Decoder, Instruction], Step]] = ARITHMETIC | BITS | CHOICES | CONVERSIONS | TOGETHER
_WITH_MEMORY: Mapping[str, Callable[[Decoder, Memories, Instruction], Step]] = (
    ACCESS | ATOMICS | TENSOR_CORES | WARPGROUPS
)
OPCODES = (*_ALONE, *_WITH_MEMORY)


@dataclass(frozen=True, slots=True)
class Event:
    """An instruction that a warp has executed.

    Attributes:
        instruction: as it stands in the program.
        block: index of the block along x, y and z.
        warp: index of the warp within the block.
        lanes: those of the 32 that acted.
        addresses: of each lane, in bytes, where the instruction accesses memory; shared ones count from its start.
        sources: of each lane, where an asynchronous copy reads device memory, and how many bytes: zeros fill the rest.
    """

    instruction: Instruction
    block: tuple[int, int, int]
    warp: int
    lanes: npt.NDArray[np.bool_]
    addresses: Values | None
    sources: tuple[Values, Values] | None


Observer = Callable[[Event], None]


def smallest_access(program: Program) -> int:
    """Return the bytes of the smallest access to shared memory in a kernel; 4 where there is none."""
    found = (access_bytes(instruction) for instruction in program.code)
    return min((size for size in found if size), default=4)


def decoded(decoder: Decoder, memories: Memories, observer: Observer | None = None) -> list[Step]:
    """Return a step for each instruction.

    Raises:
        Unsupported: an instruction is not known here; the text names it and its line.
    """
    steps, fragments = [], product_registers(decoder.program)
    for pc, instruction in enumerate(decoder.program.code):
        decoder.pc = pc
        step = _decoded(decoder, memories, instruction, observer)
        used = fragments & instruction.register_names if instruction.opcode != "wgmma" else frozenset[str]()
        steps.append(watching_registers(step, used, memories.ledger, pc) if used else step)
    return steps


def _decoded(decoder: Decoder, memories: Memories, instruction: Instruction, observer: Observer | None) -> Step:
    try:
        step = _step(decoder, memories, instruction)
        if observer is not None:
            step = _observed(step, instruction, observer)
        return _guarded(step, decoder.read(instruction.guard, scalar("pred"))) if instruction.guard else step
    except (Unsupported, KeyError, ValueError) as error:
        raise Unsupported(
            f"line {instruction.line} of the PTX cannot be run here: {instruction.text[:80]} ({error})"
        ) from error


def _step(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    expect_known_modifiers(instruction)
    if instruction.opcode in _ALONE:
        return _ALONE[instruction.opcode](decoder, instruction)
    if instruction.opcode in _WITH_MEMORY:
        return _WITH_MEMORY[instruction.opcode](decoder, memories, instruction)
    raise Unsupported(f"the instruction {instruction.opcode} is not known")


def _guarded(step: Step, predicate: Getter) -> Step:
    def under(warp: Warp, mask: Mask) -> None:
        taken = masked(mask, predicate(warp))
        if taken is None or taken.any():
            step(warp, taken)

    return under


def _observed(step: Step, instruction: Instruction, observer: Observer) -> Step:
    def watched(warp: Warp, mask: Mask) -> None:
        warp.touched, warp.fetched = None, None
        lanes = (warp.active() if mask is None else mask).copy()
        step(warp, mask)
        observer(Event(instruction, warp.block.at, warp.index, lanes, warp.touched, warp.fetched))

    return watched
