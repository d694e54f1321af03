"""The contract of an operation: its shape, its cost, its right answer and every way we compute it.

The scale of roundings inside an element: the size of its terms, for it is small itself where they cancel.

Where terms t of either sign are added, partial sums are of the size of √Σt², whatever is left in the end, and each
rounding of one adds an error relative to that. Each function returns such sizes for an expected output and the inputs
it was computed from; they broadcast against the output.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gpuexplore.core import LAYOUTS, InvalidInput, Layout, PhaseName, Shape
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.geometry import Lengths
from gpuexplore.operations.implementation import OF_USERS, Implementation, row_of_user

Array = np.typing.NDArray[np.float64]
Arrays = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Phased:
    """The return value of `build` where the phases of a call can be called separately and repeatedly.

    Attributes:
        run: the whole call.
        phases: its parts by name, in order; one after the other they compute what `run` computes.
    """

    run: Callable[[], object]
    phases: Mapping[PhaseName, Callable[[], object]]

    def __call__(self) -> None:
        """Run the whole."""
        self.run()


class Product(NamedTuple):
    """`batch` matrix products (m, k) @ (k, n) -> (m, n) that matrix units can compute in tiles."""

    batch: int
    m: int
    n: int
    k: int


class Cut(NamedTuple):
    """The division of an output that is too large to be computed at once, each part by the reference of the whole.

    Attributes:
        leading: of each input, how many of its first axes are the output's, each index of which stands for itself; 0:
            every part needs all of the input.
        product: what is left is one product (m, k) @ (k, n), which is made by rows and columns where it is large.
    """

    leading: tuple[int, ...]
    product: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """Exact shapes worth a name, e.g. a notebook's.

    Attributes:
        name: what users type instead of a shape.
        shape: its axes.
        about: where it comes from, and what to look at.
    """

    name: str
    shape: Shape
    about: str


class Example(NamedTuple):
    """A shape whose costs were worked out by hand, which the formulas of the contract are compared with.

    Attributes:
        shape: a small one, with different lengths.
        flop_count: what `flop_count` has to say.
        fp32_bytes: what `byte_count` has to say in fp32.
        terms: what `reduction_length` has to say.
    """

    shape: Shape
    flop_count: int
    fp32_bytes: int
    terms: int


@dataclass(frozen=True, slots=True)
class Operation:
    """The contract of one operation; everything else treats it as data.

    Attributes:
        name: what users type.
        title: for headings.
        formula: the mathematics with shapes, e.g. `(m, k) @ (k, n) -> (m, n)`.
        about: where it stands on the roofline, a sentence or two.
        axes: names of the axes of a shape, in order.
        limits: largest length of each axis.
        default_sizes: a sweep that says something within seconds.
        shape_of_size: the shape one number stands for.
        inputs: array shapes of the inputs.
        output: array shape of the output.
        flop_count: floating-point operations, a multiply-add counted as 2.
        reference: the right answer in float64 from float64 inputs.
        reduction_length: terms summed into one output element.
        scale: the size of what each element was summed of, from the expected output and the inputs: what its roundings
            are relative to, besides its own size. It broadcasts against the output.
        implementations: every way we compute it, the baseline first.
        examples: shapes whose costs were worked out by hand, at least one.
        products: the matrix products in it, which matrix units can compute; None: it has none.
        presets: shapes with a name.
        problem: why a shape has no meaning although every axis is within its limit, or None.
        halved: a shape of the same proportions for a cheaper trial.
        samples: parts of a large product to check: (index into the output, inputs that give that part).
        linear: axes of the last input and of the output along which the output is linear in it: where only samples are
            checked one by one, sums along this axis check all the others.
        prepared: what random normal, zero or one arrays become before they are rounded, e.g. weights scaled by powers
            of two, which is exact in every dtype.
        quantities: where each quantity lies in an output that holds several; each is checked by its own norm.
        roundings: how many roundings to the dtype follow one another on the longest way from an input to the output.
        phases: the parts of a call that are timed on their own as well, in order, with the FLOPs of each; the
            optimizer of a training step follows it, and is no part of it.
        calls: how many kernels a library launches for it at least; predictions count each.
        cut: how large outputs of a shape are made in parts, on the device; None: they are made whole, on the host.
        across_kinks: the outputs if every number that roundings could carry over a kink lay above it, and below it;
            None where there is none. From the inputs, and the relative errors of a rounded number and of a summed term.
        awkward: lengths of the axes at which implementations are tested; empty: those of its number of axes.
        simulated: the same for CUDA kernels without a GPU: one element; two shapes of more than a block's work, rows
            of odd lengths and of whole vectors among them; others; last a small one; empty: those of its number of
            axes.
        nominal_flops: whether the FLOPs of a shape are a convention: an exponential, a root or a division counts as one
            though it takes several instructions. No compute limit follows from such a count.
        has_layouts: whether its first two inputs are matrices that may lie in memory by rows or by columns.
        multiply_adds: whether multiplications and additions come in pairs, as peaks count them; alone, they can reach
            half of a peak.
        bytes_moved: bytes moved at least, of a shape in a dtype; None: each input read once, each output written once.
        of_name: what is known of any implementation by its name; None: `implementations` and those of users are all.
        flags: axes that a shape has only where they are 1, such as a mask, and what the operation is then.
    """

    name: str
    title: str
    formula: str
    about: str
    axes: tuple[str, ...]
    limits: Mapping[str, int]
    default_sizes: tuple[int, ...]
    shape_of_size: Callable[[int], Shape]
    inputs: Callable[[Shape], tuple[tuple[int, ...], ...]]
    output: Callable[[Shape], tuple[int, ...]]
    flop_count: Callable[[Shape], int]
    reference: Callable[..., Array]
    reduction_length: Callable[[Shape], int]
    scale: Callable[..., Array | float]
    implementations: tuple[Implementation, ...]
    examples: tuple[Example, ...]
    products: Callable[[Shape], tuple[Product, ...]] | None = None
    presets: tuple[Preset, ...] = ()
    problem: Callable[[Shape], str | None] = lambda _: None
    halved: Callable[[Shape], Shape] = lambda shape: shape.scaled(0.5)
    samples: Callable[[Arrays, np.random.Generator], tuple[tuple[tuple[slice | Array, ...], Arrays], ...]] | None = None
    linear: tuple[int, int] | None = None
    prepared: Callable[[tuple[Any, ...]], tuple[Any, ...]] = lambda arrays: arrays
    quantities: Callable[[Arrays], tuple[slice, ...]] | None = None
    roundings: Callable[[Shape], int] = lambda _: 1
    phases: Mapping[PhaseName, Callable[[Shape], int]] = field(default_factory=dict)
    calls: Callable[[Shape], int] = lambda _: 1
    cut: Callable[[Shape], Cut] | None = None
    across_kinks: Callable[[Arrays, float, float], tuple[Array, Array] | None] | None = None
    awkward: tuple[Lengths, ...] = ()
    simulated: tuple[Lengths, ...] = ()
    nominal_flops: Callable[[Shape], bool] = lambda _: False
    has_layouts: bool = False
    multiply_adds: bool = True
    bytes_moved: Callable[[Shape, DType], int] | None = None
    of_name: Callable[[str], Implementation] | None = None
    flags: Mapping[str, Callable[["Operation"], "Operation"]] = field(default_factory=dict)

    @property
    def vendor_library(self) -> Implementation:
        """The implementation that stands for the library of a device's vendor."""
        for implementation in self.implementations:
            if implementation.vendor_library:
                return implementation
        raise InvalidInput(
            f"{self.name} is declared by a user: no vendor library computes it, so there is no prediction"
        )

    @property
    def usual(self) -> tuple[Implementation, ...]:
        """The implementations that are measured where none is asked for by name."""
        return tuple(
            implementation
            for implementation in self.implementations
            if not (implementation.rung or implementation.optional)
        )

    @property
    def is_matrix_product(self) -> bool:
        """True if matrix units can compute it."""
        return self.products is not None

    def flags_of(self, shape: Shape) -> tuple[str, ...]:
        """Return the flags that a shape has."""
        return tuple(axis for axis, _ in shape.axes if axis in self.flags)

    def at(self, shape: Shape) -> "Operation":
        """Return what the operation is with the flags of a shape: its reference is another one."""
        return reduce(lambda operation, flag: self.flags[flag](operation), self.flags_of(shape), self)

    def byte_count(self, shape: Shape, dtype: DType) -> int:
        """Return the bytes moved at least: each input read once, each output written once."""
        if self.bytes_moved is not None:
            return self.bytes_moved(shape, dtype)
        elements = sum(prod(array) for array in (*self.inputs(shape), self.output(shape)))
        return elements * dtype.itemsize_bytes

    def largest_array(self, shape: Shape) -> int:
        """Return the elements of the largest input or output."""
        return max(prod(array) for array in (*self.inputs(shape), self.output(shape)))

    def uses_one_thread(self, implementation: str, dtype: str, shape: Shape) -> bool:
        """Return whether `implementation` computes on one thread of a CPU, however many there are."""
        return self.implementation_named(implementation).uses_one_thread(dtype, self.largest_array(shape))

    def written_share(self, shape: Shape) -> float:
        """Return the share of `byte_count` that is written."""
        written = prod(self.output(shape))
        return written / (written + sum(prod(array) for array in self.inputs(shape)))

    def size_of(self, shape: Shape) -> int | None:
        """Return the one number `shape` stands for, e.g. 512 for a square product; None for other shapes."""
        return next((size for size in shape if self.shape_of_size(size) == shape), None)

    def implementation_named(self, name: str) -> Implementation:
        """Return the implementation called `name`: one of `implementations`, or what is known of a user's.

        Raises:
            InvalidInput: this operation has no such implementation.
        """
        if self.of_name is not None:
            return self.of_name(name)
        if OF_USERS in name:
            return row_of_user(name, self.name, self.implementations, is_product=self.is_matrix_product)
        for implementation in self.implementations:
            if implementation.name == name:
                return implementation
        raise InvalidInput.of(
            f"implementation of {self.name}", name, (implementation.name for implementation in self.implementations)
        )

    def unsupported(self, dtype: DType) -> str | None:
        """Return why this operation has no meaning in `dtype`, or None when it has."""
        if dtype.matrix_only and not self.is_matrix_product:
            return f"{dtype.name} exists only inside matrix units, but {self.name} is not a matmul"
        return None

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts its inputs can have."""
        return LAYOUTS if self.has_layouts else ("NN",)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the dtypes this operation has a meaning in."""
        return tuple(name for name, row in DTYPES.items() if self.unsupported(row) is None)


# lengths of one, and those next to what blocks and tiles are made for, by the number of axes
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


NEGLIGIBLE = 1e-12  # of the whole output: what is smaller is a zero that float64 missed, and has no size of its own


def own_size(*_: Array) -> float:
    """Return 0: nothing cancels, an element's error is relative to itself."""
    return 0.0


def of_rows(expected: Array, *_: Array) -> Array:
    """Return the root mean square of each row of the output, along its last axis."""
    return norms(expected, axis=-1)[..., None] / np.sqrt(expected.shape[-1])


def of_sums(_: Array, rows: Array) -> Array:
    """Return √Σt² of sums of rows, which are their own terms."""
    return norms(rows, axis=-1)


def of_products(_: Array, left: Array, right: Array) -> Any:
    """Return |a|·|b|/√k of products (..., m, k) @ (..., k, n) or @ (k): √Σt² of terms with independent factors."""
    rows = norms(left, axis=-1) / np.sqrt(left.shape[-1])
    if right.ndim == 1:
        return np.multiply(rows, norms(right, axis=0))
    return np.multiply(rows[..., :, None], norms(right, axis=-2)[..., None, :])


def of_gradients(terms: Array, slices: Sequence[slice], shapes: Sequence[tuple[int, ...]]) -> Array:
    """Return the sizes of what a loss and gradients, which lie one after the other, were summed of.

    A gradient is a sum of products of an activation and an error, so its rows and its columns have sizes of their own;
    what is larger counts, and no less than the whole of it. One that is zero but for roundings has that of the output.
    """
    scale = np.empty_like(terms)
    whole = float(np.sqrt(np.mean(np.square(terms))))
    for part, shape in zip(slices, shapes, strict=True):
        square = np.square(terms[part]).reshape(shape[0], -1)
        lines = np.maximum(square.mean(axis=1, keepdims=True), square.mean(axis=0, keepdims=True))
        is_zero = not square.mean() > (NEGLIGIBLE * whole) ** 2
        scale[part] = whole if is_zero else np.sqrt(np.maximum(lines, square.mean())).ravel()
    return scale


def norms(array: Array, axis: int) -> Array:
    """Return norms along one axis, without a copy of the array."""
    moved = np.moveaxis(array, axis, -1)
    return np.sqrt(np.einsum("...i,...i->...", moved, moved))
