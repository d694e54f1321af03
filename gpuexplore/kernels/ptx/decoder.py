"""The decoder of operands into functions of a warp: what an instruction needs of its operands is worked out once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.program import (
    Address,
    Instruction,
    Negated,
    Operand,
    Program,
    Register,
)
from gpuexplore.kernels.ptx.registers import LANES, RegisterFile, Scalar, Values, scalar
from gpuexplore.kernels.ptx.report import Ledger
from gpuexplore.kernels.ptx.warp import Mask, Warp

_WHOLE = frozenset({"s16", "u16", "s32", "u32", "s64", "u64"})
_SMALL = frozenset({"s8", "u8"})
_BITS = frozenset({"b16", "b32", "b64"})
_WIDE_FLOATS = frozenset({"f32", "f64"})
_FLOATS = _WIDE_FLOATS | {"f16", "bf16"}
_PAIRS = frozenset({"f16x2", "bf16x2"})
_ROUNDING = frozenset({"rn", "rz", "rm", "rp"})
_LIMITING = frozenset({"ftz", "sat"})
_SUM = _WHOLE | _FLOATS | _PAIRS | _ROUNDING | _LIMITING
_ORDER = frozenset({"weak", "relaxed", "acquire", "release", "volatile", "cta", "cluster", "gpu", "sys"})
_SPACES = frozenset({"global", "shared", "local", "param", "const"})
_CACHING = frozenset({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "L1", "L2"})
_ACCESS = _ORDER | _SPACES | _CACHING | _WHOLE | _SMALL | _BITS | _WIDE_FLOATS | {"b8", "v2", "v4"}
_ORDERED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_COMPARISONS = _ORDERED | {f"{name}u" for name in _ORDERED} | {"lo", "ls", "hi", "hs", "num", "nan"}
_LOGIC = _BITS | {"pred"}
_APPROXIMATE = _FLOATS | _PAIRS | {"approx", "ftz"}
_UPDATES = frozenset(["add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas", "noftz"])
_ATOMIC = _ORDER | _UPDATES | {"global", "shared"} | _WHOLE | _BITS | _FLOATS | _PAIRS
KNOWN: dict[str, frozenset[str]] = {
    "ld": _ACCESS - {"release"},
    "st": _ACCESS - {"acquire", "nc"},
    "cp": frozenset({"async", "ca", "cg", "shared", "global", "L2", "commit_group", "wait_group", "wait_all"}),
    "add": _SUM,
    "sub": _SUM,
    "mul": _SUM | {"lo", "hi", "wide"},
    "mad": _WHOLE | _WIDE_FLOATS | _ROUNDING | _LIMITING | {"lo", "hi", "wide"},
    "fma": _FLOATS | _PAIRS | _ROUNDING | _LIMITING,
    "div": _WHOLE | _WIDE_FLOATS | _ROUNDING | {"approx", "full", "ftz"},
    "rem": _WHOLE,
    "min": _WHOLE | _FLOATS | _PAIRS | {"ftz", "NaN"},
    "max": _WHOLE | _FLOATS | _PAIRS | {"ftz", "NaN"},
    "abs": _WHOLE | _FLOATS | _PAIRS | {"ftz"},
    "neg": _WHOLE | _FLOATS | _PAIRS | {"ftz"},
    "copysign": _WIDE_FLOATS,
    "rcp": _WIDE_FLOATS | _ROUNDING | {"approx", "ftz"},
    "sqrt": _WIDE_FLOATS | _ROUNDING | {"approx", "ftz"},
    "rsqrt": _WIDE_FLOATS | {"approx", "ftz"},
    "ex2": _APPROXIMATE,
    "lg2": _APPROXIMATE,
    "sin": _APPROXIMATE,
    "cos": _APPROXIMATE,
    "tanh": _APPROXIMATE,
    "and": _LOGIC,
    "or": _LOGIC,
    "xor": _LOGIC,
    "not": _LOGIC,
    "cnot": _BITS,
    "shl": _BITS,
    "shr": _BITS | _WHOLE,
    "shf": frozenset({"l", "r", "wrap", "clamp", "b32"}),
    "bfe": _WHOLE,
    "bfi": _BITS,
    "prmt": frozenset({"b32"}),
    "lop3": frozenset({"b32"}),
    "popc": _BITS,
    "clz": _BITS,
    "brev": _BITS,
    "setp": _COMPARISONS | {"and", "or", "xor", "ftz"} | _WHOLE | _BITS | _FLOATS,
    "set": _COMPARISONS | {"ftz"} | _WHOLE | _BITS | _FLOATS,
    "selp": _WHOLE | _BITS | _FLOATS,
    "slct": _WHOLE | _BITS | _WIDE_FLOATS | {"ftz"},
    "mov": _WHOLE | _LOGIC | _WIDE_FLOATS | {"f16", "bf16"},
    "cvta": frozenset({"to", "u32", "u64"}) | _SPACES,
    "cvt": _SUM | _SMALL | {"rni", "rzi", "rmi", "rpi", "rna", "relu", "tf32"},
    "bra": frozenset({"uni"}),
    "ret": frozenset({"uni"}),
    "exit": frozenset(),
    "bar": frozenset({"sync", "warp", "cta"}),
    "barrier": frozenset({"sync", "aligned", "cta"}),
    "membar": frozenset({"gl", "cta", "sys"}),
    "fence": _ORDER | {"sc", "acq_rel", "proxy", "async", "alias", "global", "shared"},
    "prefetch": frozenset({"global", "local", "L1", "L2"}),
    "shfl": frozenset({"sync", "up", "down", "bfly", "idx", "b32"}),
    "vote": frozenset({"sync", "all", "any", "uni", "ballot", "pred", "b32"}),
    "activemask": frozenset({"b32"}),
    "ldmatrix": frozenset({"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "b16"}),
    "atom": _ATOMIC | {"acq_rel"},
    "red": _ATOMIC,
}

Getter = Callable[[Warp], Values]
Putter = Callable[[Warp, Mask, Values], None]
Step = Callable[[Warp, Mask], None]


@dataclass
class Decoder:
    """What instructions are decoded with.

    Attributes:
        program: the kernel.
        parameters: values of its parameters.
        ledger: where faults are noted.
        early: whether asynchronous copies and products arrive at once.
        registers: gives out slots.
        pc: index of the instruction that is being decoded.
    """

    program: Program
    parameters: Mapping[str, int]
    ledger: Ledger
    early: bool = False
    registers: RegisterFile = field(init=False)
    pc: int = 0

    def __post_init__(self) -> None:
        self.registers = RegisterFile(self.program.registers)

    def read(self, operand: Operand, kind: Scalar) -> Getter:
        """Return what gives an operand's value in each lane, as a type."""
        if isinstance(operand, Register):
            return self._register(operand.name, kind)
        if isinstance(operand, Negated):
            inner = self.read(operand.operand, kind)
            return lambda warp: ~inner(warp)
        value = self._constant(operand, kind)
        return lambda _: value

    def write(self, operand: Operand, kind: Scalar) -> Putter:
        """Return what puts a value of a type into a register, in some lanes; a wider one is filled up."""
        if operand == "_":
            return lambda *_: None
        if not isinstance(operand, Register) or operand.name not in self.registers:
            raise Unsupported(f"{operand} as a destination")
        slot = self.registers.slot(operand.name, self._stored(operand.name, kind))

        def put(warp: Warp, mask: Mask, values: Values) -> None:
            if mask is None:
                warp.slots[slot][...] = values
            else:
                np.copyto(warp.slots[slot], values, where=mask)

        return put

    def slot(self, operand: Operand, kind: Scalar) -> int | None:
        """Return the slot of a register that is exactly as wide as a type; None for other operands."""
        if not isinstance(operand, Register) or operand.name not in self.registers:
            return None
        declared = self.registers.kind(operand.name)
        if declared.bits != kind.bits or (declared.letter == "p") != (kind.letter == "p"):
            return None
        return self.registers.slot(operand.name, kind.dtype)

    def address(self, operand: Operand) -> Getter:
        """Return what gives the address `[base+offset]` in each lane, in bytes."""
        if not isinstance(operand, Address):
            raise Unsupported(f"{operand} as an address")
        if isinstance(operand.base, Register):
            kind = scalar(f"u{self.registers.kind(operand.base.name).bits}")
            base, offset = self.read(operand.base, kind), np.int64(operand.offset)
            return lambda warp: base(warp).astype(np.int64) + offset
        value = self._constant(operand.base, scalar("u64")).astype(np.int64) + operand.offset
        return lambda _: value

    def _register(self, name: str, kind: Scalar) -> Getter:
        if name in self.registers:
            if self.registers.kind(name).bits < kind.bits:
                raise Unsupported(f"register {name} is too narrow for .{kind.name}")
            slot = self.registers.slot(name, kind.dtype)
            return lambda warp: warp.slots[slot]
        return lambda warp: warp.special[name].astype(kind.dtype)

    def _stored(self, name: str, kind: Scalar) -> np.dtype[Any]:
        declared = self.registers.kind(name)
        if declared.bits < kind.bits:
            raise Unsupported(f"register {name} is too narrow for .{kind.name}")
        if declared.bits == kind.bits or kind.letter == "p":
            return kind.dtype
        return np.dtype(f"{'i' if kind.letter == 's' else 'u'}{declared.bits // 8}")

    def _constant(self, operand: Operand, kind: Scalar) -> Values:
        """Return a constant in every lane."""
        if isinstance(operand, np.float32 | np.float64):
            everywhere = np.full(LANES, operand)
            same = 8 * operand.itemsize == kind.bits
            return everywhere.view(kind.dtype) if same else everywhere.astype(kind.dtype)
        value = self._whole(operand)
        if kind.letter == "p":
            return np.full(LANES, bool(value))
        if kind.is_float and kind.name != "bf16":
            return np.full(LANES, value, kind.dtype)
        return np.full(LANES, value & (2**kind.bits - 1), f"u{kind.bits // 8}").view(kind.dtype)

    def _whole(self, operand: Operand) -> int:
        if isinstance(operand, int):
            return operand
        if isinstance(operand, str):
            for offsets in (self.program.shared.offsets, self.program.local.offsets):
                if operand in offsets:
                    return offsets[operand]
            raise Unsupported(f"the name {operand}")
        raise Unsupported(f"{operand} as a value")


def items(operand: Operand) -> tuple[Operand, ...]:
    """Return the operands that are written as one, or the only one."""
    return operand if isinstance(operand, tuple) else (operand,)


def mode_of(instruction: Instruction) -> str:
    """Return an instruction's rounding mode; to nearest unless it says otherwise."""
    return next((modifier for modifier in instruction.modifiers if modifier in ("rn", "rz", "rm", "rp")), "rn")


# Which modifiers of each instruction are known here: any other is named, for left out it could change the result.


def expect_known_modifiers(instruction: Instruction) -> None:
    """Raise an error that names the first modifier which is not known; `mma` and `wgmma` are known by their whole name.

    Raises:
        Unsupported: there is one.
    """
    known = KNOWN.get(instruction.opcode)
    if known is None:
        return
    for modifier in instruction.modifiers:
        if modifier.split("::")[0] not in known:
            raise Unsupported(f"the modifier .{modifier} of {instruction.opcode} is not known here")
