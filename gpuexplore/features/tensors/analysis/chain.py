"""An expression, evaluated: every step with its shape, strides, offset and storage, and the cells after all writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.value import Indices, Storage, TensorView

MOST_LISTED = 1024  # elements that are looked at one by one: expressions are untrusted


Kind = Literal["start", "same", "view", "copy", "result", "write"]


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


@dataclass(frozen=True, slots=True)
class Chain:
    """What became of an expression.

    Attributes:
        expression: as it was typed.
        steps: of all statements, in order; the last one is the result.
        names: tensors that were named, in order.
        storages: after all writes, by name.
        writes: in order.
    """

    expression: str
    steps: tuple[ChainStep, ...] = ()
    names: Mapping[str, TensorView] = field(default_factory=dict)
    storages: Mapping[str, Storage] = field(default_factory=dict)
    writes: tuple[ChainStep, ...] = ()

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
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of the result."""
        return self.result.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of the result, in elements."""
        return self.result.strides

    @property
    def offset(self) -> int:
        """Storage offset of the result, in elements."""
        return self.result.offset

    @property
    def is_contiguous(self) -> bool:
        """Whether the result is contiguous."""
        return self.result.is_contiguous

    @property
    def is_view(self) -> bool:
        """Whether the result shares the storage of the tensor that its chain began with."""
        begun = next(step for step in reversed(self.steps) if step.kind == "start")
        return self.result.storage == begun.view.storage

    @property
    def storage(self) -> Storage:
        """The storage of the result."""
        return self.storages[self.result.storage]

    @property
    def values(self) -> tuple[float, ...] | None:
        """The elements of the result in row order; None where there are too many to keep."""
        return self.values_of(self.result)

    def values_of(self, view: TensorView) -> tuple[float, ...] | None:
        """Return the elements of one of its tensors in row order; None where there are too many to keep."""
        kept = self.storages[view.storage].values
        if kept is None or view.element_count > MOST_LISTED:
            return None
        return tuple(kept[cell] for cell in view.cells())

    def seen_of(self, write: ChainStep) -> Mapping[str, tuple[Indices, ...] | None] | None:
        """Return what each named tensor sees of a write; None where there are too many elements to look at.

        That is the elements that are the cells written, and None for a tensor of another storage.
        """
        if any(view.element_count > MOST_LISTED for view in (write.view, *self.names.values())):
            return None
        written = set(write.view.cells())
        return {
            name: _seen(view, written) if view.storage == write.view.storage else None
            for name, view in self.names.items()
        }


def _seen(view: TensorView, written: set[int]) -> tuple[Indices, ...]:
    return tuple(indices for indices, cell in zip(view.elements(), view.cells(), strict=True) if cell in written)
