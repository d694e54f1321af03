"""Numbers of which any block can be made anywhere: inputs that are too large to be drawn on the host and moved.

The number at a place is a random one of 65,536 quantiles of the normal distribution, rounded to the dtype; which one, a
hash of the place and a seed tells. Whole numbers are the same in every library: host and device draw the same bits.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import prod
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import DType, Stored
from gpuexplore.model import DataMode

QUANTILES = 2**16
AT_A_TIME = 2**18  # on the host: what a hash needs on the way stays in a cache
BITS_32 = 0xFFFFFFFF
FACTOR = 0x45D9F3B  # its product with 32 bits fits 63: nothing overflows in signed integers
CONSTANTS: dict[DataMode, float] = {"zeros": 0.0, "ones": 1.0}


@dataclass(frozen=True, slots=True)
class DrawnInput:
    """An input that is nowhere until a block of it is made.

    Attributes:
        shape: of the whole.
        dtype: of its numbers.
        data: what they are.
        keys: two numbers of 32 bits that decide them.
        first: the place of its first number, in an input of which it is a part.
    """

    shape: tuple[int, ...]
    dtype: DType
    data: DataMode
    keys: tuple[int, int]
    first: int = 0

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)

    def at(self, places: npt.NDArray[np.int64]) -> Stored:
        """Return the numbers at flat `places`, in the storage of the dtype."""
        table = quantiles(self.dtype, self.data)
        found = np.empty(places.shape, table.dtype)
        flat, wanted = found.reshape(-1), places.reshape(-1)
        for start in range(0, flat.size, AT_A_TIME):
            some = slice(start, start + AT_A_TIME)
            flat[some] = table[numbers_of(wanted[some] + self.first, self.keys)]
        return found

    def part(self, shape: tuple[int, ...], start: int) -> "DrawnInput":
        """Return the numbers from flat place `start` on."""
        return replace(self, shape=shape, first=self.first + start)


def drawn(shape: tuple[int, ...], dtype: DType, data: DataMode, *, seed: int, number: int) -> DrawnInput:
    """Return input `number` of a case, which `seed` decides."""
    first, second = map(int, np.random.SeedSequence((seed, number)).generate_state(2))
    return DrawnInput(shape, dtype, data, (first, second))


def numbers_of(places: Any, keys: tuple[int, int]) -> Any:
    """Return which quantile is at each of `places`, 64-bit integers below 2**36 of NumPy or of torch."""
    for key in keys:
        places = places ^ key
        for _ in range(2):
            places = (places >> 16 ^ places) * FACTOR & BITS_32
        places = places >> 16 ^ places
    return places >> 16


@cache
def quantiles(dtype: DType, data: DataMode) -> Stored:
    """Return the numbers that are drawn from, in the storage of `dtype`."""
    if data != "normal":
        return dtype.round(np.full(QUANTILES, CONSTANTS[data]))
    inverse = NormalDist().inv_cdf
    return dtype.round(np.array([inverse((place + 0.5) / QUANTILES) for place in range(QUANTILES)]))
