"""Arithmetic instructions on whole and floating-point numbers."""

from collections.abc import Callable

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decoder, Step, mode_of
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.registers import Scalar, Values, scalar, widened
from gpuexplore.kernels.ptx.rounding import double_add, double_fma, double_multiply, narrowed, odd_sum, single_fma
from gpuexplore.kernels.ptx.warp import Mask, Warp

_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
Function = Callable[..., Values]


def elementwise(decoder: Decoder, instruction: Instruction, function: Function, kind: Scalar | None = None) -> Step:
    """Return the step that puts a function of all sources, of one type, into the destination."""
    if instruction.kind in _PAIRS:
        return _paired(decoder, instruction, function)
    of = kind or scalar(instruction.kind)
    target, *sources = instruction.operands
    slots = [decoder.slot(operand, of) for operand in (target, *sources)]
    if len(slots) == 3 and None not in slots and isinstance(function, np.ufunc):
        return _direct(function, *(slot for slot in slots if slot is not None))
    put, getters = decoder.write(target, of), [decoder.read(source, of) for source in sources]

    def step(warp: Warp, mask: Mask) -> None:
        put(warp, mask, function(*[get(warp) for get in getters]))

    return step


def number_kind(instruction: Instruction) -> Scalar:
    """Return the type of the numbers an instruction computes with: `f16` of `f16x2`."""
    return scalar(_PAIRS.get(instruction.kind, instruction.kind))


def _paired(decoder: Decoder, instruction: Instruction, function: Function) -> Step:
    """Return the step of a function of the two numbers in the halves of registers."""
    number, word = number_kind(instruction), scalar("u32")
    target, *sources = instruction.operands
    put, getters = decoder.write(target, word), [decoder.read(source, word) for source in sources]

    def step(warp: Warp, mask: Mask) -> None:
        halves = [np.ascontiguousarray(get(warp)).view(number.dtype) for get in getters]
        put(warp, mask, np.ascontiguousarray(function(*halves)).view(np.uint32))

    return step


def _direct(function: np.ufunc, target: int, left: int, right: int) -> Step:
    """Return the step of two registers without a copy in between."""

    def step(warp: Warp, mask: Mask) -> None:
        slots = warp.slots
        if mask is None:
            function(slots[left], slots[right], out=slots[target])
        else:
            np.copyto(slots[target], function(slots[left], slots[right]), where=mask)

    return step


def floating(decoder: Decoder, instruction: Instruction, function: Function) -> Step:
    """Return the step of a function of floating-point numbers with what `.ftz` and `.sat` add to it."""
    kind = number_kind(instruction)
    if "ftz" in instruction.modifiers and kind.name == "bf16":
        raise Unsupported("zeros for subnormal numbers of bf16")
    if "ftz" in instruction.modifiers:
        function = _flushing(function)
    if "sat" in instruction.modifiers:
        function = _saturating(function, kind)
    return elementwise(decoder, instruction, function)


def _flushing(function: Function) -> Function:
    return lambda *values: flushed(function(*map(flushed, values)))


def flushed(values: Values) -> Values:
    """Return numbers below the normal ones as zeros of their sign."""
    tiny = np.abs(values) < np.finfo(values.dtype).smallest_normal
    return np.where(tiny, np.copysign(values.dtype.type(0), values), values)


def _saturating(function: Function, kind: Scalar) -> Function:
    if kind.name == "bf16":
        return lambda *values: narrowed(kind, saturated(widened(kind, function(*values))))
    return lambda *values: saturated(function(*values))


def saturated(values: Values) -> Values:
    """Return numbers limited to 0 to 1; 0 for a NaN."""
    return np.where(np.isnan(values), 0, np.clip(values, 0, 1)).astype(values.dtype)


def _add(decoder: Decoder, instruction: Instruction) -> Step:
    kind, mode = number_kind(instruction), mode_of(instruction)
    if not kind.is_float:
        return elementwise(decoder, instruction, _clamped_add(kind) if "sat" in instruction.modifiers else np.add)
    return floating(decoder, instruction, _sum_of(kind, mode))


def _sub(decoder: Decoder, instruction: Instruction) -> Step:
    kind, mode = number_kind(instruction), mode_of(instruction)
    if not kind.is_float:
        if "sat" in instruction.modifiers:
            raise Unsupported("saturation of a difference of whole numbers")
        return elementwise(decoder, instruction, np.subtract)
    if mode == "rn" and kind.name != "bf16":
        return floating(decoder, instruction, np.subtract)
    add = _sum_of(kind, mode)
    return floating(decoder, instruction, lambda a, b: add(a, b ^ 0x8000 if kind.name == "bf16" else -b))


def _clamped_add(kind: Scalar) -> Function:
    limits = np.iinfo(kind.dtype)
    return lambda a, b: np.clip(a.astype(np.int64) + b, limits.min, limits.max).astype(kind.dtype)


def _sum_of(kind: Scalar, mode: str) -> Function:
    if kind.name == "f64":
        return np.add if mode == "rn" else lambda a, b: double_add(a, b, mode)
    if mode == "rn" and kind.name != "bf16":
        return np.add
    return lambda a, b: narrowed(kind, odd_sum(widened(kind, a), widened(kind, b)), mode)


def _mul(decoder: Decoder, instruction: Instruction) -> Step:
    kind, mode = number_kind(instruction), mode_of(instruction)
    if not kind.is_float:
        return _whole_product(decoder, instruction)
    if mode == "rn" and kind.name != "bf16":
        return floating(decoder, instruction, np.multiply)
    if kind.name == "f64":
        return floating(decoder, instruction, lambda a, b: double_multiply(a, b, mode))
    return floating(decoder, instruction, lambda a, b: narrowed(kind, widened(kind, a) * widened(kind, b), mode))


def _mad(decoder: Decoder, instruction: Instruction) -> Step:
    kind = number_kind(instruction)
    return _fma(decoder, instruction) if kind.is_float else _whole_product(decoder, instruction)


def _whole_product(decoder: Decoder, instruction: Instruction) -> Step:
    """Return the step of `mul` or `mad` with the low, the high or all bits of the product."""
    kind, part = scalar(instruction.kind), instruction.modifiers[0]
    if "sat" in instruction.modifiers:
        raise Unsupported("saturation of a product of whole numbers")
    double = scalar(f"{kind.letter}{2 * kind.bits}") if part == "wide" else kind
    target, left, right, *addend = instruction.operands
    put = decoder.write(target, double)
    a, b = decoder.read(left, kind), decoder.read(right, kind)
    c = decoder.read(addend[0], double) if addend else None
    forms: dict[str, Function] = {"wide": _wide(double), "hi": _high(kind), "lo": np.multiply}
    multiply = forms[part]

    def step(warp: Warp, mask: Mask) -> None:
        product = multiply(a(warp), b(warp))
        put(warp, mask, product if c is None else product + c(warp))

    return step


def _wide(double: Scalar) -> Function:
    return lambda a, b: a.astype(double.dtype) * b.astype(double.dtype)


def _high(kind: Scalar) -> Function:
    def multiply(a: Values, b: Values) -> Values:
        exact = [int(x) * int(y) >> kind.bits & 2**kind.bits - 1 for x, y in zip(a, b, strict=True)]
        return np.array(exact, f"u{kind.bits // 8}").view(kind.dtype)

    return multiply


def _fma(decoder: Decoder, instruction: Instruction) -> Step:
    kind, mode = number_kind(instruction), mode_of(instruction)
    if kind.name == "f64":
        return floating(decoder, instruction, lambda a, b, c: double_fma(a, b, c, mode))
    if kind.name == "f32" and mode == "rn":
        return floating(decoder, instruction, single_fma)

    def rounded(a: Values, b: Values, c: Values) -> Values:
        exact = widened(kind, a) * widened(kind, b)  # 48 bits at most
        return narrowed(kind, odd_sum(exact, widened(kind, c)), mode)

    return floating(decoder, instruction, rounded)


def _div(decoder: Decoder, instruction: Instruction) -> Step:
    kind, mode = number_kind(instruction), mode_of(instruction)
    if not kind.is_float:
        return elementwise(decoder, instruction, _quotient(kind))
    if mode == "rn":
        return floating(decoder, instruction, np.divide)
    if kind.name == "f64":
        raise Unsupported(f"a quotient of .f64 rounded by .{mode}")
    return floating(decoder, instruction, lambda a, b: narrowed(kind, widened(kind, a) / widened(kind, b), mode))


def _quotient(kind: Scalar) -> Function:
    def divide(a: Values, b: Values) -> Values:
        by = np.where(b == 0, b.dtype.type(1), b)
        quotient = a // by if kind.letter == "u" else (a - np.fmod(a, by)) // by
        return np.where(b == 0, kind.dtype.type(-1 if kind.letter == "s" else np.iinfo(kind.dtype).max), quotient)

    return divide


def _rem(decoder: Decoder, instruction: Instruction) -> Step:
    def remainder(a: Values, b: Values) -> Values:
        return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))

    return elementwise(decoder, instruction, remainder)


def _extreme(of_floats: np.ufunc, of_integers: np.ufunc) -> Callable[[Decoder, Instruction], Step]:
    """Return the decoder of `min` or `max`: of a number and a NaN the number, unless `.NaN` asks for the NaN."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = number_kind(instruction)
        if not kind.is_float:
            return elementwise(decoder, instruction, of_integers)
        extreme = _ordered(of_integers if "NaN" in instruction.modifiers else of_floats, of_integers)
        if kind.name == "bf16":
            return floating(decoder, instruction, _of_bits(extreme))
        return floating(decoder, instruction, extreme)

    return decode


def _ordered(extreme: np.ufunc, of_integers: np.ufunc) -> Function:
    """Return `min` or `max` with -0 below +0."""

    def ordered(a: Values, b: Values) -> Values:
        found: Values = extreme(a, b)
        zeros = (a == 0) & (b == 0)
        if not zeros.any():
            return found
        negative = of_integers(~np.signbit(a), ~np.signbit(b)) == 0
        return np.where(zeros, np.copysign(found, np.where(negative, -1, 1).astype(found.dtype)), found)

    return ordered


def _sign(function: Function) -> Callable[[Decoder, Instruction], Step]:
    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = number_kind(instruction)
        if kind.name == "bf16":
            return floating(decoder, instruction, _of_bits(function))
        if kind.is_float:
            return floating(decoder, instruction, function)
        return elementwise(decoder, instruction, function)

    return decode


def _of_bits(function: Function) -> Function:
    """Return a function of bf16, by their bits, whose result is one of its arguments but for the sign."""

    def of_singles(*bits: Values) -> Values:
        singles = [(each.astype(np.uint32) << np.uint32(16)).view(np.float32) for each in bits]
        return (function(*singles).view(np.uint32) >> np.uint32(16)).astype(np.uint16)

    return of_singles


def _approximate(function: Function) -> Callable[[Decoder, Instruction], Step]:
    """Return the decoder of a function that is computed in float64 and rounded: nearer than the hardware's."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind, mode = number_kind(instruction), mode_of(instruction)
        if kind.name == "f64" and {"approx", "ftz"} <= {*instruction.modifiers}:
            raise Unsupported(f"{instruction.name}, which keeps 20 bits of the fraction")
        if kind.name == "f64" and mode != "rn":
            raise Unsupported(f"{instruction.opcode} of .f64 rounded by .{mode}")
        return floating(decoder, instruction, lambda a: narrowed(kind, function(widened(kind, a)), mode))

    return decode


ARITHMETIC: dict[str, Callable[[Decoder, Instruction], Step]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "mad": _mad,
    "fma": _fma,
    "div": _div,
    "rem": _rem,
    "min": _extreme(np.fmin, np.minimum),
    "max": _extreme(np.fmax, np.maximum),
    "abs": _sign(np.abs),
    "neg": _sign(np.negative),
    "copysign": _sign(lambda sign, size: np.copysign(size, sign)),
    "rcp": _approximate(np.reciprocal),
    "sqrt": _approximate(np.sqrt),
    "rsqrt": _approximate(lambda values: 1 / np.sqrt(values)),
    "ex2": _approximate(np.exp2),
    "lg2": _approximate(np.log2),
    "sin": _approximate(np.sin),
    "cos": _approximate(np.cos),
    "tanh": _approximate(np.tanh),
}
