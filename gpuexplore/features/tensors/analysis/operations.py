"""The methods of a chain and its indexing: what each makes of shape, strides and offset, as torch defines it.

Strides after a change of shape follow torch's ATen/TensorUtils.cpp and ATen/ExpandUtils.cpp.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from math import prod
from typing import Any

import numpy as np

from gpuexplore.core.errors import InvalidInput, require
from gpuexplore.features.tensors.analysis import ChainStep, TensorView, row_order


class ViewRefused(InvalidInput):
    """Two neighbouring axes that no single stride steps through, although the shape of a `view` would need one.

    Attributes:
        shape: the one that was asked for.
        outer: the axis before `inner`; `stride` is its stride.
        inner: from there on one stride, `run_stride`, steps through `run_length` elements.
    """

    def __init__(self, view: TensorView, shape: Sequence[int], run: tuple[int, int, int]) -> None:
        self.shape = tuple(shape)
        self.inner, self.run_length, self.run_stride = run
        self.outer = self.inner - 1
        self.stride = view.strides[self.outer]
        axes = f"axes {self.outer} and {self.inner} (strides {self.stride} and {view.strides[self.inner]})"
        super().__init__(f"{axes} cannot be merged into one axis, and view never copies")


def _copied(shape: Sequence[int], why: str, strides: Sequence[int] | None = None) -> ChainStep:
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
    require(-count <= axis < count, "axis", axis, f"{-count} to {count - 1}")
    return axis % count


def _view(view: TensorView, *lengths: int) -> ChainStep:
    shape = _filled_in(lengths, view.element_count)
    return ChainStep(view.seen(zip(shape, _merged_strides(view, shape), strict=True)))


def _reshape(view: TensorView, *lengths: int) -> ChainStep:
    try:
        return replace(_view(view, *lengths), why="the strides allow a view: no copy")
    except ViewRefused as refused:
        return _copied(refused.shape, f"axes {refused.outer} and {refused.inner} cannot be merged: reshape has to copy")


def _flatten(view: TensorView, first: int = 0, last: int = -1) -> ChainStep:
    start = _axis_of(view, first)
    end = _axis_of(view, last)
    require(start <= end, "flatten from axis", first, f"axes up to the last one, {last}")
    if start == end and view.axes:
        return ChainStep(view, "same", "a single axis is already flat")
    return _reshape(view, *view.shape[:start], prod(view.shape[start : end + 1]), *view.shape[end + 1 :])


def _contiguous(view: TensorView) -> ChainStep:
    if view.is_contiguous:
        return ChainStep(view, "same", "already contiguous: no copy")
    return _copied(view.shape, "its elements are copied into new storage in row order")


def _t(view: TensorView) -> ChainStep:
    require(view.axes <= 2, "t of", f"{view.axes} axes", "at most 2; transpose and permute take more")
    return _permute(view, *range(view.axes)[::-1])


def _transpose(view: TensorView, first: int, second: int) -> ChainStep:
    swapped = {_axis_of(view, first): second, _axis_of(view, second): first}
    return _permute(view, *(swapped.get(axis, axis) for axis in range(view.axes)))


def _permute(view: TensorView, *order: int) -> ChainStep:
    axes = [_axis_of(view, axis) for axis in order]
    require(sorted(axes) == list(range(view.axes)), "order", order, f"each of the {view.axes} axes once")
    return ChainStep(view.seen(view.pairs[axis] for axis in axes))


def _expand(view: TensorView, *lengths: int) -> ChainStep:
    """Axes of length 1, and new ones in front, are repeated by a stride of 0."""
    new = len(lengths) - view.axes
    require(new >= 0, "expand to", f"{len(lengths)} axes", f"at least {view.axes}")
    found: list[tuple[int, int]] = []
    for axis in reversed(range(len(lengths))):
        length, stride = (1, prod(found[0]) if view.axes else 0) if axis < new else view.pairs[axis - new]
        asked = length if lengths[axis] == -1 and axis >= new else lengths[axis]
        if asked < 0 or length not in (1, asked):
            accepted = f"{length}, its length, or -1; only an axis of length 1 can be expanded"
            raise InvalidInput.of(f"length of axis {axis}", asked, "whole numbers from 0" if axis < new else accepted)
        found.insert(0, (asked, stride if asked == length else 0))
    return ChainStep(view.seen(found))


def _squeeze(view: TensorView, *axes: int) -> ChainStep:
    named = [_axis_of(view, axis) for axis in axes]
    dropped = set(named) or set(range(view.axes))
    require(len(dropped) >= len(named), "axes to squeeze", axes, "each axis once")
    return ChainStep(view.seen(pair for axis, pair in enumerate(view.pairs) if axis not in dropped or pair[0] != 1))


def _at(view: TensorView, axis: int, item: Any) -> ChainStep:
    return ChainStep(indexed(view, [*[slice(None)] * axis, item]))


def _narrow(view: TensorView, axis: int, start: int, length: int) -> ChainStep:
    dim = _axis_of(view, axis)
    available = view.shape[dim]
    require(-available <= start <= available, "start", start, f"{-available} to {available}")
    first = start + available if start < 0 else start
    require(0 <= length <= available - first, "length", length, f"0 to {available - first}")
    return _at(view, dim, slice(first, first + length))


def _matmul(view: TensorView, other: TensorView) -> ChainStep:
    if view.axes != 2 or other.axes != 2 or view.shape[1] != other.shape[0]:
        raise InvalidInput.of("product of shapes", f"{view.shape} and {other.shape}", "(m, k) and (k, n)")
    shape = (view.shape[0], other.shape[1])
    return ChainStep(TensorView(shape, row_order(shape)), "result", "a product is computed into new storage")


# by name: what returns the step, without its text, for a tensor and the arguments; and how it is written
METHODS: Mapping[str, tuple[Callable[..., ChainStep], str]] = {
    "view": (_view, ".view(4, 4) with lengths, one of which may be -1"),
    "reshape": (_reshape, ".reshape(4, 4) with lengths, one of which may be -1"),
    "flatten": (_flatten, ".flatten() or .flatten(first axis, last axis)"),
    "contiguous": (_contiguous, ".contiguous()"),
    "clone": (
        lambda view: _copied(
            view.shape, "clone always copies, and keeps the order of the strides", _kept_strides(view)
        ),
        ".clone()",
    ),
    "t": (_t, ".t()"),
    "T": (lambda view: _permute(view, *range(view.axes)[::-1]), ".T"),
    "transpose": (_transpose, ".transpose(axis, axis)"),
    "permute": (_permute, ".permute(1, 0) with every axis once"),
    "expand": (_expand, ".expand(4, -1) with lengths"),
    "broadcast_to": (_expand, ".broadcast_to(4, 4) with lengths"),
    "unsqueeze": (
        lambda view, axis: _at(view, _axis_of(view, axis, more=1), None),
        ".unsqueeze(axis)",
    ),
    "squeeze": (_squeeze, ".squeeze() or .squeeze(axis)"),
    "select": (lambda view, axis, index: _at(view, _axis_of(view, axis), index), ".select(axis, index)"),
    "narrow": (_narrow, ".narrow(axis, start, length)"),
    "matmul": (_matmul, ".matmul(name of a tensor)"),
}


def called(name: str, view: TensorView, arguments: Sequence[Any]) -> ChainStep:
    """Return the step that the method `name` of `view` is.

    Raises:
        InvalidInput: another number or kind of arguments, or a call that torch refuses as well.
    """
    method, usage = METHODS[name]
    if any(isinstance(value, TensorView) != (name == "matmul") for value in arguments):
        raise InvalidInput.of("call with", "an argument of another kind", usage)
    try:
        signature(method).bind(view, *arguments)
    except TypeError:
        raise InvalidInput.of("call with", f"{len(arguments)} arguments", usage) from None
    if name in ("select", "narrow") and not view.axes:
        raise InvalidInput.of(f"{name} of", "a scalar", "tensors with an axis")
    return method(view, *arguments)


def indexed(view: TensorView, items: Sequence[Any]) -> TensorView:
    """Return the view that `items` in square brackets show of `view`, as torch's basic indexing does.

    Each item takes an axis, shortens it, or adds one; nothing is ever copied.

    Raises:
        InvalidInput: more items than axes, an index outside its axis, or a step below 1.
    """
    named = sum(isinstance(item, int | slice) for item in items)
    require(named <= view.axes, "index of", f"{named} items", f"at most {view.axes}: the tensor has {view.axes} axes")
    left = list(view.pairs)
    found: list[tuple[int, int]] = []
    skipped = 0
    for item in items:
        if item is None:
            found.append((1, prod(left[0]) if left else 1))  # the stride that would step over what follows
            continue
        if item is ...:
            passed = view.axes - named
            found += left[:passed]
            left = left[passed:]
            continue
        length, stride = left.pop(0)
        taken = range(length)[_checked(item, len(found), length)]
        if isinstance(taken, range):
            found.append((len(taken), taken.step * stride))
            taken = taken.start
        skipped += taken * stride
    return view.seen([*found, *left], skipped)


def _checked(item: int | slice, axis: int, length: int) -> Any:
    """Return what an axis of that length is indexed with."""
    if isinstance(item, slice):
        if item.step is not None and item.step < 1:
            raise InvalidInput.of("step", item.step, "whole numbers from 1; torch has no negative strides")
    elif not -length <= item < length:
        accepted = f"{-length} to {length - 1}" if length else "none: the axis has no elements"
        raise InvalidInput.of(f"index of axis {axis}", item, accepted)
    return item


def _filled_in(shape: Sequence[int], element_count: int) -> tuple[int, ...]:
    """Return `shape` with its -1, if there is one, replaced by the length that is left.

    Raises:
        InvalidInput: another number of elements, more than one -1, or a length that cannot be.
    """
    with suppress(ValueError):
        if min(shape, default=0) >= -1:  # NumPy takes any negative length for -1
            return np.broadcast_to(np.int8(0), element_count).reshape(shape).shape
    words = f"({', '.join(map(str, shape))})"
    raise InvalidInput.of("shape", words, f"shapes of {element_count:,} elements, one of the lengths may be -1")


def _merged_strides(view: TensorView, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides that show `view` in another shape of as many elements.

    Neighbouring axes whose strides continue each other form a run. The new axes must divide each run among them: one
    that would reach across two runs would need two strides.

    Raises:
        ViewRefused: there are none.
    """
    if not view.axes:
        return (1,) * len(shape)
    if not view.element_count:
        return view.strides if tuple(shape) == view.shape else row_order(shape)
    strides: list[int] = []  # of the new axes, from the last one
    left = list(shape)
    length = 1  # of the run that ends here
    stride = view.strides[-1]
    for axis in reversed(range(view.axes)):
        length *= view.shape[axis]
        if axis and (view.shape[axis - 1] == 1 or view.strides[axis - 1] == length * stride):
            continue
        taken = 1
        while left and (taken < length or left[-1] == 1):
            strides.append(taken * stride)
            taken *= left.pop()
        if taken != length:
            raise ViewRefused(view, shape, (axis, length, stride))
        length = 1
        stride = view.strides[axis - 1]
    return tuple(reversed(strides))


def _kept_strides(view: TensorView) -> tuple[int, ...]:
    """Return the strides of a clone: its axes lie in the order of those of `view`, without gaps.

    A transposed tensor stays transposed. Axes of stride 0 say nothing about order: an insertion sort passes over them.
    """
    if view.seen(sorted(view.pairs, key=lambda pair: -pair[1])).is_contiguous:  # in whatever order of axes
        return view.strides
    order = list(reversed(range(view.axes)))  # from the one that runs fastest
    for last in range(1, view.axes):
        moved = last
        for below in reversed(range(last)):
            length, stride = view.pairs[order[below]]
            others, other = view.pairs[order[moved]]
            if 0 < stride < other:
                break
            if stride and other and (stride, length) > (other, others):
                order[below], order[moved] = order[moved], order[below]
                moved = below
    order.reverse()
    strides = dict(zip(order, row_order([view.shape[axis] for axis in order]), strict=True))
    return tuple(strides[axis] for axis in range(view.axes))
