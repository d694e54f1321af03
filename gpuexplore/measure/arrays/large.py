"""Which cases are too large to make and to check on the host and stay on their device, and how they are cut there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

from gpuexplore.model import Shape
from gpuexplore.operations.contract import Operation

LARGE = 2**22  # elements of all arrays: a product of 1183; ten times as many take the host seconds a set of inputs
BLOCK_ELEMENTS = 2**24  # that a device computes at a time: 128 MB in float64
PRODUCT_ELEMENTS = 2**22  # of three matrices: a larger product is a block, and made by rows and columns itself
Lengths = tuple[int, ...]


@dataclass(frozen=True)
class BlockLayout:
    """How the output of a large case is cut, by `Operation.cut`: along its leading axes, which count as one.

    Attributes:
        leading: lengths of these axes; none: the output is one part.
        inputs: lengths of what each place along them takes of the inputs that are cut, and of all of the others.
        is_cut: which inputs are.
        output: lengths of what each place gives.
        product: whether each place is a product of its own.
    """

    leading: Lengths
    inputs: tuple[Lengths, ...]
    is_cut: tuple[bool, ...]
    output: Lengths
    product: bool

    @property
    def count(self) -> int:
        """How many places there are along the leading axes."""
        return prod(self.leading)

    @cached_property
    def own(self) -> int:
        """Elements of what one place takes and gives."""
        cut = sum(prod(lengths) for lengths, is_cut in zip(self.inputs, self.is_cut, strict=True) if is_cut)
        return cut + prod(self.output)

    @cached_property
    def shared(self) -> int:
        """Elements of what every place takes."""
        return sum(prod(lengths) for lengths, is_cut in zip(self.inputs, self.is_cut, strict=True) if not is_cut)

    @property
    def by_lines(self) -> bool:
        """Whether each place is a product so large that its rows and columns are made in blocks."""
        return self.product and (not self.leading or self.own + self.shared > PRODUCT_ELEMENTS)

    def blocks(self) -> Iterator[slice]:
        """Yield ranges of places that are made together."""
        step = 1 if self.by_lines else max(1, (BLOCK_ELEMENTS - self.shared) // self.own)
        yield from (slice(start, min(start + step, self.count)) for start in range(0, self.count, step))


def layout(operation: Operation, shape: Shape) -> BlockLayout:
    """Return how a large case of an operation that can be cut is cut."""
    if operation.cut is None:
        raise ValueError(f"{operation.name} is not cut")
    cut, output, inputs = operation.cut(shape), operation.output(shape), operation.inputs(shape)
    axes = max(cut.leading)
    return BlockLayout(
        leading=output[:axes],
        inputs=tuple(array[leading:] for array, leading in zip(inputs, cut.leading, strict=True)),
        is_cut=tuple(leading > 0 for leading in cut.leading),
        output=output[axes:],
        product=cut.product,
    )


def is_large(operation: Operation, shape: Shape) -> bool:
    """Return whether a case is of such a size, and can be cut."""
    return operation.cut is not None and sum(map(prod, (*operation.inputs(shape), operation.output(shape)))) >= LARGE
