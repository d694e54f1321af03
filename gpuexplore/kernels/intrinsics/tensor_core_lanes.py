"""What `ldmatrix` and `mma.sync` do, lane by lane, for Numba's simulator.

The tables are the PTX ISA's: which element of a fragment each lane of a warp holds.
"""

from typing import Any

import numpy as np

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


def multiplier(name: str) -> Any:
    """Return the function that adds a product of fragments of a dtype to `sums[s:s + 4]`."""

    def multiply_add(sums: Any, s: Any, a: Any, i: Any, b: Any, j: Any) -> None:
        held = from_every_lane((_words(a, i, 4), _words(b, j, 2)))
        group, pair = divmod(this_lane(), 4)
        for c in range(4):
            row = [held[4 * group + t][0][r + c // 2] for r in (0, 2) for t in range(4)]
            column = [held[4 * (2 * pair + c % 2) + t][1][r] for r in (0, 1) for t in range(4)]
            sums.reshape(-1)[s + c] += np.dot(_terms(name, row), _terms(name, column))

    return multiply_add


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
