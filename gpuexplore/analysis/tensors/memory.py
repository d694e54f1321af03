"""The storages that an expression makes, with the values of their cells while they are few enough to keep."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from string import ascii_uppercase

from gpuexplore.analysis.tensors.chain import MOST_LISTED
from gpuexplore.analysis.tensors.value import Storage, TensorView

Values = list[float] | None


class Memory:
    """Cells by the name of their storage: A is the first that was made."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._values: dict[str, Values] = {}

    def new(self, view: TensorView, value_of: Callable[[int], float] | Sequence[float]) -> TensorView:
        """Return `view` over new storage, whose cell i holds ``value_of(i)``, or the i-th of a sequence."""
        look_up = value_of if callable(value_of) else value_of.__getitem__
        size = view.element_count
        return self._allocated(view, [look_up(cell) for cell in range(size)] if size <= MOST_LISTED else None)

    def copy(self, source: TensorView, target: TensorView) -> TensorView:
        """Return `target` over new storage, its elements those of `source` in row order."""
        held = self._values[source.storage]
        if held is None or target.element_count > MOST_LISTED:
            return self._allocated(target, None)
        values = [0.0] * target.element_count
        for cell, other in zip(target.cells(), source.cells(), strict=True):
            values[cell] = held[other]
        return self._allocated(target, values)

    def product(self, left: TensorView, right: TensorView, target: TensorView) -> TensorView:
        """Return `target` over new storage, its elements the matrix product of two tensors, where they are few."""
        rows, columns, inner = *target.shape, left.shape[1]
        first, second = self._values[left.storage], self._values[right.storage]
        if first is None or second is None or rows * columns * inner > MOST_LISTED:
            return self._allocated(target, None)
        pairs = ((row, column) for row in range(rows) for column in range(columns))
        sums = (
            sum(first[left.cell((row, k))] * second[right.cell((k, column))] for k in range(inner))
            for row, column in pairs
        )
        return self._allocated(target, list(sums))

    def write(self, view: TensorView, value: float) -> None:
        """Set every cell that `view` shows to `value`; none of them is shown twice."""
        held = self._values[view.storage]
        if held is None:
            return
        for cell in view.cells():
            held[cell] = value

    def storages(self) -> dict[str, Storage]:
        """Return every storage as it is now."""
        return {name: Storage(name, size, _frozen(self._values[name])) for name, size in self._sizes.items()}

    def _allocated(self, view: TensorView, values: Values) -> TensorView:
        count = len(self._sizes)
        turn, letter = divmod(count, len(ascii_uppercase))
        name = ascii_uppercase[letter] + (str(turn) if turn else "")
        self._sizes[name], self._values[name] = view.element_count, values
        return replace(view, storage=name, offset=0)


def _frozen(values: Values) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)
