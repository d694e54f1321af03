"""Instructions on bits: logic, shifts, fields and permutations of bytes."""

from collections.abc import Callable

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.arithmetic import elementwise
from gpuexplore.kernels.ptx.decoder import Decoder, Getter, Step
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.registers import LANES, Values, scalar
from gpuexplore.kernels.ptx.warp import Mask, Warp

_WORD = scalar("u32")


def _logic(function: np.ufunc) -> Callable[[Decoder, Instruction], Step]:
    return lambda decoder, instruction: elementwise(decoder, instruction, function)


def _cnot(decoder: Decoder, instruction: Instruction) -> Step:
    return elementwise(decoder, instruction, lambda a: (a == 0).astype(a.dtype))


def _sources(decoder: Decoder, instruction: Instruction, *kinds: str) -> list[Getter]:
    pairs = zip(instruction.operands[1:], kinds, strict=True)
    return [decoder.read(operand, scalar(kind)) for operand, kind in pairs]


def _shift(move: np.ufunc) -> Callable[[Decoder, Instruction], Step]:
    """Return the decoder of a shift; by the width or more it leaves nothing but the sign of a signed number."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = scalar(instruction.kind)
        value, count = _sources(decoder, instruction, kind.name, "u32")
        put, most = decoder.write(instruction.operands[0], kind), np.uint32(kind.bits - 1)
        keeps_sign = kind.letter == "s" and move is np.right_shift

        def step(warp: Warp, mask: Mask) -> None:
            given, by = value(warp), count(warp)
            moved = move(given, np.minimum(by, most).astype(kind.dtype))
            put(warp, mask, moved if keeps_sign else np.where(by > most, kind.dtype.type(0), moved))

        return step

    return decode


def _funnel(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `shf`: a shift of two words, of which one remains."""
    left, wraps = instruction.modifiers[0] == "l", instruction.modifiers[1] == "wrap"
    low, high, count = _sources(decoder, instruction, "u32", "u32", "u32")
    put = decoder.write(instruction.operands[0], _WORD)

    def step(warp: Warp, mask: Mask) -> None:
        both = high(warp).astype(np.uint64) << np.uint64(32) | low(warp)
        by = (count(warp) & 31 if wraps else np.minimum(count(warp), 32)).astype(np.uint64)
        put(warp, mask, ((both << by) >> np.uint64(32) if left else both >> by).astype(np.uint32))

    return step


def _extract(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `bfe`: a field of bits, with its sign where the type has one."""
    kind = scalar(instruction.kind)
    sources = _sources(decoder, instruction, kind.name, "u32", "u32")
    put = decoder.write(instruction.operands[0], kind)

    def field(value: int, start: int, length: int) -> int:
        value, start, length = value & 2**kind.bits - 1, start & 255, length & 255
        found = value >> start & 2**length - 1
        if kind.letter == "s" and length and value >> min(start + length - 1, kind.bits - 1) & 1:
            found |= -1 << min(length, max(kind.bits - start, 0))
        return int(found & 2**kind.bits - 1)

    return lambda warp, mask: put(warp, mask, _each(field, kind.dtype.itemsize, sources, warp).view(kind.dtype))


def _insert(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `bfi`: a value with a field of it replaced."""
    kind = scalar(instruction.kind)
    sources = _sources(decoder, instruction, kind.name, kind.name, "u32", "u32")
    put = decoder.write(instruction.operands[0], kind)

    def field(given: int, into: int, start: int, length: int) -> int:
        where = (2 ** (length & 255) - 1 << (start & 255)) & 2**kind.bits - 1
        return int(into & ~where | given << (start & 255) & where)

    return lambda warp, mask: put(warp, mask, _each(field, kind.dtype.itemsize, sources, warp))


def _each(function: Callable[..., int], size_bytes: int, sources: list[Getter], warp: Warp) -> Values:
    """Return a function of whole numbers lane by lane, as unsigned numbers."""
    columns = [source(warp).tolist() for source in sources]
    return np.array([function(*row) for row in zip(*columns, strict=True)], f"u{size_bytes}")


def _permute(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `prmt`: four of eight bytes, or what their signs say."""
    if instruction.kind != "b32" or len(instruction.modifiers) > 1:
        raise Unsupported("this mode of prmt")
    low, high, chosen = _sources(decoder, instruction, "u32", "u32", "u32")
    put, nibbles, lanes = (
        decoder.write(instruction.operands[0], _WORD),
        np.arange(4, dtype=np.uint32) * 4,
        np.arange(LANES),
    )

    def step(warp: Warp, mask: Mask) -> None:
        bytes_given = np.stack([low(warp), high(warp)], 1).view(np.uint8)
        selected = chosen(warp)[:, None] >> nibbles & 15
        found = bytes_given[lanes[:, None], selected & 7]
        signs = np.where(found & 128, 255, 0)
        put(warp, mask, np.where(selected & 8, signs, found).astype(np.uint8).view(np.uint32)[:, 0])

    return step


def _table(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `lop3`: any logical function of three words, by its table of 8 bits."""
    *_, last = instruction.operands
    assert isinstance(last, int)
    cases = [i for i in range(8) if last >> i & 1]

    def combine(a: Values, b: Values, c: Values) -> Values:
        found = np.zeros(LANES, np.uint32)
        for case in cases:
            found |= (a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c)
        return found

    sources = [decoder.read(operand, _WORD) for operand in instruction.operands[1:4]]
    put = decoder.write(instruction.operands[0], _WORD)
    return lambda warp, mask: put(warp, mask, combine(*[source(warp) for source in sources]))


def _count(function: Callable[[int, int], int], *, same_width: bool = False) -> Callable[[Decoder, Instruction], Step]:
    """Return the decoder of a function of a value's bits and their number."""

    def decode(decoder: Decoder, instruction: Instruction) -> Step:
        kind = scalar(instruction.kind)
        sources = _sources(decoder, instruction, f"u{kind.bits}")
        put = decoder.write(instruction.operands[0], kind if same_width else _WORD)
        size_bytes = kind.bits // 8 if same_width else 4
        return lambda warp, mask: put(
            warp, mask, _each(lambda value: function(value, kind.bits), size_bytes, sources, warp)
        )

    return decode


BITS: dict[str, Callable[[Decoder, Instruction], Step]] = {
    "and": _logic(np.bitwise_and),
    "or": _logic(np.bitwise_or),
    "xor": _logic(np.bitwise_xor),
    "not": _logic(np.invert),
    "cnot": _cnot,
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
