"""The inputs of a case, random normal numbers rounded to its dtype, and the reference computed from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import FP32_SIGNIFICAND_BITS, DType, Stored
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

    return tuple(dtype.round(fill(array)) for array in operation.inputs(shape))


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
        wide: Arrays = tuple(self.dtype.widen(array) for array in self.inputs)
        if self.operation.samples is None:
            return ((..., self.operation.reference(*wide)),)
        chosen = self.operation.samples(wide, np.random.default_rng(SEED))
        return tuple((index, self.operation.reference(*some)) for index, some in chosen)
