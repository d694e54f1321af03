"""What an operation is: its shape, its cost, its right answer and every way we compute it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Device, Peak, Shape, Unit

Array = npt.NDArray[np.float64]
Arrays = tuple[Array, ...]

WIDENED: Mapping[str, str] = MappingProxyType({"bf16": "fp32", "fp16": "fp32"})


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to compute an operation.

    Attributes:
        name: what users type, e.g. `numba-cuda`.
        module: its file in the operation's folder; imported on demand, exports `build`.
        backend: its library's file in `gpuexplore.backends`.
        unit: the units it computes on, which decides the peak it is held against.
        arithmetic: dtypes it stores but computes in another one, e.g. bf16 -> fp32.
        about: one sentence for a reader.
    """

    name: str
    module: str
    backend: str
    unit: Unit
    about: str
    arithmetic: Mapping[str, str] = field(default_factory=dict)

    def peak(self, device: Device, dtype: str) -> Peak | None:
        """Return the compute peak this implementation is held against, or None when it is unknown."""
        return device.peak(self.arithmetic.get(dtype, dtype), self.unit)


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
        implementations: every way we compute it, the baseline first.
        is_matrix_product: whether matrix units can compute it.
        samples: parts of a large product to check: (index into the output, inputs that give that part).
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
    implementations: tuple[Implementation, ...]
    is_matrix_product: bool = False
    samples: Callable[[Arrays, np.random.Generator], tuple[tuple[tuple[slice | Array, ...], Arrays], ...]] | None = None

    def byte_count(self, shape: Shape, dtype: DType) -> int:
        """Return the bytes moved at least: each input read once, each output written once."""
        elements = sum(int(np.prod(one, dtype=object)) for one in (*self.inputs(shape), self.output(shape)))
        return elements * dtype.itemsize_bytes

    def implementation_named(self, name: str) -> Implementation:
        """Return the implementation called `name`.

        Raises:
            InvalidInput: this operation has no such implementation.
        """
        for one in self.implementations:
            if one.name == name:
                return one
        raise InvalidInput.of(f"implementation of {self.name}", name, (one.name for one in self.implementations))

    def unsupported(self, dtype: DType) -> str | None:
        """Return why this operation has no meaning in `dtype`, or None when it has."""
        if dtype.matrix_only and not self.is_matrix_product:
            return f"{dtype.name} exists only inside matrix units, and {self.name} is no matrix product"
        return None

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Names of the dtypes this operation has a meaning in."""
        return tuple(name for name, row in DTYPES.items() if self.unsupported(row) is None)
