"""Registers of a warp: one row of 32 numbers each, seen as every type that an instruction uses it as."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.geometry import WARP

# PTX's types of one number as NumPy's, and their widening to float64.


Values = npt.NDArray[Any]  # one element for each lane
FLOATS = ("f16", "bf16", "f32", "f64")
_KINDS = {"s": "i", "u": "u", "b": "u"}


@dataclass(frozen=True)
class Scalar:
    """A type such as `f32`: its letter (`f`, `s`, `u`, `b`, or `p` for a predicate) and its bits."""

    name: str
    letter: str
    bits: int

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """What holds it in NumPy: bits as unsigned integers, and so bf16 and tf32, which NumPy does not know."""
        if self.letter == "p":
            return np.dtype(np.bool_)
        if self.name in ("f16", "f32", "f64"):
            return np.dtype(f"f{self.bits // 8}")
        return np.dtype(f"{_KINDS.get(self.letter, 'u')}{self.bits // 8}")

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type that arithmetic is done in."""
        return self.name in FLOATS


@lru_cache
def scalar(name: str) -> Scalar:
    """Return the type called `name`, e.g. `s64`.

    Raises:
        Unsupported: there is none, or it holds several numbers.
    """
    if name == "pred":
        return Scalar(name, "p", 1)
    if name in ("bf16", "tf32"):
        return Scalar(name, "f", 16 if name == "bf16" else 32)
    found = re.fullmatch(r"([fsub])(8|16|32|64)", name)
    if found is None or name == "f8":
        raise Unsupported(f"the type .{name}")
    return Scalar(name, found.group(1), int(found.group(2)))


def widened(kind: Scalar, values: Values) -> npt.NDArray[np.float64]:
    """Return floating-point numbers exactly, as float64."""
    if kind.name == "bf16":
        values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float64)


LANES = WARP


class RegisterFile:
    """Gives each pair of a register and a type a slot, while a kernel is decoded; then makes the slots of warps."""

    def __init__(self, declared: Mapping[str, str]) -> None:
        self._kinds = {name: scalar(kind) for name, kind in declared.items()}
        self._rows: dict[str, tuple[np.dtype[Any], int]] = {}
        heights: dict[np.dtype[Any], int] = {}
        for name, kind in self._kinds.items():
            bits = _bits_of(kind)
            self._rows[name] = bits, heights.get(bits, 0)
            heights[bits] = heights.get(bits, 0) + 1
        self._heights = heights
        self._slots: dict[tuple[str, np.dtype[Any]], int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def kind(self, name: str) -> Scalar:
        """Return the declared type of a register."""
        return self._kinds[name]

    def slot(self, name: str, dtype: np.dtype[Any]) -> int:
        """Return where warps keep a register seen as `dtype`: of a wider register its low bits."""
        return self._slots.setdefault((name, dtype), len(self._slots))

    def slots(self) -> list[Values]:
        """Return the registers of one more warp, zero in every lane."""
        memory = {bits: np.zeros((height, LANES), bits) for bits, height in self._heights.items()}
        return [_seen_as(memory[self._rows[name][0]][self._rows[name][1]], dtype) for name, dtype in self._slots]


def _bits_of(kind: Scalar) -> np.dtype[Any]:
    return kind.dtype if kind.letter == "p" else np.dtype(f"u{kind.bits // 8}")


def _seen_as(row: Values, dtype: np.dtype[Any]) -> Values:
    if dtype == row.dtype:
        return row
    return row.view(dtype)[:: row.dtype.itemsize // dtype.itemsize]
