"""What an operation is: its shape, its cost, its right answer and every way we compute it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpuexplore.backends import load_backend
from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.errors import InvalidInput
from gpuexplore.kernels.geometry import Geometry, Lengths
from gpuexplore.model import LAYOUTS, Device, Layout, Peak, PhaseName, Shape, Unit
from gpuexplore.operations.growth import AS_SUMMED, Growth

Array = npt.NDArray[np.float64]
Arrays = tuple[Array, ...]

LAID_OUT_BY_ROWS = ("numba_cuda", "triton")  # backends whose kernels read contiguous rows
HAND_WRITTEN = ("numba_cpu", "numba_cuda")  # backends whose kernels are in the operations' folders
WIDENED: Mapping[str, str] = MappingProxyType({"bf16": "fp32", "fp16": "fp32"})


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to compute an operation.

    Attributes:
        name: what users type, e.g. `numba-cuda`.
        module: its file in the operation's folder; imported on demand, exports `build`.
        backend: its library's file in `gpuexplore.backends`.
        unit: the units it computes on, which decides the peak it is compared with.
        about: one sentence for a reader; of a rung: what it changed, and why that helps.
        arithmetic: dtypes it stores but computes in another one, e.g. bf16 -> fp32.
        native: dtypes of `arithmetic` it computes in their own units where the device has them.
        on_matrix_units: dtypes it computes on matrix units although `unit` says vector.
        dtypes: the only ones it has code for; empty: all that its library can.
        compute_capability: the least a CUDA device needs for `on_matrix_units`, e.g. `8.0`; None: any.
        otherwise: the implementation to use below `compute_capability`, or above it with `one_generation`.
        one_generation: whether other GPUs than those of `compute_capability` have no such instructions.
        device_kinds: the only devices it differs on from another implementation; empty: all that its library knows.
        vendor_library: it calls the library of the device's vendor, which predictions stand for; one of an operation.
        rung: a step of a kernel ladder, measured when asked for by name and not by default.
        best_rung: it is one of the operation's rungs again, by the dtype or always the same, under its usual name.
        optional: its library is an extra: measured when asked for by name and not by default.
        geometry: how a CUDA kernel of ours covers its output; None for everything else.
        one_thread: dtypes in which it uses one thread of a CPU, however many there are.
        one_thread_up_to: elements of its largest array up to which its library stays on one thread in every dtype.
        streaming_stores: whether it writes large arrays past the caches of a CPU; ordinary stores read each line first.
        growth: by how much roundings of its sums may be larger than where terms are added one by one, by shape, dtype
            and device, for a library that may choose a fast algorithm.
    """

    name: str
    module: str
    backend: str
    unit: Unit
    about: str
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    native: tuple[str, ...] = ()
    on_matrix_units: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    compute_capability: str | None = None
    otherwise: str | None = None
    one_generation: bool = False
    device_kinds: tuple[str, ...] = ()
    vendor_library: bool = False
    rung: bool = False
    best_rung: bool = False
    optional: bool = False
    geometry: Geometry | None = None
    one_thread: tuple[str, ...] = ()
    one_thread_up_to: int = 0
    streaming_stores: bool = False
    growth: Callable[[Shape, DType, Device], Growth] = lambda *_: AS_SUMMED

    @property
    def hand_written(self) -> bool:
        """Whether it is a Numba kernel of ours; the others call a library."""
        return self.backend in HAND_WRITTEN

    @property
    def runs_on_kinds(self) -> tuple[str, ...]:
        """The kinds of devices it runs on."""
        return self.device_kinds or load_backend(self.backend).DEVICE_KINDS

    def runs_on(self, device: Device) -> bool:
        """Return whether it runs on devices of this kind; a row of the table of accelerators is a GPU."""
        return ("cuda" if device.is_hypothetical else device.kind) in self.runs_on_kinds

    def computes_in(self, dtype: str, device: Device | None) -> tuple[str, Unit]:
        """Return the dtype and the units of the arithmetic on `device` when arrays are in `dtype`."""
        own = dtype in self.on_matrix_units or (dtype in self.native and device is not None and dtype in device.native)
        return (
            dtype if own else self.arithmetic.get(dtype, dtype),
            "matrix" if dtype in self.on_matrix_units else self.unit,
        )

    def peak(self, device: Device, dtype: str) -> Peak | None:
        """Return the compute peak this implementation is compared with, or None when it is unknown."""
        return device.peak(*self.computes_in(dtype, device))

    def uses_one_thread(self, dtype: str, elements: int) -> bool:
        """Return whether a CPU computes it on one thread when arrays are in `dtype`, the largest of `elements`."""
        return dtype in self.one_thread or elements <= self.one_thread_up_to

    def lacks_layout(self, layout: Layout) -> str | None:
        """Return why it cannot take matrices in `layout`, or None when it can."""
        by_rows = layout == "NN" or self.backend not in LAID_OUT_BY_ROWS
        return None if by_rows else f"{self.name} reads contiguous rows: it has code for layout NN only"

    def unsupported(self, dtype: DType, device: Device) -> str | None:
        """Return why it has no code for `dtype` on `device`, or None when it has."""
        if not self.runs_on(device):
            return f"{self.name} runs on {' and '.join(self.runs_on_kinds)} devices, and {device.id} is none"
        if self.dtypes and dtype.name not in self.dtypes:
            return f"{self.name} has code for {', '.join(self.dtypes)} only"
        if device.kind != "cuda" or (self.geometry is None and self.compute_capability is None):
            return None
        if dtype.matrix_only and dtype.name not in self.on_matrix_units:
            return f"{dtype.name} exists only inside tensor cores, which {self.name} does not use"
        least = self.compute_capability if dtype.name in self.on_matrix_units else None
        found = device.compute_capability
        other = self.one_generation and found != least
        if least and found and (other or _capability(found) < _capability(least)):
            only = ", and no other" if self.one_generation else ""
            reason = f"{self.name} needs compute capability {least}{only}; {device.name} has {found}"
            return f"{reason}; use {self.otherwise}" if self.otherwise and not dtype.matrix_only else reason
        return None


@dataclass(frozen=True, slots=True)
class Phased:
    """What `build` returns where the parts of a call can be called on their own, each again and again.

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
    """How an output that is too large to be made at once is made in parts, each by the reference of the whole.

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
        name: what users type in place of a shape.
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
            are relative to beside its own size. It broadcasts against the output.
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

    @property
    def vendor_library(self) -> Implementation:
        """The implementation that stands for the library of a device's vendor."""
        return next(implementation for implementation in self.implementations if implementation.vendor_library)

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
        """Whether matrix units can compute it."""
        return self.products is not None

    def byte_count(self, shape: Shape, dtype: DType) -> int:
        """Return the bytes moved at least: each input read once, each output written once."""
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
        """Return the implementation called `name`.

        Raises:
            InvalidInput: this operation has no such implementation.
        """
        for implementation in self.implementations:
            if implementation.name == name:
                return implementation
        raise InvalidInput.of(
            f"implementation of {self.name}", name, (implementation.name for implementation in self.implementations)
        )

    def unsupported(self, dtype: DType) -> str | None:
        """Return why this operation has no meaning in `dtype`, or None when it has."""
        if dtype.matrix_only and not self.is_matrix_product:
            return f"{dtype.name} exists only inside matrix units, and {self.name} is no matrix product"
        return None

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts its inputs can have."""
        return LAYOUTS if self.has_layouts else ("NN",)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the dtypes this operation has a meaning in."""
        return tuple(name for name, row in DTYPES.items() if self.unsupported(row) is None)


def _capability(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split("."))
