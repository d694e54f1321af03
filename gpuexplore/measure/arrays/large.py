"""Cases that are too large to make and to check on the host: inputs that are drawn on their device, and cut in blocks.

Any block of such an input can be made anywhere. The number at an index is a random one of 65,536 quantiles of the
normal distribution, rounded to the dtype, chosen by a hash of the index and a seed. Integers are the same in every
library: host and device draw the same bits.

Sums of neighbours in an output with random signs: a check of all of a product for a fraction of its FLOPs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import prod
from statistics import NormalDist
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DType, Stored
from gpuexplore.core.model import DataMode, Shape
from gpuexplore.operations.contract import Array, Arrays, Operation

TOGETHER = 32  # elements of a sum: of a product they cost a 32nd of its FLOPs


@dataclass(frozen=True)
class Sums:
    """The expected sums of neighbours along an axis, with signs that no implementation knows.

    Attributes:
        axis: of the output.
        signs: +1 or -1 for each index along it.
        expected: the sums.
        scale: √Σt² of all their terms.
    """

    axis: int
    signs: Array
    expected: Array
    scale: Array

    @cached_property
    def starts(self) -> np.typing.NDArray[np.int64]:
        """The first index of each sum along the axis."""
        return np.arange(0, len(self.signs), TOGETHER)

    @cached_property
    def ends(self) -> np.typing.NDArray[np.int64]:
        """The index after the last of each sum."""
        return np.append(self.starts[1:], len(self.signs))

    def of(self, values: Array) -> Array:
        """Return the sums of an output, or of some of its rows."""
        return _folded(values, self.signs, self.axis)

    def of_squares(self, values: Array) -> Array:
        """Return the sums of the squares of the same elements."""
        return _folded(np.square(values), np.ones_like(self.signs), self.axis)


def sums_of(operation: Operation, inputs: Arrays, seed: int) -> Sums | None:
    """Return the sums that check an output as a whole, from the inputs in float64; None where it is not linear."""
    if operation.linear is None:
        return None
    of_input, of_output = operation.linear
    *given, last = inputs
    signs = np.random.default_rng((seed, TOGETHER)).choice((-1.0, 1.0), last.shape[of_input])
    together = _folded(last, signs, of_input)
    expected = operation.reference(*given, together)
    scale: Any = operation.scale(expected, *given, together)
    return Sums(of_output % expected.ndim, signs, expected, np.broadcast_to(scale, expected.shape))


def _folded(values: Array, factors: Array, axis: int) -> Array:
    """Return the sums of neighbours along `axis`, each times its factor."""
    lengths = np.ones(values.ndim, int)
    lengths[axis] = -1
    return np.add.reduceat(values * factors.reshape(lengths), np.arange(0, len(factors), TOGETHER), axis=axis)


CONSTANTS: dict[DataMode, float] = {"zeros": 0.0, "ones": 1.0}


@dataclass(frozen=True, slots=True)
class DrawnInput:
    """An input that is not stored: any block of it is made when needed.

    Attributes:
        shape: of the whole.
        dtype: of its numbers.
        data: their distribution.
        keys: two numbers of 32 bits that decide them.
        first: the flat index of its first number, in an input of which it is a part.
    """

    shape: tuple[int, ...]
    dtype: DType
    data: DataMode
    keys: tuple[int, int]
    first: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def at(self, indices: np.typing.NDArray[np.int64]) -> Stored:
        """Return the numbers at flat `indices`, in the storage of the dtype."""
        table = quantiles(self.dtype, self.data)
        found = np.empty(indices.shape, table.dtype)
        flat = found.reshape(-1)
        wanted = indices.reshape(-1)
        step = 2**18  # the intermediate values of a hash stay in a cache
        for start in range(0, flat.size, step):
            some = slice(start, start + step)
            flat[some] = table[quantile_at(wanted[some], self.first, self.keys)]
        return found

    def part(self, shape: tuple[int, ...], start: int) -> "DrawnInput":
        """Return the numbers from flat index `start` on."""
        return replace(self, shape=shape, first=self.first + start)


def drawn(shape: tuple[int, ...], dtype: DType, data: DataMode, *, seed: int, number: int) -> DrawnInput:
    """Return input `number` of a case, which `seed` decides."""
    first, second = map(int, np.random.SeedSequence((seed, number)).generate_state(2))
    return DrawnInput(shape, dtype, data, (first, second))


def quantile_at(indices: Any, first: int, keys: tuple[int, int]) -> Any:
    """Return the number of the quantile at each of `indices`, counted from `first` on.

    Indices are 64-bit integers below 2**36, of NumPy or of torch.
    """
    factor = 0x45D9F3B  # its product with 32 bits fits 63: nothing overflows in signed integers
    numbers = indices + first  # no argument: a caller may keep those in memory until the call returns
    for key in keys:
        numbers = numbers ^ key
        for _ in range(2):
            numbers = (numbers >> 16 ^ numbers) * factor & 0xFFFFFFFF
        numbers = numbers >> 16 ^ numbers
    return numbers >> 16


@cache
def quantiles(dtype: DType, data: DataMode) -> Stored:
    """Return the numbers that are drawn from, in the storage of `dtype`."""
    count = 2**16
    if data != "normal":
        return dtype.round(np.full(count, CONSTANTS[data]))
    inverse = NormalDist().inv_cdf
    return dtype.round(np.array([inverse((number + 0.5) / count) for number in range(count)]))


LARGE = 2**22  # elements of all arrays: a product of 1183; ten times as many take the host seconds a set of inputs
BLOCK_ELEMENTS = 2**24  # elements that a device computes at a time: 128 MB in float64
PRODUCT_ELEMENTS = 2**22  # of three matrices: a larger product is a block, and made by rows and columns itself
Lengths = tuple[int, ...]


@dataclass(frozen=True)
class BlockLayout:
    """The division of a large case into blocks, by `Operation.cut`: along its leading axes, which count as one.

    Attributes:
        leading: lengths of these axes; none: the output is one part.
        inputs: lengths of the part of each cut input that a position along them takes, and of all of the others.
        is_cut: by input.
        output: lengths of the output at each position.
        product: whether each position is a product of its own.
    """

    leading: Lengths
    inputs: tuple[Lengths, ...]
    is_cut: tuple[bool, ...]
    output: Lengths
    product: bool

    @property
    def count(self) -> int:
        """The number of positions along the leading axes."""
        return prod(self.leading)

    @cached_property
    def own(self) -> int:
        """Elements that one position reads and writes."""
        cut = sum(prod(lengths) for lengths, is_cut in zip(self.inputs, self.is_cut, strict=True) if is_cut)
        return cut + prod(self.output)

    @cached_property
    def shared(self) -> int:
        """Elements that every position reads."""
        return sum(prod(lengths) for lengths, is_cut in zip(self.inputs, self.is_cut, strict=True) if not is_cut)

    @property
    def by_lines(self) -> bool:
        """True if each position is a product so large that its rows and columns are generated in blocks."""
        return self.product and (not self.leading or self.own + self.shared > PRODUCT_ELEMENTS)

    def blocks(self) -> Iterator[slice]:
        """Yield ranges of positions that are made together."""
        step = 1 if self.by_lines else max(1, (BLOCK_ELEMENTS - self.shared) // self.own)
        yield from (slice(start, min(start + step, self.count)) for start in range(0, self.count, step))


def layout(operation: Operation, shape: Shape) -> BlockLayout:
    """Return the division of a large case into blocks."""
    if operation.cut is None:
        raise ValueError(f"{operation.name} cannot be split into blocks")
    cut = operation.cut(shape)
    output = operation.output(shape)
    inputs = operation.inputs(shape)
    axes = max(cut.leading)
    return BlockLayout(
        leading=output[:axes],
        inputs=tuple(array[leading:] for array, leading in zip(inputs, cut.leading, strict=True)),
        is_cut=tuple(leading > 0 for leading in cut.leading),
        output=output[axes:],
        product=cut.product,
    )


def is_large(operation: Operation, shape: Shape) -> bool:
    """Return whether a case is too large for the host, and can be cut."""
    return operation.cut is not None and sum(map(prod, (*operation.inputs(shape), operation.output(shape)))) >= LARGE
