"""A tensor as torch keeps it: a shape, strides and an offset over the cells of a storage. Strides count elements."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from gpuexplore.core.errors import InvalidInput

Indices = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorView:
    """One way to look at a storage; views of one storage share its cells.

    Attributes:
        shape: lengths of the axes; none for a scalar.
        strides: by how many cells one step along each axis moves.
        offset: the cell of the first element.
        storage: the name of its storage.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    storage: str = ""

    @property
    def axes(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def element_count(self) -> int:
        """How many elements it has; those of a broadcast axis count each time."""
        return prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie in row order without gaps; axes of length 1 and empty tensors do not matter."""
        wanted = row_order(self.shape)
        lengths = zip(self.shape, self.strides, wanted, strict=True)
        return self.element_count == 0 or all(length == 1 or stride == row for length, stride, row in lengths)

    @property
    def span(self) -> int:
        """Cells from the first to the last that it touches, both included; 0 where it is empty."""
        if not self.element_count:
            return 0
        return 1 + sum((length - 1) * stride for length, stride in zip(self.shape, self.strides, strict=True))

    def cell(self, indices: Sequence[int]) -> int:
        """Return the cell of its storage that the element at `indices` is: the offset plus index times stride.

        Raises:
            InvalidInput: another number of indices than axes, or one outside its axis.
        """
        if len(indices) != self.axes:
            raise InvalidInput.of("indices", tuple(indices), f"{self.axes} of them, one for each axis")
        for axis, (index, length) in enumerate(zip(indices, self.shape, strict=True)):
            if not -length <= index < length:
                raise InvalidInput.of(
                    f"index of axis {axis}",
                    index,
                    f"{-length} to {length - 1}" if length else "none: the axis has no elements",
                )
        inside = (index % length for index, length in zip(indices, self.shape, strict=True))
        return self.offset + sum(index * stride for index, stride in zip(inside, self.strides, strict=True))

    def elements(self) -> Iterator[Indices]:
        """Yield the indices of all elements in row order: the last axis runs fastest."""
        return product(*map(range, self.shape))

    def cells(self) -> Iterator[int]:
        """Yield the cell of every element in row order."""
        for indices in self.elements():
            yield self.offset + sum(index * stride for index, stride in zip(indices, self.strides, strict=True))

    def seen(self, shape: Sequence[int], strides: Sequence[int], skipped: int = 0) -> "TensorView":
        """Return another view of the same storage, which begins `skipped` cells later."""
        return replace(self, shape=tuple(shape), strides=tuple(strides), offset=self.offset + skipped)


@dataclass(frozen=True, slots=True)
class Storage:
    """The memory behind tensors: a row of cells, without a shape.

    Attributes:
        name: A for the first one that was made, then B.
        values: of its cells; None where there are too many to keep.
    """

    name: str
    size: int
    values: tuple[float, ...] | None


def row_order(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor: each is the number of elements that its axis steps over."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))
