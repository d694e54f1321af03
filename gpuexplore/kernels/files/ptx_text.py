"""The kernels of a PTX module, from its text before it is compiled, and the arguments typed for them.

Directives: https://docs.nvidia.com/cuda/parallel-thread-execution/#directives
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpuexplore.core import InvalidInput, read_number, read_whole
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.geometry import Block

# A file has up to 4 MiB: each of these looks at a character a few times at most, however often it does not match.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_VERSION = re.compile(r"^[ \t]*\.version\s+(\d+\.\d+)", re.MULTILINE)
_TARGET = re.compile(r"^[ \t]*\.target\s+sm_(\d+)(\d)([af]?)\b", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$%]+)([^{;]*)")  # its parameters and directives stand before its body
_NAME = re.compile(r"[\w$%]+")
_THREADS = re.compile(r"\.(reqntid|maxntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_LAUNCH = re.compile(r"\.(maxnreg|minnctapersm)\s+(\d+)")
_REALLOCATED = re.compile(r"\bsetmaxnreg\.(?:inc|dec)\.[\w.:]{1,40}\s+(\d+)")
_KIND = re.compile(r"\btcgen05\.mma\.[\w.:]{0,80}?kind::(f16|tf32)\b")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)")
_OPEN_ARRAY = re.compile(r"\.extern\s+\.shared(?:\s+(?!\.extern)\.\w+|\s+\d+)*\s+([\w$%]+)\s*\[\s*\]")
_FUNCTION = re.compile(r"(?=\.entry\s|\.func\s)")


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """A kernel of a PTX module.

    Attributes:
        name: as the compiler mangled it.
        block: threads of a block that it says it is launched with, or with at most; None: it says nothing.
        parameters: the type of each, e.g. `u64`; a structure is `b8`.
        has_open_array: whether it uses shared memory whose size only a launch knows, itself or by a function.
        reallocated: registers of a thread that its warps ask for while they run (`setmaxnreg`), ascending.
        is_tf32: whether its products of tensor memory are in tf32, which opcodes of machine code do not tell from fp16.
        launch_registers: of a thread of a kernel that asks so; None: it does not say, and `setmaxnreg` does nothing.
    """

    name: str
    block: Block | None
    parameters: tuple[str, ...]
    has_open_array: bool
    reallocated: tuple[int, ...] = ()
    launch_registers: int | None = None
    is_tf32: bool = False


@dataclass(frozen=True, slots=True)
class PtxText:
    """A PTX module.

    Attributes:
        text: all of it.
        version: of PTX, e.g. `8.8`.
        compute_capability: the least that it is written for, e.g. `8.0`.
        suffix: `a` for this compute capability only, `f` for its family; empty: for every later one too.
        kernels: in their order.
    """

    text: str
    version: str
    compute_capability: str
    suffix: str
    kernels: tuple[PtxKernel, ...]

    def alone(self, name: str) -> str:
        """Return the text without the kernels other than `name`, whose lines stay empty."""
        starts = [_line_start(self.text, found.start()) for found in _ENTRY.finditer(self.text)]
        index = next(i for i, found in enumerate(_ENTRY.finditer(self.text)) if found.group(1) == name)
        gap = "\n" * self.text.count("\n", starts[0], starts[index])
        return self.text[: starts[0]] + gap + self.text[starts[index] :]

    @property
    def target(self) -> str:
        """The target it is written for, e.g. `sm_90a`."""
        return f"sm_{self.compute_capability.replace('.', '')}{self.suffix}"


def read_ptx(text: str) -> PtxText:
    """Return what a PTX module says.

    Raises:
        InvalidInput: the text is no PTX, or holds no kernel.
    """
    bare = _COMMENT.sub("", text)
    version = _VERSION.search(bare)
    target = _TARGET.search(bare)
    if version is None or target is None:
        missing = ".version" if version is None else ".target sm_..."
        raise InvalidInput(f"this is not PTX: it has no line with {missing}")
    kernels = tuple(_kernels(bare))
    if not kernels:
        raise InvalidInput("PTX without a kernel: it has no line with .entry")
    major, minor, suffix = target.groups()
    return PtxText(
        text=text,
        version=version.group(1),
        compute_capability=f"{major}.{minor}",
        suffix=suffix,
        kernels=tuple(dict.fromkeys(kernels)),
    )


def _kernels(bare: str) -> Iterator[PtxKernel]:
    """Yield the kernels in a text without comments."""
    _, *parts = _FUNCTION.split(bare)
    opened = set(_OPEN_ARRAY.findall(bare))
    by_functions = any(_names(part) & opened for part in parts if not _ENTRY.match(part))
    for part in parts:
        if entry := _ENTRY.match(part):
            name, head = entry.groups()
            uses = by_functions or bool(_names(part) & opened)
            found = {
                kind: tuple(int(length) for length in lengths if length) for kind, *lengths in _THREADS.findall(head)
            }
            block = found.get("reqntid") or found.get("maxntid")
            block = block if block and prod(block) else None
            asked = tuple(sorted({int(count) for count in _REALLOCATED.findall(part)}))
            is_tf32 = set(_KIND.findall(part)) == {"tf32"}
            registers = _launch_registers(head, block, asked) if asked else None
            yield PtxKernel(name, block, tuple(_PARAMETER.findall(head)), uses, asked, registers, is_tf32)


def _names(text: str) -> set[str]:
    """Return the names in a function's text, without the arrays that are declared after it for others."""
    return set(_NAME.findall(_OPEN_ARRAY.sub("", text)))


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1


def _launch_registers(head: str, block: Block | None, asked: tuple[int, ...]) -> int | None:
    """Return what ptxas gives a thread that reallocates: as named, else the most with which the named blocks fit."""
    found = {kind: int(count) for kind, count in _LAUNCH.findall(head)}
    if "maxnreg" in found or not block or not found.get("minnctapersm"):
        return found.get("maxnreg")
    registers = 65_536  # of a multiprocessor of each GPU that has `setmaxnreg`
    return min(registers // (prod(block) * found["minnctapersm"]) // 8 * 8, asked[-1])


_MOST_ELEMENTS = 2**20
_FILLS: dict[str, Callable[[int], np.typing.NDArray[np.float64]]] = {
    "zeros": np.zeros,
    "ones": np.ones,
    "arange": lambda count: np.arange(count, dtype=float),
    "randn": lambda count: np.random.default_rng(0).standard_normal(count),  # what is run again gives the same
}
_DTYPES: dict[str, DType | None] = {
    **{dtype.name: dtype for dtype in DTYPES.values() if not dtype.matrix_only},
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
}
_ACCEPTED = f"NAME=FILL:DTYPE:LENGTH with {', '.join(_FILLS)} and {', '.join(_DTYPES)}, or NAME=NUMBER"


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One argument of a launch.

    Attributes:
        name: what its user calls it.
        array: its elements as they are stored; None of a number.
        dtype: of the array; None of whole numbers, and of a number.
        number: as it was typed; empty of an array.
    """

    name: str
    array: np.typing.NDArray[Any] | None = None
    dtype: DType | None = None
    number: str = ""

    def values(self, stored: np.typing.NDArray[Any]) -> np.typing.NDArray[Any]:
        """Return the numbers that an array of its dtype holds."""
        return self.dtype.widen(stored) if self.dtype else stored


def read_argument(text: str) -> KernelArgument:
    """Return the argument that was typed, e.g. `a=randn:fp32:256` or `n=256`.

    Raises:
        InvalidInput: it is neither an array nor a number.
    """
    name, equals, value = text.partition("=")
    fill, *rest = value.split(":")
    is_number = not rest and read_number(value) is not None
    if not equals or not name.strip() or not (is_number or len(rest) == 2):
        raise InvalidInput.of("argument", text, _ACCEPTED)
    if is_number:
        return KernelArgument(name, number=value.strip())
    kind, length = rest
    count = read_whole(length)
    if fill not in _FILLS or kind not in _DTYPES or not count or count > _MOST_ELEMENTS:
        raise InvalidInput.of("argument", text, f"{_ACCEPTED}, and lengths from 1 to {_MOST_ELEMENTS}")
    dtype = _DTYPES[kind]
    numbers = _FILLS[fill](count)
    return KernelArgument(name, dtype.round(numbers) if dtype else numbers.astype(kind), dtype)


def bits_of(argument: KernelArgument, kind: str) -> int:
    """Return the bits of a number as a parameter of the type `kind`.

    Raises:
        InvalidInput: the parameter is no number, or takes whole ones.
    """
    if kind in ("f16", "f32", "f64"):
        encoded = np.array(float(argument.number), f"<f{int(kind[1:]) // 8}").tobytes()
        return int.from_bytes(encoded, "little")
    number = _whole(argument.number)
    if kind == "b8" or kind[0] not in "bsu" or number is None:
        accepted = (
            "no value: structures are not supported" if kind == "b8" else f"whole numbers, as its type is .{kind}"
        )
        raise InvalidInput.of(f"argument {argument.name}", argument.number, accepted)
    return number % (1 << int(kind[1:]))


def _whole(text: str) -> int | None:
    try:
        return int(text)  # all of its 64 bits
    except ValueError:
        return int(float(text)) if float(text).is_integer() else None
