"""Arguments of a kernel as they are typed: arrays by how they are filled, dtype and length, and numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.units import read_number, read_whole

MOST_ELEMENTS = 2**20
SEED = 0  # of random numbers: what is run again gives the same
FILLS = ("zeros", "ones", "arange", "randn")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FORMATS = {dtype.name: dtype for dtype in DTYPES.values() if not dtype.matrix_only}
ACCEPTED = f"NAME=FILL:DTYPE:LENGTH with {', '.join(FILLS)} and {', '.join((*FORMATS, *INTEGERS))}, or NAME=NUMBER"
_FLOATS: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


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
    if not equals or not name.strip() or len(rest) not in (0, 2):
        raise InvalidInput.of("argument", text, ACCEPTED)
    if not rest:
        if read_number(value) is None:
            raise InvalidInput.of("argument", text, ACCEPTED)
        return KernelArgument(name, number=value.strip())
    count = read_whole(rest[1])
    if fill not in FILLS or rest[0] not in (*FORMATS, *INTEGERS) or not count or count > MOST_ELEMENTS:
        raise InvalidInput.of("argument", text, f"{ACCEPTED}, and lengths from 1 to {MOST_ELEMENTS}")
    dtype = FORMATS.get(rest[0])
    numbers = _filled(fill, count)
    return KernelArgument(name, dtype.round(numbers) if dtype else numbers.astype(rest[0]), dtype)


def bits_of(argument: KernelArgument, kind: str) -> int:
    """Return the bits of a number as a parameter of the type `kind`.

    Raises:
        InvalidInput: the parameter is no number, or takes whole ones.
    """
    if kind in _FLOATS:
        encoded: bytes = _FLOATS[kind](float(argument.number)).tobytes()
        return int.from_bytes(encoded, "little")
    number = _whole(argument.number)
    if kind == "b8" or kind[0] not in "bsu" or number is None:
        accepted = "none: a structure cannot be given" if kind == "b8" else f"whole numbers, for its type is .{kind}"
        raise InvalidInput.of(f"argument {argument.name}", argument.number, accepted)
    return number % (1 << int(kind[1:]))


def _whole(text: str) -> int | None:
    try:
        return int(text)  # all of its 64 bits
    except ValueError:
        return int(float(text)) if float(text).is_integer() else None


def _filled(fill: str, count: int) -> npt.NDArray[np.float64]:
    if fill == "randn":
        return np.random.default_rng(SEED).standard_normal(count)
    return np.arange(count, dtype=float) if fill == "arange" else np.full(count, float(fill == "ones"))
