"""The inputs of a case, random normal numbers rounded to its dtype, and the reference computed from them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.core.dtypes import FP32_SIGNIFICAND_BITS, DType, Stored
from gpuexplore.core.model import DataMode, Shape
from gpuexplore.measure.arrays.large import CONSTANTS
from gpuexplore.measure.arrays.sums import Sums, sums_of
from gpuexplore.measure.check.correctness import rounded_error, summed_error
from gpuexplore.operations.contract import Arrays, Operation

Expected = tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.float32]]  # index, values and what they were summed of
SEED = 20  # where the same numbers are wanted in every run, on every machine


def make_inputs(
    operation: Operation, shape: Shape, dtype: DType, data: DataMode, *, seed: int = SEED
) -> tuple[Stored, ...]:
    """Return the inputs of one case in the dtype's storage: random normal, all zeros or all ones."""
    generator = np.random.default_rng(seed)
    wide = dtype.significand_bits > FP32_SIGNIFICAND_BITS

    def fill(lengths: tuple[int, ...]) -> npt.NDArray[np.floating[Any]]:
        if data != "normal":
            return np.full(lengths, CONSTANTS[data])
        return generator.standard_normal(lengths) if wide else generator.standard_normal(lengths, np.float32)

    return tuple(map(dtype.round, operation.prepared(tuple(fill(array) for array in operation.inputs(shape)))))


@dataclass(frozen=True)
class Reference:
    """The expected output in float64, computed from the very inputs the implementations get.

    Of large products only some rows and columns (`Operation.samples`) are computed, which `seed` chooses.
    """

    operation: Operation
    dtype: DType
    inputs: tuple[Any, ...]  # `Stored`, or `DeviceFloat64`, for which all else is made on the device too
    seed: int = SEED

    @cached_property
    def parts(self) -> tuple[tuple[Any, npt.NDArray[np.float64]], ...]:
        """Pairs of an index into the output and the expected values there."""
        return tuple((index, expected) for index, expected, _ in self._computed[0])

    @cached_property
    def scales(self) -> tuple[npt.NDArray[np.float32], ...]:
        """The sizes of what the elements of each part were summed of; they broadcast against it."""
        return tuple(scale for _, _, scale in self._computed[0])

    @property
    def sums(self) -> Sums | None:
        """The sums that check elements in no part, as far as the operation allows it; None where none is left."""
        return self._computed[1]

    @cached_property
    def _computed(self) -> tuple[list[Expected], Sums | None]:
        operation = self.operation
        wide = self._wide
        if operation.samples is None:
            whole = operation.reference(*wide)
            scale = _scale(operation, whole, wide)
            return [(index, whole[index], scale[index]) for index in self._quantities], None
        chosen = operation.samples(wide, np.random.default_rng(self.seed))
        parts: list[Expected] = []
        for index, some in chosen:
            expected = operation.reference(*some)
            parts.append((index, expected, _scale(operation, expected, some)))
        return parts, None if chosen[0][1] is wide else sums_of(operation, wide, self.seed)

    @cached_property
    def leeways(self) -> tuple[float, ...]:
        """The error of each part by roundings across kinks, as a norm: 0 where none is near."""
        if self.operation.across_kinks is None:
            return (0.0,) * len(self.parts)
        both = self.operation.across_kinks(self._wide, rounded_error(self.dtype), summed_error(self.dtype))
        if both is None:
            return (0.0,) * len(self.parts)
        difference = both[0] - both[1]
        return tuple(float(np.linalg.norm(difference[index])) for index, _ in self.parts)

    @property
    def _wide(self) -> Arrays:
        return tuple(self.dtype.widen(array) if isinstance(array, np.ndarray) else array for array in self.inputs)

    @property
    def _quantities(self) -> tuple[Any, ...]:
        return self.operation.quantities(self.inputs) if self.operation.quantities else (...,)


def _scale(operation: Operation, expected: npt.NDArray[np.float64], inputs: Arrays) -> npt.NDArray[np.float32]:
    scale: Any = operation.scale(expected, *inputs)
    return np.asarray(scale, np.float32) if isinstance(scale, np.ndarray | float) else scale
