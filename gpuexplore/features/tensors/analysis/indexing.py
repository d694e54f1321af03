"""Indexing by square brackets: each item takes an axis, shortens it, or adds one. Nothing is ever copied."""

from collections.abc import Callable, Mapping, Sequence
from types import NoneType

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.expression import Item
from gpuexplore.features.tensors.analysis.value import TensorView


def indexed(view: TensorView, items: Sequence[Item]) -> TensorView:
    """Return the view that `items` show of `view`, as torch's basic indexing does.

    Raises:
        InvalidInput: more items than axes, an index outside its axis, or a step below 1.
    """
    named = sum(isinstance(item, int | slice) for item in items)
    if named > view.axes:
        raise InvalidInput.of("index of", f"{named} items", f"at most {view.axes}: the tensor has {view.axes} axes")
    axis, left_out = 0, view.axes - named
    for item in items:
        if item is ...:
            axis += left_out
        else:
            view, taken = _TAKES[type(item)](view, axis, item)
            axis += taken
    return view


def selected(view: TensorView, axis: int, index: int) -> TensorView:
    """Return `view` without `axis`, at `index` of it."""
    length, stride = view.shape[axis], view.strides[axis]
    if not -length <= index < length:
        accepted = f"{-length} to {length - 1}" if length else "none: the axis has no elements"
        raise InvalidInput.of(f"index of axis {axis}", index, accepted)
    shape, strides = _without(view.shape, axis), _without(view.strides, axis)
    return view.seen(shape, strides, index % length * stride)


def sliced(view: TensorView, axis: int, part: slice) -> TensorView:
    """Return `view` with `axis` cut to a slice; ends beyond the axis are moved to its ends, as in Python."""
    length, step = view.shape[axis], 1 if part.step is None else part.step
    if step < 1:
        raise InvalidInput.of("step", step, "whole numbers from 1; torch has no negative strides")
    start, stop = _end(part.start, length, 0), _end(part.stop, length, length)
    count = max(0, -(-(stop - start) // step))
    return narrowed(view, axis, start, count=count, step=step)


def narrowed(view: TensorView, axis: int, start: int, *, count: int, step: int = 1) -> TensorView:
    """Return `count` elements of `axis` from `start` on, `step` apart."""
    shape, strides = list(view.shape), list(view.strides)
    shape[axis], strides[axis] = count, strides[axis] * step
    return view.seen(shape, strides, start * view.strides[axis])


def with_axis(view: TensorView, axis: int) -> TensorView:
    """Return `view` with an axis of length 1 before `axis`; its stride is the one that would step over what follows."""
    stride = 1 if axis == view.axes else view.shape[axis] * view.strides[axis]
    shape, strides = list(view.shape), list(view.strides)
    shape.insert(axis, 1)
    strides.insert(axis, stride)
    return view.seen(shape, strides)


def _without(lengths: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*lengths[:axis], *lengths[axis + 1 :])


def _end(typed: int | None, length: int, default: int) -> int:
    """Return an end of a slice within 0 and `length`."""
    if typed is None:
        return default
    return min(length, max(0, typed + length if typed < 0 else typed))


# what an item makes of a view at an axis, and how many axes it passes over
_TAKES: Mapping[type, Callable[..., tuple[TensorView, int]]] = {
    int: lambda view, axis, item: (selected(view, axis, item), 0),
    slice: lambda view, axis, item: (sliced(view, axis, item), 1),
    NoneType: lambda view, axis, _: (with_axis(view, axis), 1),
}
