"""Arguments of a kernel as they are typed: arrays by how they are filled, dtype and length, and numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.units import read_number, read_whole

_MOST_ELEMENTS = 2**20
_FILLS: dict[str, Callable[[int], npt.NDArray[np.float64]]] = {
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
    array: npt.NDArray[Any] | None = None
    dtype: DType | None = None
    number: str = ""

    def values(self, stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
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
