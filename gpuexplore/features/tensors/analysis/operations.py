"""The methods of a chain and its indexing: what each makes of shape, strides and offset, as torch defines it.

Strides after a change of shape follow torch's ATen/TensorUtils.cpp and ATen/ExpandUtils.cpp.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from math import prod
from types import MappingProxyType
from typing import Any

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis import ChainStep, TensorView, row_order
from gpuexplore.features.tensors.analysis.expression import Item


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
    if not -count <= axis < count:
        raise InvalidInput.of("axis", axis, f"{-count} to {count - 1}")
    return axis % count


def _view(view: TensorView, *lengths: int) -> ChainStep:
    shape = _filled_in(lengths, view.element_count)
    return ChainStep(view.seen(shape, _merged_strides(view, shape)))


def _reshape(view: TensorView, *lengths: int) -> ChainStep:
    shape = _filled_in(lengths, view.element_count)
    try:
        strides = _merged_strides(view, shape)
    except ViewRefused as refused:
        return _copied(shape, f"axes {refused.outer} and {refused.inner} cannot be merged: reshape has to copy")
    return ChainStep(view.seen(shape, strides), why="the strides allow a view: no copy")


def _flatten(view: TensorView, first: int = 0, last: int = -1) -> ChainStep:
    start = _axis_of(view, first)
    end = _axis_of(view, last)
    if start > end:
        raise InvalidInput.of("flatten from axis", first, f"axes up to the last one, {last}")
    if not view.axes:
        return _reshape(view, 1)
    if start == end:
        return ChainStep(view, "same", "a single axis is already flat")
    return _reshape(view, *view.shape[:start], prod(view.shape[start : end + 1]), *view.shape[end + 1 :])


def _contiguous(view: TensorView) -> ChainStep:
    if view.is_contiguous:
        return ChainStep(view, "same", "already contiguous: no copy")
    return _copied(view.shape, "its elements are copied into new storage in row order")


def _t(view: TensorView) -> ChainStep:
    if view.axes > 2:
        raise InvalidInput.of("t of", f"{view.axes} axes", "at most 2; transpose and permute take more")
    return _reversed(view)


def _transpose(view: TensorView, first: int, second: int) -> ChainStep:
    swapped = {_axis_of(view, first): second, _axis_of(view, second): first}
    return _permute(view, *(swapped.get(axis, axis) for axis in range(view.axes)))


def _permute(view: TensorView, *order: int) -> ChainStep:
    axes = [_axis_of(view, axis) for axis in order]
    if sorted(axes) != list(range(view.axes)):
        raise InvalidInput.of("order", order, f"each of the {view.axes} axes once")
    return _of_axes(view, axes)


def _of_axes(view: TensorView, axes: Sequence[int]) -> ChainStep:
    return ChainStep(view.seen([view.shape[axis] for axis in axes], [view.strides[axis] for axis in axes]))


def _expand(view: TensorView, *lengths: int) -> ChainStep:
    """Axes of length 1, and new ones in front, are repeated by a stride of 0."""
    new = len(lengths) - view.axes
    if new < 0:
        raise InvalidInput.of("expand to", f"{len(lengths)} axes", f"at least {view.axes}")
    shape = list(view.shape)
    strides = list(view.strides)
    for axis in reversed(range(len(lengths))):
        asked = lengths[axis]
        if axis < new:
            if asked < 0:
                raise InvalidInput.of(f"length of axis {axis}", asked, "whole numbers from 0")
            shape.insert(0, asked)
            strides.insert(0, strides[0] * shape[1] if asked == 1 and strides else 0)
        elif asked not in (-1, shape[axis - new]):
            if shape[axis - new] != 1 or asked < 0:
                accepted = f"{shape[axis - new]}, its length, or -1; only an axis of length 1 can be expanded"
                raise InvalidInput.of(f"length of axis {axis}", asked, accepted)
            shape[axis - new] = asked
            strides[axis - new] = 0
    return ChainStep(view.seen(shape, strides if view.axes else [0] * len(lengths)))


def _squeeze(view: TensorView, *axes: int) -> ChainStep:
    named = [_axis_of(view, axis) for axis in axes]
    dropped = set(named) or set(range(view.axes))
    if len(dropped) < len(named):
        raise InvalidInput.of("axes to squeeze", axes, "each axis once")
    return _of_axes(view, [axis for axis in range(view.axes) if axis not in dropped or view.shape[axis] != 1])


def _select(view: TensorView, axis: int, index: int) -> ChainStep:
    if not view.axes:
        raise InvalidInput.of("select of", "a scalar", "tensors with an axis")
    return ChainStep(_selected(view, _axis_of(view, axis), index))


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
    return ChainStep(_narrowed(view, dim, first, count=length))


def _matmul(view: TensorView, other: TensorView) -> ChainStep:
    if view.axes != 2 or other.axes != 2 or view.shape[1] != other.shape[0]:
        raise InvalidInput.of("product of shapes", f"{view.shape} and {other.shape}", "(m, k) and (k, n)")
    shape = (view.shape[0], other.shape[1])
    return ChainStep(TensorView(shape, row_order(shape)), "result", "a product is computed into new storage")


def _clone(view: TensorView) -> ChainStep:
    return _copied(view.shape, "clone always copies, and keeps the order of the strides", _kept_strides(view))


def _unsqueeze(view: TensorView, axis: int) -> ChainStep:
    return ChainStep(_with_axis(view, _axis_of(view, axis, more=1)))


def _reversed(view: TensorView) -> ChainStep:
    return _of_axes(view, range(view.axes)[::-1])


# by name: what returns the step, without its text, for a tensor and the arguments; and how it is written
METHODS: Mapping[str, tuple[Callable[..., ChainStep], str]] = MappingProxyType(
    {
        "view": (_view, ".view(4, 4) with lengths, one of which may be -1"),
        "reshape": (_reshape, ".reshape(4, 4) with lengths, one of which may be -1"),
        "flatten": (_flatten, ".flatten() or .flatten(first axis, last axis)"),
        "contiguous": (_contiguous, ".contiguous()"),
        "clone": (_clone, ".clone()"),
        "t": (_t, ".t()"),
        "T": (_reversed, ".T"),
        "transpose": (_transpose, ".transpose(axis, axis)"),
        "permute": (_permute, ".permute(1, 0) with every axis once"),
        "expand": (_expand, ".expand(4, -1) with lengths"),
        "broadcast_to": (_expand, ".broadcast_to(4, 4) with lengths"),
        "unsqueeze": (_unsqueeze, ".unsqueeze(axis)"),
        "squeeze": (_squeeze, ".squeeze() or .squeeze(axis)"),
        "select": (_select, ".select(axis, index)"),
        "narrow": (_narrow, ".narrow(axis, start, length)"),
        "matmul": (_matmul, ".matmul(name of a tensor)"),
    }
)


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
    return method(view, *arguments)


def indexed(view: TensorView, items: Sequence[Item]) -> TensorView:
    """Return the view that `items` in square brackets show of `view`, as torch's basic indexing does.

    Each item takes an axis, shortens it, or adds one; nothing is ever copied.

    Raises:
        InvalidInput: more items than axes, an index outside its axis, or a step below 1.
    """
    named = sum(isinstance(item, int | slice) for item in items)
    if named > view.axes:
        raise InvalidInput.of("index of", f"{named} items", f"at most {view.axes}: the tensor has {view.axes} axes")
    left_out = view.axes - named
    axis = 0
    for item in items:
        if isinstance(item, int):
            view = _selected(view, axis, item)
        elif isinstance(item, slice):
            view = _sliced(view, axis, item)
            axis += 1
        elif item is None:
            view = _with_axis(view, axis)
            axis += 1
        else:
            axis += left_out
    return view


def _selected(view: TensorView, axis: int, index: int) -> TensorView:
    """Return `view` without `axis`, at `index` of it."""
    length = view.shape[axis]
    if not -length <= index < length:
        accepted = f"{-length} to {length - 1}" if length else "none: the axis has no elements"
        raise InvalidInput.of(f"index of axis {axis}", index, accepted)
    shape = view.shape[:axis] + view.shape[axis + 1 :]
    return view.seen(shape, view.strides[:axis] + view.strides[axis + 1 :], index % length * view.strides[axis])


def _sliced(view: TensorView, axis: int, part: slice) -> TensorView:
    """Return `view` with `axis` cut to a slice; ends beyond the axis are moved to its ends, as in Python."""
    step = 1 if part.step is None else part.step
    if step < 1:
        raise InvalidInput.of("step", step, "whole numbers from 1; torch has no negative strides")
    taken = range(view.shape[axis])[part]
    return _narrowed(view, axis, taken.start, count=len(taken), step=step)


def _narrowed(view: TensorView, axis: int, start: int, *, count: int, step: int = 1) -> TensorView:
    """Return `count` elements of `axis` from `start` on, `step` apart."""
    shape = list(view.shape)
    shape[axis] = count
    strides = list(view.strides)
    strides[axis] *= step
    return view.seen(shape, strides, start * view.strides[axis])


def _with_axis(view: TensorView, axis: int) -> TensorView:
    """Return `view` with an axis of length 1 before `axis`; its stride is the one that would step over what follows."""
    stride = 1 if axis == view.axes else view.shape[axis] * view.strides[axis]
    return view.seen((*view.shape[:axis], 1, *view.shape[axis:]), (*view.strides[:axis], stride, *view.strides[axis:]))


def _filled_in(shape: Sequence[int], element_count: int) -> tuple[int, ...]:
    """Return `shape` with its -1, if there is one, replaced by the length that is left.

    Raises:
        InvalidInput: another number of elements, more than one -1, or a length that cannot be.
    """
    asked = list(shape)
    words = f"({', '.join(map(str, asked))})"
    if any(length < -1 for length in asked) or asked.count(-1) > 1:
        raise InvalidInput.of("shape", words, "lengths from 0, one of them may be -1")
    known = prod(length for length in asked if length != -1)
    if -1 in asked and known and element_count % known == 0:
        asked[asked.index(-1)] = element_count // known
    elif -1 in asked or known != element_count:
        raise InvalidInput.of("shape", words, f"shapes of {element_count:,} elements")
    return tuple(asked)


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
    for first, length, stride in _runs(view):
        taken = 1
        while left and (taken < length or left[-1] == 1):
            strides.append(taken * stride)
            taken *= left.pop()
        if taken != length:
            raise ViewRefused(view, shape, (first, length, stride))
    return tuple(reversed(strides))


def _runs(view: TensorView) -> Iterator[tuple[int, int, int]]:
    """Yield runs of axes, the last one first: where each begins, how many elements it has, and how far apart."""
    length = 1
    stride = view.strides[-1]
    for axis in reversed(range(view.axes)):
        length *= view.shape[axis]
        if axis == 0 or (view.shape[axis - 1] != 1 and view.strides[axis - 1] != length * stride):
            yield axis, length, stride
            length = 1
            stride = view.strides[axis - 1]


def _kept_strides(view: TensorView) -> tuple[int, ...]:
    """Return the strides of a clone: its axes lie in the order of those of `view`, without gaps.

    A transposed tensor stays transposed. Axes of stride 0 say nothing about order, and stay where they are.
    """
    if _is_dense(view):
        return view.strides
    strides = [0] * view.axes
    step = 1
    for axis in _sorted(view):
        strides[axis] = step
        step *= max(view.shape[axis], 1)
    return tuple(strides)


def _is_dense(view: TensorView) -> bool:
    """Return whether its elements fill a stretch of cells, each once, in whatever order of axes."""
    if view.is_contiguous:
        return True
    step = 1
    long = [axis for axis in range(view.axes) if view.shape[axis] > 1]
    for axis in sorted(long, key=lambda axis: view.strides[axis]):
        if view.strides[axis] != step:
            return False
        step *= view.shape[axis]
    return True


def _sorted(view: TensorView) -> list[int]:
    """Return the axes from the one that runs fastest, by an insertion sort that passes over ambiguous pairs."""
    order = list(reversed(range(view.axes)))
    for i in range(1, len(order)):
        moved = i
        for below in reversed(range(i)):
            found = _compare(view, order[below], order[moved])
            if found < 0:
                break
            if found > 0:
                order[below], order[moved] = order[moved], order[below]
                moved = below
    return order


def _compare(view: TensorView, axis: int, other: int) -> int:
    stride = view.strides[axis]
    others = view.strides[other]
    if 0 in (stride, others):
        return 0
    return stride - others or int(view.shape[axis] > view.shape[other])
