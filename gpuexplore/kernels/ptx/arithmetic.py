"""Instructions on numbers and on bits: arithmetic, logic, shifts, fields and permutations of bytes."""

from collections.abc import Callable

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decode, Decoder, Step, mode_of
from gpuexplore.kernels.ptx.numbers import (
    LANES,
    Scalar,
    Values,
    narrowed,
    rounded_fma,
    rounded_product,
    rounded_sum,
    scalar,
    widened,
)
from gpuexplore.kernels.ptx.program import Instruction

_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
_WORD = scalar("u32")
Function = Callable[..., Values]


def _elementwise(decoder: Decoder, instruction: Instruction, function: Function) -> Step:
    """Return the step that puts a function of all sources, of one type, into the destination."""
    count = len(instruction.operands) - 1
    if instruction.kind not in _PAIRS:
        kind = scalar(instruction.kind)
        return decoder.mapped(instruction, kind, [kind] * count, function)
    number = _number_kind(instruction)

    def of_halves(*words: Values) -> Values:
        halves = [np.ascontiguousarray(each).view(number.dtype) for each in words]
        return np.ascontiguousarray(function(*halves)).view(np.uint32)

    return decoder.mapped(instruction, _WORD, [_WORD] * count, of_halves)


def _number_kind(instruction: Instruction) -> Scalar:
    """Return the type of the numbers an instruction computes with: `f16` of `f16x2`."""
    return scalar(_PAIRS.get(instruction.kind, instruction.kind))


def _floating(decoder: Decoder, instruction: Instruction, function: Function) -> Step:
    """Return the step of a function of floating-point numbers, with `.ftz` and `.sat` applied."""
    kind = _number_kind(instruction)
    flushes = "ftz" in instruction.modifiers
    saturates = "sat" in instruction.modifiers
    if flushes and kind.name == "bf16":
        raise Unsupported("zeros for subnormal numbers of bf16")
    if not flushes and not saturates:
        return _elementwise(decoder, instruction, function)

    def limited(*values: Values) -> Values:
        found = flushed(function(*map(flushed, values))) if flushes else function(*values)
        if not saturates:
            return found
        return narrowed(kind, saturated(widened(kind, found))) if kind.name == "bf16" else saturated(found)

    return _elementwise(decoder, instruction, limited)


def flushed(values: Values) -> Values:
    """Return numbers below the normal ones as zeros of their sign."""
    tiny = np.abs(values) < np.finfo(values.dtype).smallest_normal
    return np.where(tiny, np.copysign(values.dtype.type(0), values), values)


def saturated(values: Values) -> Values:
    """Return numbers limited to 0 to 1; 0 for a NaN."""
    return np.where(np.isnan(values), 0, np.clip(values, 0, 1)).astype(values.dtype)


def _add(decoder: Decoder, instruction: Instruction) -> Step:
    kind = _number_kind(instruction)
    if kind.is_float:
        return _floating(decoder, instruction, _sum_of(kind, mode_of(instruction)))
    if "sat" not in instruction.modifiers:
        return _elementwise(decoder, instruction, np.add)
    limits = np.iinfo(kind.dtype)

    def clamped_sum(a: Values, b: Values) -> Values:
        return np.clip(a.astype(np.int64) + b, limits.min, limits.max).astype(kind.dtype)

    return _elementwise(decoder, instruction, clamped_sum)


def _sub(decoder: Decoder, instruction: Instruction) -> Step:
    kind = _number_kind(instruction)
    mode = mode_of(instruction)
    if not kind.is_float:
        if "sat" in instruction.modifiers:
            raise Unsupported("saturation of a difference of whole numbers")
        return _elementwise(decoder, instruction, np.subtract)
    if mode == "rn" and kind.name != "bf16":
        return _floating(decoder, instruction, np.subtract)
    add = _sum_of(kind, mode)
    return _floating(decoder, instruction, lambda a, b: add(a, b ^ 0x8000 if kind.name == "bf16" else -b))


def _sum_of(kind: Scalar, mode: str) -> Function:
    if mode == "rn" and kind.name != "bf16":
        return np.add
    return lambda a, b: rounded_sum(kind, widened(kind, a), widened(kind, b), mode)


def _mul(decoder: Decoder, instruction: Instruction) -> Step:
    kind = _number_kind(instruction)
    mode = mode_of(instruction)
    if not kind.is_float:
        return _whole_product(decoder, instruction)
    if mode == "rn" and kind.name != "bf16":
        return _floating(decoder, instruction, np.multiply)
    return _floating(decoder, instruction, lambda a, b: rounded_product(kind, a, b, mode))


def _mad(decoder: Decoder, instruction: Instruction) -> Step:
    return (_fma if _number_kind(instruction).is_float else _whole_product)(decoder, instruction)


def _whole_product(decoder: Decoder, instruction: Instruction) -> Step:
    """Return the step of `mul` or `mad` with the low, the high or all bits of the product."""
    kind = scalar(instruction.kind)
    part = instruction.modifiers[0]
    if "sat" in instruction.modifiers:
        raise Unsupported("saturation of a product of whole numbers")
    double = scalar(f"{kind.letter}{2 * kind.bits}") if part == "wide" else kind

    def high(a: Values, b: Values) -> Values:
        exact = [int(x) * int(y) >> kind.bits & 2**kind.bits - 1 for x, y in zip(a, b, strict=True)]
        return np.array(exact, f"u{kind.bits // 8}").view(kind.dtype)

    def wide(a: Values, b: Values) -> Values:
        return np.asarray(a.astype(double.dtype) * b.astype(double.dtype))

    forms: dict[str, Function] = {"wide": wide, "hi": high, "lo": np.multiply}
    multiply = forms[part]

    def product(a: Values, b: Values, *addend: Values) -> Values:
        return np.add(multiply(a, b), addend[0]) if addend else multiply(a, b)

    kinds = [kind, kind, double][: len(instruction.operands) - 1]
    return decoder.mapped(instruction, double, kinds, product)


def _fma(decoder: Decoder, instruction: Instruction) -> Step:
    kind = _number_kind(instruction)
    mode = mode_of(instruction)
    return _floating(decoder, instruction, lambda a, b, c: rounded_fma(kind, a, b, c, mode))


def _div(decoder: Decoder, instruction: Instruction) -> Step:
    kind = _number_kind(instruction)
    mode = mode_of(instruction)
    if not kind.is_float:
        return _elementwise(decoder, instruction, _quotient)
    if mode == "rn":
        return _floating(decoder, instruction, np.divide)
    if kind.name == "f64":
        raise Unsupported(f"a quotient of .f64 rounded by .{mode}")
    return _floating(decoder, instruction, lambda a, b: narrowed(kind, widened(kind, a) / widened(kind, b), mode))


def _quotient(a: Values, b: Values) -> Values:
    """Return a / b cut towards zero; all bits are set where b is 0."""
    by = np.where(b == 0, b.dtype.type(1), b)
    is_signed = a.dtype.kind == "i"
    quotient = (a - np.fmod(a, by)) // by if is_signed else a // by
    return np.where(b == 0, a.dtype.type(-1 if is_signed else np.iinfo(a.dtype).max), quotient)


def _rem(decoder: Decoder, instruction: Instruction) -> Step:
    def remainder(a: Values, b: Values) -> Values:
        return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))

    return _elementwise(decoder, instruction, remainder)


def _extreme(of_floats: np.ufunc, of_integers: np.ufunc) -> Decode:
    """Return the decoder of `min` or `max`: of a number and a NaN the number, unless `.NaN` asks for the NaN."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = _number_kind(instruction)
        if not kind.is_float:
            return _elementwise(decoder, instruction, of_integers)
        extreme = _ordered(of_integers if "NaN" in instruction.modifiers else of_floats, of_integers)
        return _floating(decoder, instruction, _of_bits(extreme) if kind.name == "bf16" else extreme)

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


def _sign(function: Function) -> Decode:
    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = _number_kind(instruction)
        if kind.is_float:
            return _floating(decoder, instruction, _of_bits(function) if kind.name == "bf16" else function)
        return _elementwise(decoder, instruction, function)

    return decode


def _of_bits(function: Function) -> Function:
    """Return a function of bf16, by their bits, whose result is one of its arguments but for the sign."""

    def of_singles(*bits: Values) -> Values:
        singles = [(each.astype(np.uint32) << np.uint32(16)).view(np.float32) for each in bits]
        return (function(*singles).view(np.uint32) >> np.uint32(16)).astype(np.uint16)

    return of_singles


def _approximate(function: Function) -> Decode:
    """Return the decoder of a function that is computed in float64 and rounded: nearer than the hardware's."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = _number_kind(instruction)
        mode = mode_of(instruction)
        if kind.name == "f64" and {"approx", "ftz"} <= {*instruction.modifiers}:
            raise Unsupported(f"{instruction.name}, which keeps 20 bits of the fraction")
        if kind.name == "f64" and mode != "rn":
            raise Unsupported(f"{instruction.opcode} of .f64 rounded by .{mode}")
        return _floating(decoder, instruction, lambda a: narrowed(kind, function(widened(kind, a)), mode))

    return decode


def _logic(function: Function) -> Decode:
    return lambda decoder, instruction: _elementwise(decoder, instruction, function)


def _shift(move: np.ufunc) -> Decode:
    """Return the decoder of a shift; by the width or more it leaves nothing but the sign of a signed number."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = scalar(instruction.kind)
        most = np.uint32(kind.bits - 1)
        keeps_sign = kind.letter == "s" and move is np.right_shift

        def shifted(given: Values, by: Values) -> Values:
            moved: Values = move(given, np.minimum(by, most).astype(kind.dtype))
            return moved if keeps_sign else np.where(by > most, kind.dtype.type(0), moved)

        return decoder.mapped(instruction, kind, (kind, _WORD), shifted)

    return decode


def _funnel(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `shf`: a shift of two words, of which one remains."""
    side, limit, *_ = instruction.modifiers

    def shifted(low: Values, high: Values, count: Values) -> Values:
        both = high.astype(np.uint64) << np.uint64(32) | low
        by = (count & 31 if limit == "wrap" else np.minimum(count, 32)).astype(np.uint64)
        return ((both << by) >> np.uint64(32) if side == "l" else both >> by).astype(np.uint32)

    return decoder.mapped(instruction, _WORD, [_WORD] * 3, shifted)


def _by_lane(function: Callable[..., int], size_bytes: int) -> Function:
    """Return a function of whole numbers lane by lane, whose results are unsigned numbers."""

    def of_lanes(*columns: Values) -> Values:
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return np.array([function(*row) for row in rows], f"u{size_bytes}")

    return of_lanes


def _extract(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `bfe`: a field of bits, with its sign where the type has one."""
    kind = scalar(instruction.kind)

    def field(given: int, first: int, count: int) -> int:
        value = given & 2**kind.bits - 1
        start = first & 255
        length = count & 255
        found = value >> start & 2**length - 1
        if kind.letter == "s" and length and value >> min(start + length - 1, kind.bits - 1) & 1:
            found |= -1 << min(length, max(kind.bits - start, 0))
        return int(found & 2**kind.bits - 1)

    fields = _by_lane(field, kind.dtype.itemsize)
    return decoder.mapped(instruction, kind, (kind, _WORD, _WORD), lambda *given: fields(*given).view(kind.dtype))


def _insert(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `bfi`: a value with a field of it replaced."""
    kind = scalar(instruction.kind)

    def field(given: int, into: int, start: int, length: int) -> int:
        where = (2 ** (length & 255) - 1 << (start & 255)) & 2**kind.bits - 1
        return int(into & ~where | given << (start & 255) & where)

    return decoder.mapped(instruction, kind, (kind, kind, _WORD, _WORD), _by_lane(field, kind.dtype.itemsize))


def _permute(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `prmt`: four of eight bytes, or their replicated signs."""
    if instruction.kind != "b32" or len(instruction.modifiers) > 1:
        raise Unsupported("this mode of prmt")

    def permuted(low: Values, high: Values, chosen: Values) -> Values:
        bytes_given = np.stack([low, high], 1).view(np.uint8)
        selected = chosen[:, None] >> np.arange(0, 16, 4, dtype=np.uint32) & 15
        found = np.take_along_axis(bytes_given, selected & 7, 1)
        signs = np.where(found & 128, 255, 0)
        return np.where(selected & 8, signs, found).astype(np.uint8).view(np.uint32)[:, 0]

    return decoder.mapped(instruction, _WORD, [_WORD] * 3, permuted)


def _table(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `lop3`: any logical function of three words, by its table of 8 bits."""
    last = instruction.operands[-1]
    assert isinstance(last, int)
    cases = [i for i in range(8) if last >> i & 1]

    def combined(a: Values, b: Values, c: Values, _: Values) -> Values:
        found = np.zeros(LANES, np.uint32)
        for case in cases:
            found |= (a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c)
        return found

    return decoder.mapped(instruction, _WORD, [_WORD] * 4, combined)


def _count(function: Callable[[int, int], int], *, same_width: bool = False) -> Decode:
    """Return the decoder of a function of a value's bits and their number."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = scalar(instruction.kind)
        target = kind if same_width else _WORD
        counted = _by_lane(lambda value: function(value, kind.bits), target.bits // 8)
        return decoder.mapped(instruction, target, [scalar(f"u{kind.bits}")], counted)

    return decode


ARITHMETIC: dict[str, Decode] = {
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
    "and": _logic(np.bitwise_and),
    "or": _logic(np.bitwise_or),
    "xor": _logic(np.bitwise_xor),
    "not": _logic(np.invert),
    "cnot": _logic(lambda a: (a == 0).astype(a.dtype)),
    "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift),
    "shf": _funnel,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute,
    "lop3": _table,
    "popc": _count(lambda value, _: value.bit_count()),
    "clz": _count(lambda value, bits: bits - value.bit_length()),
    "brev": _count(lambda value, bits: int(f"{value:0{bits}b}"[::-1], 2), same_width=True),
}
