"""The inputs of a case, random normal numbers rounded to its dtype, and the reference computed from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import FP32_SIGNIFICAND_BITS, DType, Stored
from gpuexplore.measure.correctness import rounded_error, summed_error
from gpuexplore.model import DataMode, Shape
from gpuexplore.operations.contract import Arrays, Operation

CONSTANTS: Mapping[DataMode, float] = {"zeros": 0.0, "ones": 1.0}
SEED = 20  # fixed: the same shape holds the same numbers in every run, on every machine


def make_inputs(operation: Operation, shape: Shape, dtype: DType, data: DataMode) -> tuple[Stored, ...]:
    """Return the inputs of one case in the dtype's storage: random normal, all zeros or all ones."""
    generator = np.random.default_rng(SEED)
    wide = dtype.significand_bits > FP32_SIGNIFICAND_BITS

    def fill(lengths: tuple[int, ...]) -> npt.NDArray[np.floating[Any]]:
        if data != "normal":
            return np.full(lengths, CONSTANTS[data])
        return generator.standard_normal(lengths) if wide else generator.standard_normal(lengths, np.float32)

    return tuple(map(dtype.round, operation.prepared(tuple(fill(array) for array in operation.inputs(shape)))))


@dataclass(frozen=True)
class Reference:
    """The expected output in float64, computed from the very inputs the implementations get.

    Of large products only some rows and columns (`Operation.samples`) are computed.
    """

    operation: Operation
    dtype: DType
    inputs: tuple[Stored, ...]

    @cached_property
    def parts(self) -> tuple[tuple[Any, npt.NDArray[np.float64]], ...]:
        """Pairs of an index into the output and the expected values there."""
        if self.operation.samples is None:
            whole = self.operation.reference(*self._wide)
            return tuple((index, whole[index]) for index in self._quantities)
        chosen = self.operation.samples(self._wide, np.random.default_rng(SEED))
        return tuple((index, self.operation.reference(*some)) for index, some in chosen)

    @cached_property
    def leeways(self) -> tuple[float, ...]:
        """How far roundings can carry each part over kinks, as a norm: 0 where none is near."""
        if self.operation.across_kinks is None:
            return (0.0,) * len(self.parts)
        both = self.operation.across_kinks(self._wide, rounded_error(self.dtype), summed_error(self.dtype))
        if both is None:
            return (0.0,) * len(self.parts)
        difference = both[0] - both[1]
        return tuple(float(np.linalg.norm(difference[index])) for index, _ in self.parts)

    @cached_property
    def _wide(self) -> Arrays:
        return tuple(self.dtype.widen(array) for array in self.inputs)

    @property
    def _quantities(self) -> tuple[Any, ...]:
        return self.operation.quantities(self._wide) if self.operation.quantities else (...,)
