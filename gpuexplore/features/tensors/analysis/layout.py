"""Strides after a change of shape: torch's rules, from its ATen/TensorUtils.cpp and ATen/ExpandUtils.cpp."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis import TensorView, row_order


@dataclass(frozen=True, slots=True)
class Barrier:
    """Two neighbouring axes that no single stride steps through, although a new shape would need one.

    Attributes:
        outer: the axis before it; `stride` is its stride.
        inner: the axis after it; from there on one stride, `run_stride`, steps through `run_length` elements.
    """

    outer: int
    inner: int
    stride: int
    run_length: int
    run_stride: int

    @property
    def needed_stride(self) -> int:
        """The stride that `outer` would need to go on where `inner` ends."""
        return self.run_length * self.run_stride


def filled_in(shape: Sequence[int], element_count: int) -> tuple[int, ...]:
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


def merged_strides(view: TensorView, shape: Sequence[int]) -> tuple[int, ...] | Barrier:
    """Return the strides that show `view` in another shape of as many elements, or what prevents it.

    Neighbouring axes whose strides continue each other form a run. The new axes must divide each run among them: one
    that would reach across two runs would need two strides.
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
            return Barrier(first - 1, first, view.strides[first - 1], length, stride)
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


def kept_strides(view: TensorView) -> tuple[int, ...]:
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


def has_overlap(view: TensorView) -> bool:
    """Return whether elements share a cell because an axis is broadcast: torch refuses to write to such a tensor."""
    axes = zip(view.shape, view.strides, strict=True)
    return view.element_count > 0 and any(stride == 0 and length > 1 for length, stride in axes)


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
