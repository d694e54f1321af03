"""Shapes that implementations are checked at: lengths of one, and those next to what blocks and tiles are made for."""

from collections.abc import Mapping
from types import MappingProxyType

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import Lengths
from gpuexplore.operations.contract import Operation

AWKWARD: Mapping[int, tuple[Lengths, ...]] = MappingProxyType(
    {
        1: ((1,), (255,), (257,)),
        2: ((1, 1), (1, 257), (255, 1), (257, 255), (255, 257)),
        3: ((1, 1, 1), (1, 257, 255), (255, 1, 257), (257, 255, 1), (255, 257, 33), (257, 17, 255)),
    }
)


def awkward_shapes(operation: Operation) -> list[Shape]:
    """Return the shapes that an operation names, else those for its number of axes.

    Raises:
        InvalidInput: it names none, and there are none for its number of axes.
    """
    return shapes_of(operation, operation.awkward or AWKWARD.get(len(operation.axes), ()), "awkward")


def shapes_of(operation: Operation, listed: tuple[Lengths, ...], field: str) -> list[Shape]:
    """Return the shapes of these lengths, which stand in `field`.

    Raises:
        InvalidInput: there are none, or one of them has no meaning.
    """
    if not listed:
        raise InvalidInput(f"{operation.name} has {len(operation.axes)} axes: give lengths worth testing in `{field}=`")
    axes = (*operation.axes, *operation.flags)
    shapes = [Shape(tuple(zip(axes[: len(lengths)], lengths, strict=True))) for lengths in listed]
    if problems := [problem for shape in shapes if (problem := operation.problem(shape))]:
        raise InvalidInput(f"give {operation.name} other lengths in `{field}=`: {problems[0]}")
    return shapes
