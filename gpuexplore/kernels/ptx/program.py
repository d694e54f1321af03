"""A kernel in PTX as data, and the parser that reads it from a module with one kernel."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from gpuexplore.core.errors import InvalidInput


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

    base: "Operand"


# A whole number is an int, a floating-point number one of NumPy's: `0f` has 32 bits, `0d` 64. A name is a str: a label,
# a parameter, an array, or `_` for a result that is dropped. Several operands written as one, `{a, b}` or `a|b`, are a
# tuple.
Operand: TypeAlias = "Register | int | np.float32 | np.float64 | str | tuple[Operand, ...] | Address | Negated"


def register_names(operand: Operand) -> Iterator[str]:
    """Yield the names of all registers in an operand."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Negated | Address):
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
        return frozenset(register_names((*self.operands, self.guard) if self.guard else self.operands))

    @property
    def kind(self) -> str:
        """The last modifier, which is the type in most instructions."""
        return self.modifiers[-1]


@dataclass(frozen=True, slots=True)
class _MemoryLayout:
    """Arrays of a kernel in one memory, at byte offsets from its start.

    Attributes:
        offsets: where each begins.
        size_bytes: of those whose length the kernel declares.
        open_align: of those whose length a launch gives: all begin at one offset, behind the others; 0: none.
    """

    offsets: Mapping[str, int] = field(default_factory=dict)
    size_bytes: int = 0
    open_align: int = 0

    def with_array(self, name: str, align: int, length: int) -> "_MemoryLayout":
        """Return the layout with one more array, at the next multiple of `align`."""
        start = -(-self.size_bytes // align) * align
        return _MemoryLayout({**self.offsets, name: start}, start + length, self.open_align)

    def with_open_arrays(self, aligns: Mapping[str, int]) -> "_MemoryLayout":
        """Return the layout with arrays of a length that a launch gives, by name and alignment."""
        most = max(aligns.values(), default=0)
        return _MemoryLayout({**self.offsets, **dict.fromkeys(aligns, self._open_start(most))}, self.size_bytes, most)

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
    shared: _MemoryLayout
    local: _MemoryLayout
    labels: Mapping[str, int]
    code: tuple[Instruction, ...]


_LONGEST_STATEMENT = 20_000
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^()]*)\)(?:(?!\.entry)[^{])*\{")
_TARGET = re.compile(r"^[ \t]*\.target\s+(\w+)", re.MULTILINE)
_ARRAY = re.compile(r"\.(shared|local)\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]")
_OPEN_ARRAY = re.compile(r"\.extern\s+\.shared\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[\s*\]")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+)", re.DOTALL)
_SOURCE_LINE = re.compile(r"\s*\.(loc|file)\s")  # which ends without a semicolon
_LABEL = re.compile(r"([\w$]+):(?!:)\s*")
_STATEMENT = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+)\s*)?\]")
_INTEGER = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)U?")
_REAL = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")


def parse(text: str) -> Program:
    """Return the kernel in the text of a PTX module.

    Raises:
        InvalidInput: there is no kernel, or a line is not understood; the text names the line.
    """
    entry = _ENTRY.search(text)
    if entry is None:
        raise InvalidInput("PTX without a kernel: it has no line with .entry")
    found = _Body({}, shared=_module_arrays(text[: entry.start()]))
    opened = {name: int(align) for align, name in _OPEN_ARRAY.findall(re.sub(r"//[^\n]*", "", text))}
    for line, statement in _statements(text, entry.end()):
        found.add(line, statement)
    target = _TARGET.search(text)
    return Program(
        name=entry.group(1),
        target=target.group(1) if target else "",
        parameters=tuple(part.split()[-1].split("[")[0] for part in entry.group(2).split(",") if part.strip()),
        registers=found.registers,
        shared=found.shared.with_open_arrays(opened),
        local=found.local,
        labels=found.labels,
        code=(*found.code, Instruction(text.count("\n"), "ret", "ret", ())),
    )


def _module_arrays(text: str) -> _MemoryLayout:
    """Return the shared arrays that are declared before the kernel."""
    layout = _MemoryLayout()
    for space, align, name, length in _ARRAY.findall(re.sub(r"//[^\n]*", "", text)):
        if space == "shared":
            layout = layout.with_array(name, int(align), int(length))
    return layout


def _statements(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the statements of the kernel's body with the line they start in, without the braces of scopes."""
    line = text.count("\n", 0, start) + 1
    depth = 1
    kept = ""
    began = line
    for row in text[start:].split("\n"):
        for part in re.split(r"(;)", "" if _SOURCE_LINE.match(row) else row.split("//")[0]):
            if part == ";":
                yield began, kept.strip()
                kept = ""
            elif part.strip():
                began = began if kept else line
                kept = f"{kept} {part}".strip()
                if len(kept) > _LONGEST_STATEMENT:
                    about = f"begins more than {_LONGEST_STATEMENT} characters without ;"
                    raise InvalidInput(f"line {began} of the PTX {about}")
            kept, depth = _without_scopes(kept, depth)
            if depth == 0:
                return
        line += 1


def _without_scopes(kept: str, depth: int) -> tuple[str, int]:
    """Return text without the braces at its start and behind its labels, and how many scopes are open after them."""
    labels = ""
    position = 0
    while True:
        while position < len(kept) and (kept[position] in "{}" or kept[position].isspace()):
            depth += {"{": 1, "}": -1}.get(kept[position], 0)
            position += 1
            if depth == 0:
                return labels + kept[position:].strip(), depth
        label = _LABEL.match(kept, position)
        if label is None:
            return labels + kept[position:], depth
        labels += label.group()
        position = label.end()


@dataclass
class _Body:
    """The part of a kernel's body that has been parsed."""

    registers: dict[str, str]
    shared: _MemoryLayout
    local: _MemoryLayout = field(default_factory=_MemoryLayout)
    labels: dict[str, int] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)

    def add(self, line: int, statement: str) -> None:
        """Take one statement."""
        while label := _LABEL.match(statement):
            self.labels[label.group(1)] = len(self.code)
            statement = statement[label.end() :]
        if registers := _REGISTERS.match(statement):
            self._declare(registers.group(1), registers.group(2))
        elif array := _ARRAY.search(statement):
            space, align, name, length = array.groups()
            setattr(self, space, getattr(self, space).with_array(name, int(align), int(length)))
        elif statement and not statement.startswith(".pragma"):
            self.code.append(self._instruction(line, statement))

    def _declare(self, kind: str, names: str) -> None:
        for name in map(str.strip, names.split(",")):
            many = re.fullmatch(r"([%\w$]+)<(\d{1,9})>", name)
            count = int(many.group(2)) if many else 1
            if count > 100_000:
                raise InvalidInput(f"{count} registers {name}: expected at most 100000 of one name")
            declared = [f"{many.group(1)}{i}" for i in range(count)] if many else [name]
            self.registers.update(dict.fromkeys(declared, kind))

    def _instruction(self, line: int, statement: str) -> Instruction:
        found = _STATEMENT.fullmatch(statement)
        if found is None:
            raise InvalidInput(f"line {line} of the PTX is not understood: {statement[:80]}")
        negated, guard, name, operands = found.groups()
        opcode, *modifiers = name.split(".")
        under = None if guard is None else Negated(Register(guard)) if negated else Register(guard)
        read = tuple(self._operand(text) for text in _split(operands))
        return Instruction(line, statement, opcode, tuple(modifiers), read, under)

    def _operand(self, text: str) -> Operand:
        if text.startswith("{"):
            return tuple(map(self._operand, _split(text[1:-1])))
        if "|" in text:
            return tuple(self._operand(part.strip()) for part in text.split("|"))
        if address := _ADDRESS.fullmatch(text):
            return Address(self._operand(address.group(1)), int(address.group(2) or "0", 0))
        if text.startswith("!"):
            return Negated(self._operand(text[1:].strip()))
        if text in self.registers or text.startswith("%"):
            return Register(text)
        if real := _REAL.fullmatch(text):
            single, double = real.groups()
            if single:
                return np.uint32(int(single, 16)).view(np.float32)
            return np.uint64(int(double, 16)).view(np.float64)
        if _INTEGER.fullmatch(text):
            return int(text.rstrip("U"), 0)
        return text


def _split(text: str) -> list[str]:
    """Return the parts between commas outside of braces and brackets."""
    parts = re.findall(r"(?:[^,{\[]|\{[^{}]*\}|\[[^\[\]]*\])+", text)
    return [part.strip() for part in parts if part.strip()]
