"""The parts of a large output that are checked, where all of it would take longer than what is measured."""

import numpy as np

from gpuexplore.operations.contract import Array, Arrays

CHECK_WHOLE_UP_TO = 2**30  # multiply-adds: a float64 reference of this size takes some tens of milliseconds
EVERY = slice(None)

Parts = tuple[tuple[tuple[slice | Array, ...], Arrays], ...]


def lines(length: int, generator: np.random.Generator) -> Array:
    """Return one random index of every block of 32, the first and the last index too."""
    starts = np.arange(0, length, _apart(length))
    ends = np.minimum(np.append(starts[1:], length), length)
    return np.unique(np.concatenate(([0, length - 1], generator.integers(starts, ends))))


def most_lines(length: int) -> int:
    """Return how many indices `lines` returns at most."""
    return min(length, -(-length // _apart(length)) + 2)


def _apart(length: int) -> int:
    """Return how far apart lines are: at most 32, as no tile of a kernel is smaller, for 16 lines where there are."""
    return max(1, min(32, length // 16))


def parts_of_product(inputs: Arrays, generator: np.random.Generator) -> Parts:
    """Return rows of (..., m, k) @ (..., k, n) that together cross every tile and edge."""
    a, b = inputs
    every = (EVERY,) * (a.ndim - 2)
    if a.size * b.shape[-1] <= CHECK_WHOLE_UP_TO and a.size // a.shape[-1] * b.shape[-1] <= 2**26:
        return (((*every, EVERY, EVERY), inputs),)
    rows = lines(a.shape[-2], generator)
    return (((*every, rows, EVERY), (a[..., rows, :], b)),)
