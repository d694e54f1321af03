"""What one step of a chain makes of a tensor: the same tensor, another view of its storage, or a copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpuexplore.errors import InvalidInput
from gpuexplore.features.tensors.analysis.layout import Barrier
from gpuexplore.features.tensors.analysis.value import TensorView, row_order

Kind = Literal["start", "same", "view", "copy", "result"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tensor after a step.

    Attributes:
        view: where it is a copy or a result, over a storage that has no name yet.
        why: half a sentence; None where the kind says it all.
    """

    view: TensorView
    kind: Kind = "view"
    why: str | None = None


class ViewRefused(InvalidInput):
    """`view` cannot show these elements in that shape; `barrier` are the axes that prevent it."""

    def __init__(self, text: str, barrier: Barrier, shape: tuple[int, ...]) -> None:
        super().__init__(text)
        self.barrier = barrier
        self.shape = shape


def copied(shape: Sequence[int], why: str, strides: Sequence[int] | None = None) -> Outcome:
    """Return a copy of that shape: in row order, unless `strides` say otherwise."""
    return Outcome(TensorView(tuple(shape), tuple(strides or row_order(shape))), "copy", why)


def axis_of(view: TensorView, axis: int, more: int = 0) -> int:
    """Return `axis` counted from 0; negative ones count from the end, and a scalar has one.

    Args:
        more: axes that the result has more.

    Raises:
        InvalidInput: there is no such axis.
    """
    count = max(view.axes + more, 1)
    if not -count <= axis < count:
        raise InvalidInput.of("axis", axis, f"{-count} to {count - 1}")
    return axis % count
