"""The parser of a PTX module with one kernel."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from gpuexplore.core.errors import InvalidInput
from gpuexplore.kernels.ptx.program import (
    Address,
    Instruction,
    MemoryLayout,
    Negated,
    Operand,
    Program,
    Register,
)

LONGEST_STATEMENT, MOST_REGISTERS = 20_000, 100_000
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^()]*)\)(?:(?!\.entry)[^{])*\{")
_TARGET = re.compile(r"^[ \t]*\.target\s+(\w+)", re.MULTILINE)
_ARRAY = re.compile(r"\.(shared|local)\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[(\d+)\]")
_OPEN_ARRAY = re.compile(r"\.extern\s+\.shared\s+\.align\s+(\d+)\s+\.b8\s+([\w$]+)\[\s*\]")
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+)", re.DOTALL)
_SOURCE_LINE = re.compile(r"\s*\.(loc|file)\s")  # which ends without a semicolon
_IGNORED = (".pragma",)
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
        raise InvalidInput("PTX without a kernel: a line with .entry is looked for")
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


def _module_arrays(text: str) -> MemoryLayout:
    """Return the shared arrays that are declared before the kernel."""
    layout = MemoryLayout()
    for space, align, name, length in _ARRAY.findall(re.sub(r"//[^\n]*", "", text)):
        if space == "shared":
            layout = layout.with_array(name, int(align), int(length))
    return layout


def _statements(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield what ends with a semicolon in the kernel's body, with the line it starts in; braces of scopes left out."""
    line, depth = text.count("\n", 0, start) + 1, 1
    kept, began = "", line
    for row in text[start:].split("\n"):
        for part in re.split(r"(;)", "" if _SOURCE_LINE.match(row) else row.split("//")[0]):
            if part == ";":
                yield began, kept.strip()
                kept = ""
            elif part.strip():
                began = began if kept else line
                kept = f"{kept} {part}".strip()
                if len(kept) > LONGEST_STATEMENT:
                    raise InvalidInput(
                        f"line {began} of the PTX begins more than {LONGEST_STATEMENT} characters without ;"
                    )
            kept, depth = _without_scopes(kept, depth)
            if depth == 0:
                return
        line += 1


def _without_scopes(kept: str, depth: int) -> tuple[str, int]:
    """Return text without the braces at its start and behind its labels, and how many scopes are open after them."""
    labels, position = "", 0
    while True:
        while position < len(kept) and (kept[position] in "{}" or kept[position].isspace()):
            depth += {"{": 1, "}": -1}.get(kept[position], 0)
            position += 1
            if depth == 0:
                return labels + kept[position:].strip(), depth
        label = _LABEL.match(kept, position)
        if label is None:
            return labels + kept[position:], depth
        labels, position = labels + label.group(), label.end()


@dataclass
class _Body:
    """What is read of a kernel's body so far."""

    registers: dict[str, str]
    shared: MemoryLayout
    local: MemoryLayout = field(default_factory=MemoryLayout)
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
        elif statement and not statement.startswith(_IGNORED):
            self.code.append(self._instruction(line, statement))

    def _declare(self, kind: str, names: str) -> None:
        for name in map(str.strip, names.split(",")):
            many = re.fullmatch(r"([%\w$]+)<(\d{1,9})>", name)
            count = int(many.group(2)) if many else 1
            if count > MOST_REGISTERS:
                raise InvalidInput(f"{count} registers {name}: expected at most {MOST_REGISTERS} of one name")
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
        return _constant(text)


def _constant(text: str) -> Operand:
    if real := _REAL.fullmatch(text):
        single, double = real.groups()
        size_bytes = 4 if single else 8
        number: np.float32 | np.float64 = np.array([int(single or double, 16)], f"u{size_bytes}").view(
            f"f{size_bytes}"
        )[0]
        return number
    if _INTEGER.fullmatch(text):
        return int(text.rstrip("U"), 0)
    return text


def _split(text: str) -> list[str]:
    """Return the parts between commas outside of braces and brackets."""
    parts = re.findall(r"(?:[^,{\[]|\{[^{}]*\}|\[[^\[\]]*\])+", text)
    return [part.strip() for part in parts if part.strip()]
