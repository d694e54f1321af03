"""A kernel in PTX as data: parameters, registers, arrays and instructions with their operands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True, slots=True)
class Register:
    """A register that the kernel declares, or a special one such as `%tid.x`."""

    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """An address in memory: `[base+offset]`, the offset in bytes."""

    base: "Operand"
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Negated:
    """A predicate written with `!`."""

    operand: "Operand"


# A whole number is an int, a floating-point number one of NumPy's: `0f` has 32 bits, `0d` 64. A name is a str: a label,
# a parameter, an array, or `_` for a result that is dropped. Several operands written as one, `{a, b}` or `a|b`, are a
# tuple.
Operand: TypeAlias = "Register | int | np.float32 | np.float64 | str | tuple[Operand, ...] | Address | Negated"


def register_names(operand: Operand) -> Iterator[str]:
    """Yield the names of all registers in an operand."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Negated):
        yield from register_names(operand.operand)
    elif isinstance(operand, Address):
        yield from register_names(operand.base)
    elif isinstance(operand, tuple):
        for item in operand:
            yield from register_names(item)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        line: of the PTX, counted from 1.
        text: as it is written, without the semicolon.
        opcode: the first part of its name, e.g. `ld`.
        modifiers: the other parts, e.g. `("global", "v4", "f32")`.
        operands: the destination first.
        guard: the predicate under which it acts; None: always.
    """

    line: int
    text: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    guard: Register | Negated | None = None

    @property
    def name(self) -> str:
        """The opcode with its modifiers, e.g. `ld.global.v4.f32`."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def register_names(self) -> frozenset[str]:
        """The names of the registers that it uses."""
        operands = (*self.operands, self.guard) if self.guard else self.operands
        return frozenset(name for operand in operands for name in register_names(operand))

    @property
    def kind(self) -> str:
        """The last modifier, which is the type in most instructions."""
        return self.modifiers[-1]


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """Arrays of a kernel in one memory, at byte offsets from its start.

    Attributes:
        offsets: where each begins.
        size_bytes: of those whose length the kernel declares.
        open_align: of those whose length a launch gives: all begin at one offset, behind the others; 0: none.
    """

    offsets: Mapping[str, int] = field(default_factory=dict)
    size_bytes: int = 0
    open_align: int = 0

    def with_array(self, name: str, align: int, length: int) -> "MemoryLayout":
        """Return the layout with one more array, at the next multiple of `align`."""
        start = -(-self.size_bytes // align) * align
        size_bytes, offsets = start + length, {**self.offsets, name: start}
        return MemoryLayout(offsets, size_bytes, self.open_align)

    def with_open_arrays(self, aligns: Mapping[str, int]) -> "MemoryLayout":
        """Return the layout with arrays of a length that a launch gives, by name and alignment."""
        most = max(aligns.values(), default=0)
        return MemoryLayout({**self.offsets, **dict.fromkeys(aligns, self._open_start(most))}, self.size_bytes, most)

    def bytes_with(self, open_bytes: int) -> int:
        """Return the bytes of all arrays where those whose length is open have `open_bytes`."""
        return self._open_start(self.open_align) + open_bytes if open_bytes else self.size_bytes

    def _open_start(self, align: int) -> int:
        return -(-self.size_bytes // align) * align if align else self.size_bytes


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel in PTX.

    Attributes:
        name: of the kernel, as the compiler mangled it.
        target: what it was compiled for, e.g. `sm_90a`.
        parameters: names in their order.
        registers: the declared type of each, e.g. `f32`.
        shared: arrays of a block.
        local: arrays of a thread.
        labels: the index in `code` of the instruction after each.
        code: the instructions in their order.
    """

    name: str
    target: str
    parameters: tuple[str, ...]
    registers: Mapping[str, str]
    shared: MemoryLayout
    local: MemoryLayout
    labels: Mapping[str, int]
    code: tuple[Instruction, ...]
