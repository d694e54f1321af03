"""Four nested loops on one thread."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def _strided_sum(storage: Any, lengths: Any, strides: Any, out: Any) -> None:
    """Write the sum of the elements to `out` (1).

    Args:
        storage: unsigned integers of 32 bits.
        lengths: of four axes.
        strides: of four axes, in elements; unsigned, for the sign of an index would have to be looked at.
        out: an unsigned integer of 64 bits.
    """
    found = np.uint64(0)
    for i in range(lengths[0]):
        for j in range(lengths[1]):
            for k in range(lengths[2]):
                start = i * strides[0] + j * strides[1] + k * strides[2]
                for m in range(lengths[3]):
                    found += storage[start + m * strides[3]]
    out[0] = found


def build(
    storage: np.typing.NDArray[np.uint32],
    lengths: np.typing.NDArray[np.uint64],
    strides: np.typing.NDArray[np.uint64],
    device: str,
) -> tuple[Callable[[], object], Callable[[], np.typing.NDArray[np.uint64]]]:
    """Return a call that reads every element, and what returns their sum (1) afterwards."""
    out = np.zeros(1, np.uint64)
    return lambda: _strided_sum(storage, lengths, strides, out), lambda: out
