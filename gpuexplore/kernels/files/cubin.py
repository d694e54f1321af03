"""Reads a cubin, an ELF file of machine code: its kernels, their registers, shared memory and stack.

Names and numbers of NVIDIA's sections and attributes are those that `nvdisasm` prints; layouts: the ELF-64 object file
format, https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from gpuexplore.core.errors import InvalidInput
from gpuexplore.kernels.geometry import Block

MAGIC = b"\x7fELF"
FATBIN = b"\x50\xed\x55\xba"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOBITS = 8  # a section that takes no bytes of the file


_ATTRIBUTES = {"most threads": 0x05, "required threads": 0x10, "frame size": 0x11, "registers": 0x2F}  # EIATTR_...


@dataclass(frozen=True, slots=True)
class CubinKernel:
    """A kernel of a cubin.

    Attributes:
        name: as the compiler mangled it.
        code: its machine code.
        registers_per_thread: 32-bit registers.
        shared_bytes: shared memory of a block, of fixed size.
        local_bytes: stack of a thread, where spilled registers lie too.
        block: threads of a block that it has to be launched with, or with at most; None: it says nothing.
    """

    name: str
    code: bytes
    registers_per_thread: int | None
    shared_bytes: int
    local_bytes: int | None
    block: Block | None


@dataclass(frozen=True, slots=True)
class Cubin:
    """A cubin: the file, what it is compiled for, e.g. `9.0`, and its kernels."""

    content: bytes
    compute_capability: str
    kernels: tuple[CubinKernel, ...]

    @property
    def target(self) -> str:
        """The target it is compiled for, e.g. `sm_90`."""
        return f"sm_{self.compute_capability.replace('.', '')}"


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    content: bytes
    size: int
    link: int


def read_cubin(content: bytes) -> Cubin:
    """Return what a cubin holds.

    Raises:
        InvalidInput: it is no cubin, is cut off, or holds no kernel.
    """
    if content[: len(FATBIN)] == FATBIN:
        raise InvalidInput("this is a fatbin: extract a cubin with `cuobjdump -xelf all FILE`")
    if not content.startswith(MAGIC) or len(content) < _HEADER.size:
        raise InvalidInput("this is not a cubin: it is not an ELF file")
    try:
        return _read(content)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput("this cubin is cut off or damaged: its tables point outside the file") from error


def _read(content: bytes) -> Cubin:
    _, _, machine, _, _, _, _, flags, *_ = _HEADER.unpack_from(content)
    cuda = 190  # EM_CUDA
    if content[4] != 2 or machine != cuda:
        raise InvalidInput(f"this ELF file is for machine {machine}, not for an NVIDIA GPU: expected machine {cuda}")
    number = flags >> 8 & 0xFF if content[8] >= 8 else flags & 0xFF  # where depends on the version of the ABI
    sections = _sections(content)
    kernels = tuple(_kernels(sections, number))
    if not kernels:
        raise InvalidInput("this cubin has no kernel")
    return Cubin(content, f"{number // 10}.{number % 10}", kernels)


def _sections(content: bytes) -> list[_Section]:
    *_, start, _, _, _, _, size, count, names = _HEADER.unpack_from(content)
    if size != _SECTION.size:
        raise ValueError("size of a section header")
    rows = [_SECTION.unpack_from(content, start + index * size) for index in range(count)]
    if sum(row[5] for row in rows if row[1] != _NOBITS) > len(content):
        raise ValueError("sections that overlap")  # each would be copied
    strings = _bytes(content, rows[names])
    return [
        _Section(_text(strings, row[0]), row[1], b"" if row[1] == _NOBITS else _bytes(content, row), row[5], row[6])
        for row in rows
    ]


def _bytes(content: bytes, row: tuple[int, ...]) -> bytes:
    start, size = row[4:6]
    if start + size > len(content):
        raise ValueError("a section beyond the end of the file")
    return content[start : start + size]


def _text(strings: bytes, start: int) -> str:
    longest = 16_384  # of a mangled kernel
    return strings[start : strings.index(b"\0", start, start + longest)].decode()


def _kernels(sections: list[_Section], number: int) -> Iterator[CubinKernel]:
    named = {section.name: section for section in sections}
    table = named.get(".symtab")
    symbols = [*struct.iter_unpack("<IBBHQQ", table.content)] if table else []
    of_all = named[".nv.info"].content if ".nv.info" in named else b""
    by_symbol = {(kind, words[0]): words[1] for kind, words in _attributes(of_all) if len(words) == 2}
    seen = {""}
    left_bytes = sum(len(section.content) for section in sections)
    for index, (name_at, info, other, where, start, size) in enumerate(symbols):
        is_kernel = info & 0xF == 2 and other & 0x10  # a function with the bit of an entry
        if not is_kernel or not 0 < where < len(sections):
            continue
        name = _text(sections[table.link].content, name_at) if table else ""
        if name in seen:
            continue
        seen.add(name)
        left_bytes -= min(size, len(sections[where].content))
        if left_bytes < 0:
            raise ValueError("kernels that overlap")
        own = named.get(f".nv.info.{name}")
        yield CubinKernel(
            name=name,
            code=sections[where].content[start : start + size],
            registers_per_thread=by_symbol.get((_ATTRIBUTES["registers"], index)),
            shared_bytes=_shared_bytes(named.get(f".nv.shared.{name}"), number),
            local_bytes=by_symbol.get((_ATTRIBUTES["frame size"], index)),
            block=_block(dict(_attributes(own.content)) if own else {}),
        )


def _shared_bytes(section: _Section | None, number: int) -> int:
    """Return the bytes of a section without the system's KiB, which it counts from sm_90 on."""
    if section is None:
        return 0
    return max(0, section.size - (1024 if number >= 90 else 0))


def _block(attributes: dict[int, tuple[int, ...]]) -> Block | None:
    block = attributes.get(_ATTRIBUTES["required threads"]) or attributes.get(_ATTRIBUTES["most threads"])
    return block if block and len(block) == 3 and prod(block) else None


def _attributes(content: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the attributes that are lists of words, by their number; others hold their value in two bytes."""
    offset = 0
    while offset + 4 <= len(content):
        form, kind, size = struct.unpack_from("<BBH", content, offset)
        offset += 4
        if form == 0x04:  # EIFMT_SVAL
            yield kind, struct.unpack_from(f"<{size // 4}I", content, offset)
            offset += size
