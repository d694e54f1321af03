"""What `ldmatrix` and `mma.sync` do, lane by lane, for Numba's simulator.

The tables are the PTX ISA's: which element of a fragment each lane of a warp holds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuexplore.kernels.intrinsics.vectors import read
from gpuexplore.kernels.intrinsics.warps import from_every_lane, this_lane


def load_matrices(into: Any, at: Any, tile: Any, place: Any) -> None:
    """Put four 8 x 8 matrices into registers `into[at:at + 4]`; lane i points to row i % 8 of matrix i // 8."""
    for i, matrix in enumerate(_matrices(tile, place)):
        into.reshape(-1)[at + i] = matrix.view(np.uint32).reshape(-1)[this_lane()]


def load_transposed(into: Any, at: Any, tile: Any, place: Any) -> None:
    """Do as `load_matrices` does with each of the four matrices transposed."""
    for i, matrix in enumerate(_matrices(tile, place)):
        into.reshape(-1)[at + i] = np.ascontiguousarray(matrix.T).view(np.uint32).reshape(-1)[this_lane()]


def _matrices(tile: Any, place: Any) -> list[Any]:
    """Return the four matrices of 8 x 8 16-bit elements whose rows the lanes point to."""
    halves, size = tile.reshape(-1).view(np.uint16), tile.dtype.itemsize // 2
    rows = []
    for start in from_every_lane(int(place)):
        if start * size % 8:
            raise IndexError(f"row {start} of a matrix does not start at a multiple of 16 bytes")
        rows.append(halves[start * size : start * size + 8])
    return [np.array(rows[8 * i : 8 * i + 8]) for i in range(4)]


def fragment_loader(spots: Sequence[tuple[int, int]], *, transposed: bool) -> Any:
    """Return the function that loads four 8 x 8 matrices from each spot, one after the other, into registers."""
    load = load_transposed if transposed else load_matrices

    def load_all(into: Any, tile: Any, places: Any, first: Any) -> None:
        for number, (which, further) in enumerate(spots):
            load(into, 4 * number, tile, first + places[which] + further)

    return load_all


def number_loader(spots: Sequence[tuple[int, int]]) -> Any:
    """Return the function that loads an element from each spot into registers."""

    def load_all(into: Any, tile: Any, places: Any, first: Any) -> None:
        for number, (which, further) in enumerate(spots):
            into[number] = read(tile, first + places[which] + further)

    return load_all


def multiplier(name: str, down: int = 1, across: int = 1) -> Any:
    """Return the function that adds products of fragments of a dtype to `sums[s:]`, `down` times `across`."""

    def multiply_add(sums: Any, s: Any, a: Any, i: Any, b: Any, j: Any) -> None:
        held = from_every_lane((_words(a, i, 4 * down), _words(b, j, 2 * across)))
        group, pair = divmod(this_lane(), 4)
        rows, columns = np.zeros((2 * down, 4 * _TERMS[name])), np.zeros((2 * across, 4 * _TERMS[name]))
        for row in range(2 * down):  # of this lane: two of each fragment
            registers = [4 * (row // 2) + row % 2 + r for r in (0, 2)]
            rows[row] = _terms(name, [held[4 * group + t][0][r] for r in registers for t in range(4)])
        for column in range(2 * across):
            lane, registers = 4 * (2 * pair + column % 2), [2 * (column // 2) + r for r in (0, 1)]
            columns[column] = _terms(name, [held[lane + t][1][r] for r in registers for t in range(4)])
        found = (rows @ columns.T).reshape(down, 2, across, 2).transpose(0, 2, 1, 3)
        sums.reshape(-1)[s : s + found.size] += found.ravel().astype(np.float32)

    return multiply_add


_TERMS = {"tf32": 2, "bf16": 4, "fp16": 4}  # that a lane holds of a row


def _words(fragment: Any, start: int, count: int) -> list[int]:
    words = fragment.reshape(-1).view(np.uint32)[start : start + count]
    return [int(word) for word in words]


def _terms(name: str, words: list[int]) -> Any:
    """Return the numbers that registers hold: one TF32 or two 16-bit ones in each."""
    bits = np.array(words, np.uint32)
    if name == "tf32":
        return (bits & np.uint32(0xFFFFE000)).view(np.float32)
    halves = bits.view(np.uint16)
    if name == "fp16":
        return halves.view(np.float16).astype(np.float32)
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
