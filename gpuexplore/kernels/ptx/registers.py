"""Registers of a warp: one row of 32 numbers each, seen as every type that an instruction uses it as."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.ptx.scalars import Scalar, Values, scalar

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
