"""Tensors by their shape, strides and offset over a storage, and chains of steps on them, as torch does it.

Strides count elements. A tensor of any size is arithmetic on them; NumPy keeps the cells of small ones, and says what
is contiguous. Torch is not needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpuexplore.core.errors import InvalidInput

MOST_LISTED = 1024  # elements that are looked at one by one: expressions are untrusted
Indices = tuple[int, ...]
Kind = Literal["start", "same", "view", "copy", "result", "write"]


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
        """The number of axes."""
        return len(self.shape)

    @property
    def element_count(self) -> int:
        """The number of elements; those of a broadcast axis count each time."""
        return prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        """True if its elements are in row order without gaps; axes of length 1 and empty tensors do not matter."""
        return as_strided(np.empty(1, np.int8), self.shape, self.strides).flags.c_contiguous

    @property
    def span(self) -> int:
        """Cells from the first to the last that it touches, both included; 0 where it is empty."""
        if not self.element_count:
            return 0
        return 1 + sum((length - 1) * stride for length, stride in self.pairs)

    @property
    def cells(self) -> np.typing.NDArray[np.int64]:
        """The cell of its storage that each element is, in its shape."""
        axes = (np.arange(length) * stride for length, stride in self.pairs)
        return np.asarray(sum(np.ix_(*axes), start=self.offset))

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The length and the stride of each axis."""
        return tuple(zip(self.shape, self.strides, strict=True))

    def seen(self, pairs: Iterable[tuple[int, int]], skipped: int = 0) -> "TensorView":
        """Return another view of the same storage, its axes of such lengths and strides, `skipped` cells later."""
        shape, strides = tuple(zip(*pairs, strict=True)) or ((), ())
        return replace(self, shape=shape, strides=strides, offset=self.offset + skipped)


def row_order(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor: each is the number of elements that its axis steps over."""
    return tuple(prod(max(length, 1) for length in shape[axis + 1 :]) for axis in range(len(shape)))


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


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A step of a chain, or a write.

    Attributes:
        view: the tensor after it, or the elements written; what a method makes anew has no storage yet.
        why: why it is a view or a copy, half a sentence; None where the kind says it all.
        text: the expression up to here.
    """

    view: TensorView
    kind: Kind = "view"
    why: str | None = None
    text: str = ""


@dataclass(slots=True)
class Chain:
    """An expression, evaluated.

    Attributes:
        expression: as it was typed.
        steps: of all statements, in order; the last one is the result.
        names: tensors that were named, in order.
        storages: after all writes, by name.
        writes: in order.
    """

    expression: str
    steps: list[ChainStep] = field(default_factory=list)
    names: dict[str, TensorView] = field(default_factory=dict)
    storages: dict[str, Storage] = field(default_factory=dict)
    writes: list[ChainStep] = field(default_factory=list)

    @property
    def result(self) -> TensorView:
        """The tensor after the last step.

        Raises:
            InvalidInput: there is no step.
        """
        if not self.steps:
            raise InvalidInput("the expression has no step")
        return self.steps[-1].view

    @property
    def is_view(self) -> bool:
        """True if the result shares the storage of the tensor that its chain began with."""
        return self.result.storage == next(step for step in reversed(self.steps) if step.kind == "start").view.storage

    @property
    def storage(self) -> Storage:
        """The storage of the result."""
        return self.storages[self.result.storage]

    def values_of(self, view: TensorView) -> tuple[float, ...] | None:
        """Return the elements of one of its tensors in row order; None where there are too many to keep."""
        kept = self.storages[view.storage].values
        if kept is None or view.element_count > MOST_LISTED:
            return None
        return tuple(kept[cell] for cell in view.cells.flat)

    def seen_of(self, write: ChainStep) -> Mapping[str, tuple[Indices, ...] | None] | None:
        """Return what each named tensor sees of a write; None where there are too many elements to look at.

        That is the elements that are the cells written, and None for a tensor of another storage.
        """
        if any(view.element_count > MOST_LISTED for view in (write.view, *self.names.values())):
            return None
        written = write.view.cells
        return {
            name: (
                tuple(map(tuple, np.argwhere(np.isin(view.cells, written)).tolist()))
                if view.storage == write.view.storage
                else None
            )
            for name, view in self.names.items()
        }
