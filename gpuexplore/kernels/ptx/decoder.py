"""The decoder of operands into functions of a warp, once per instruction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.memories import Memories
from gpuexplore.kernels.ptx.numbers import LANES, RegisterFile, Scalar, Values, scalar
from gpuexplore.kernels.ptx.program import Address, Instruction, Negated, Operand, Program, Register
from gpuexplore.kernels.ptx.warp import Mask, Warp

Getter = Callable[[Warp], Values]
Putter = Callable[[Warp, Mask, Values], None]
Step = Callable[[Warp, Mask], None]


@dataclass
class Decoder:
    """The context in which instructions are decoded.

    Attributes:
        program: the kernel.
        parameters: values of its parameters.
        memories: of the launch, with the ledger of faults.
        early: whether asynchronous copies and products arrive at once.
        registers: gives out slots.
        pc: index of the instruction that is being decoded.
    """

    program: Program
    parameters: Mapping[str, int]
    memories: Memories
    early: bool = False
    registers: RegisterFile = field(init=False)
    pc: int = 0

    def __post_init__(self) -> None:
        self.registers = RegisterFile(self.program.registers)

    def read(self, operand: Operand, kind: Scalar) -> Getter:
        """Return the function that reads an operand's value in each lane, as a type."""
        if isinstance(operand, Register):
            return self._register(operand.name, kind)
        if isinstance(operand, Negated):
            inner = self.read(operand.base, kind)
            return lambda warp: ~inner(warp)
        value = self._constant(operand, kind)
        return lambda _: value

    def write(self, operand: Operand, kind: Scalar) -> Putter:
        """Return the function that writes a value of a type to a register in some lanes, extended to its width."""
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

    def mapped(
        self, instruction: Instruction, target: Scalar, sources: Sequence[Scalar], function: Callable[..., Values]
    ) -> Step:
        """Return the step that puts a function of all sources, of these types, into the destination."""
        kinds = (target, *sources)
        slots = [self._slot(*pair) for pair in zip(instruction.operands, kinds, strict=True)]
        registers = [slot for slot in slots if slot is not None]
        if isinstance(function, np.ufunc) and len(slots) == len(registers) == 3:
            return _in_registers(function, registers)
        put = self.write(instruction.operands[0], target)
        gets = [self.read(*pair) for pair in zip(instruction.operands[1:], sources, strict=True)]
        return lambda warp, mask: put(warp, mask, function(*[get(warp) for get in gets]))

    def _slot(self, operand: Operand, kind: Scalar) -> int | None:
        """Return the slot of a register that is exactly as wide as a type; None for other operands."""
        if not isinstance(operand, Register) or operand.name not in self.registers:
            return None
        declared = self.registers.kind(operand.name)
        if declared.bits != kind.bits or (declared.letter == "p") != (kind.letter == "p"):
            return None
        return self.registers.slot(operand.name, kind.dtype)

    def address(self, operand: Operand) -> Getter:
        """Return the function that computes the address `[base+offset]` in each lane, in bytes."""
        if not isinstance(operand, Address):
            raise Unsupported(f"{operand} as an address")
        if isinstance(operand.base, Register):
            base = self.read(operand.base, scalar(f"u{self.registers.kind(operand.base.name).bits}"))
            offset = operand.offset
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
        if not isinstance(operand, str):
            raise Unsupported(f"{operand} as a value")
        for offsets in (self.program.shared.offsets, self.program.local.offsets):
            if operand in offsets:
                return offsets[operand]
        raise Unsupported(f"the name {operand}")


Decode = Callable[[Decoder, Instruction], Step]


def _in_registers(function: np.ufunc, slots: Sequence[int]) -> Step:
    """Return the step of a function of two registers without a copy in between."""
    target, left, right = slots

    def step(warp: Warp, mask: Mask) -> None:
        rows = warp.slots
        if mask is None:
            function(rows[left], rows[right], out=rows[target])
        else:
            np.copyto(rows[target], function(rows[left], rows[right]), where=mask)

    return step


def items(operand: Operand) -> tuple[Operand, ...]:
    """Return the operands that are written as one, or the only one."""
    return operand if isinstance(operand, tuple) else (operand,)


def mode_of(instruction: Instruction) -> str:
    """Return an instruction's rounding mode; to nearest unless it says otherwise."""
    return next((modifier for modifier in instruction.modifiers if modifier in ("rn", "rz", "rm", "rp")), "rn")
