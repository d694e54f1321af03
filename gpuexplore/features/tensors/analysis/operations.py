"""The methods of a chain, one row each: what they make of shape, strides and offset, as torch defines it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.chain import ChainStep
from gpuexplore.features.tensors.analysis.indexing import narrowed, selected, with_axis
from gpuexplore.features.tensors.analysis.layout import Barrier, filled_in, kept_strides, merged_strides
from gpuexplore.features.tensors.analysis.value import TensorView, row_order

ANY_NUMBER = 8  # of arguments: as many as axes


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a chain.

    Attributes:
        apply: returns the step, without its text, for a tensor and the arguments.
        usage: how it is written.
        fewest: arguments that it needs.
        most: arguments that it takes.
        takes_tensor: whether its argument is the name of a tensor.
    """

    apply: Callable[..., ChainStep]
    usage: str
    fewest: int = 0
    most: int = 0
    takes_tensor: bool = False

    def check(self, arguments: tuple[Any, ...]) -> None:
        """Accept as many arguments, and of that kind, as it takes.

        Raises:
            InvalidInput: another number or kind.
        """
        wrong_kind = [value for value in arguments if isinstance(value, TensorView) != self.takes_tensor]
        if wrong_kind or not self.fewest <= len(arguments) <= self.most:
            given = f"{len(arguments)} arguments" if not wrong_kind else "an argument of another kind"
            raise InvalidInput.of("call with", given, self.usage)


class ViewRefused(InvalidInput):
    """`view` cannot show these elements in that shape; `barrier` are the axes that prevent it."""

    def __init__(self, text: str, barrier: Barrier, shape: tuple[int, ...]) -> None:
        super().__init__(text)
        self.barrier = barrier
        self.shape = shape


def copied(shape: Sequence[int], why: str, strides: Sequence[int] | None = None) -> ChainStep:
    """Return a copy of that shape: in row order, unless `strides` say otherwise."""
    return ChainStep(TensorView(tuple(shape), tuple(strides or row_order(shape))), "copy", why)


def _axis_of(view: TensorView, axis: int, more: int = 0) -> int:
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


def _view(view: TensorView, *lengths: int) -> ChainStep:
    shape = filled_in(lengths, view.element_count)
    strides = merged_strides(view, shape)
    if isinstance(strides, Barrier):
        axes = f"axes {strides.outer} and {strides.inner} (strides {strides.stride} and {view.strides[strides.inner]})"
        raise ViewRefused(f"{axes} cannot become one axis, and view never copies", strides, shape)
    return ChainStep(view.seen(shape, strides))


def _reshape(view: TensorView, *lengths: int) -> ChainStep:
    shape = filled_in(lengths, view.element_count)
    strides = merged_strides(view, shape)
    if isinstance(strides, Barrier):
        return copied(shape, f"axes {strides.outer} and {strides.inner} cannot become one: reshape has to copy")
    return ChainStep(view.seen(shape, strides), why="the strides allow it: nothing is copied")


def _flatten(view: TensorView, first: int = 0, last: int = -1) -> ChainStep:
    start, end = _axis_of(view, first), _axis_of(view, last)
    if start > end:
        raise InvalidInput.of("flatten from axis", first, f"axes up to the last one, {last}")
    if not view.axes:
        return _reshape(view, 1)
    if start == end:
        return ChainStep(view, "same", "one axis is flat already")
    merged = prod(view.shape[start : end + 1])
    return _reshape(view, *view.shape[:start], merged, *view.shape[end + 1 :])


def _contiguous(view: TensorView) -> ChainStep:
    if view.is_contiguous:
        return ChainStep(view, "same", "it is contiguous already: nothing is copied")
    return copied(view.shape, "its elements are written one after the other into new storage")


def _clone(view: TensorView) -> ChainStep:
    return copied(view.shape, "clone always copies, and keeps the order of the strides", kept_strides(view))


def _t(view: TensorView) -> ChainStep:
    if view.axes > 2:
        raise InvalidInput.of("t of", f"{view.axes} axes", "at most 2; transpose and permute take more")
    return _permute(view, *reversed(range(view.axes)))


def _reversed_axes(view: TensorView) -> ChainStep:
    return _permute(view, *reversed(range(view.axes)))


def _transpose(view: TensorView, first: int, second: int) -> ChainStep:
    one_axis, other = _axis_of(view, first), _axis_of(view, second)
    order = list(range(view.axes))
    if order:
        order[one_axis], order[other] = order[other], order[one_axis]
    return _permute(view, *order)


def _permute(view: TensorView, *order: int) -> ChainStep:
    axes = [_axis_of(view, axis) for axis in order]
    if sorted(axes) != list(range(view.axes)):
        raise InvalidInput.of("order", order, f"each of the {view.axes} axes once")
    return ChainStep(view.seen([view.shape[axis] for axis in axes], [view.strides[axis] for axis in axes]))


def _expand(view: TensorView, *lengths: int) -> ChainStep:
    """Axes of length 1, and new ones in front, are repeated by a stride of 0."""
    new = len(lengths) - view.axes
    if new < 0:
        raise InvalidInput.of("expand to", f"{len(lengths)} axes", f"at least {view.axes}")
    shape, strides = list(view.shape), list(view.strides)
    for axis in reversed(range(len(lengths))):
        asked = lengths[axis]
        if axis < new:
            shape.insert(0, _checked_length(asked, axis, "whole numbers from 0"))
            strides.insert(0, strides[0] * shape[1] if asked == 1 and strides else 0)
        elif asked not in (-1, shape[axis - new]):
            accepted = f"{shape[axis - new]}, its length, or -1; only an axis of length 1 can be expanded"
            if shape[axis - new] != 1:
                raise InvalidInput.of(f"length of axis {axis}", asked, accepted)
            shape[axis - new], strides[axis - new] = _checked_length(asked, axis, accepted), 0
    return ChainStep(view.seen(shape, strides if view.axes else [0] * len(lengths)))


def _checked_length(length: int, axis: int, accepted: str) -> int:
    if length < 0:
        raise InvalidInput.of(f"length of axis {axis}", length, accepted)
    return length


def _unsqueeze(view: TensorView, axis: int) -> ChainStep:
    return ChainStep(with_axis(view, _axis_of(view, axis, more=1)))


def _squeeze(view: TensorView, *axes: int) -> ChainStep:
    named = [_axis_of(view, axis) for axis in axes]
    dropped = set(named) or set(range(view.axes))
    if len(dropped) < len(named):
        raise InvalidInput.of("axes to squeeze", axes, "each axis once")
    kept = [axis for axis in range(view.axes) if axis not in dropped or view.shape[axis] != 1]
    return ChainStep(view.seen([view.shape[axis] for axis in kept], [view.strides[axis] for axis in kept]))


def _select(view: TensorView, axis: int, index: int) -> ChainStep:
    if not view.axes:
        raise InvalidInput.of("select of", "a scalar", "tensors with an axis")
    return ChainStep(selected(view, _axis_of(view, axis), index))


def _narrow(view: TensorView, axis: int, start: int, length: int) -> ChainStep:
    if not view.axes:
        raise InvalidInput.of("narrow of", "a scalar", "tensors with an axis")
    dim = _axis_of(view, axis)
    available = view.shape[dim]
    if not -available <= start <= available:
        raise InvalidInput.of("start", start, f"{-available} to {available}")
    first = start + available if start < 0 else start
    if not 0 <= length <= available - first:
        raise InvalidInput.of("length", length, f"0 to {available - first}")
    return ChainStep(narrowed(view, dim, first, count=length))


def _matmul(view: TensorView, other: TensorView) -> ChainStep:
    if view.axes != 2 or other.axes != 2 or view.shape[1] != other.shape[0]:
        raise InvalidInput.of("product of shapes", f"{view.shape} and {other.shape}", "(m, k) and (k, n)")
    shape = (view.shape[0], other.shape[1])
    return ChainStep(TensorView(shape, row_order(shape)), "result", "a product is computed into new storage")


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "view": Method(_view, ".view(4, 4) with lengths, one of which may be -1", 0, ANY_NUMBER),
        "reshape": Method(_reshape, ".reshape(4, 4) with lengths, one of which may be -1", 0, ANY_NUMBER),
        "flatten": Method(_flatten, ".flatten() or .flatten(first axis, last axis)", 0, 2),
        "contiguous": Method(_contiguous, ".contiguous()"),
        "clone": Method(_clone, ".clone()"),
        "t": Method(_t, ".t()"),
        "T": Method(_reversed_axes, ".T"),
        "transpose": Method(_transpose, ".transpose(axis, axis)", 2, 2),
        "permute": Method(_permute, ".permute(1, 0) with every axis once", 0, ANY_NUMBER),
        "expand": Method(_expand, ".expand(4, -1) with lengths", 0, ANY_NUMBER),
        "broadcast_to": Method(_expand, ".broadcast_to(4, 4) with lengths", 0, ANY_NUMBER),
        "unsqueeze": Method(_unsqueeze, ".unsqueeze(axis)", 1, 1),
        "squeeze": Method(_squeeze, ".squeeze() or .squeeze(axis)", 0, ANY_NUMBER),
        "select": Method(_select, ".select(axis, index)", 2, 2),
        "narrow": Method(_narrow, ".narrow(axis, start, length)", 3, 3),
        "matmul": Method(_matmul, ".matmul(name of a tensor)", 1, 1, takes_tensor=True),
    }
)
