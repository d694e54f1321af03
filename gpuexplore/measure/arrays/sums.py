"""Sums of neighbours in an output with random signs: a check of all of a product for a fraction of its FLOPs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.operations.contract import Array, Arrays, Operation

TOGETHER = 32  # elements of a sum: of a product they cost a 32nd of its FLOPs


@dataclass(frozen=True)
class Sums:
    """The expected sums of neighbours along an axis, with signs that no implementation knows.

    Attributes:
        axis: of the output.
        signs: +1 or -1 for each index along it.
        expected: the sums.
        scale: √Σt² of all their terms.
    """

    axis: int
    signs: Array
    expected: Array
    scale: Array

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The first index of each sum along the axis."""
        return np.arange(0, len(self.signs), TOGETHER)

    @cached_property
    def ends(self) -> npt.NDArray[np.int64]:
        """The index after the last of each sum."""
        return np.append(self.starts[1:], len(self.signs))

    def of(self, values: Array) -> Array:
        """Return the sums of an output, or of some of its rows."""
        return _folded(values, self.signs, self.axis)

    def of_squares(self, values: Array) -> Array:
        """Return the sums of the squares of the same elements."""
        return _folded(np.square(values), np.ones_like(self.signs), self.axis)


def sums_of(operation: Operation, inputs: Arrays, seed: int) -> Sums | None:
    """Return the sums that check an output as a whole, from the inputs in float64; None where it is not linear."""
    if operation.linear is None:
        return None
    of_input, of_output = operation.linear
    *given, last = inputs
    signs = np.random.default_rng((seed, TOGETHER)).choice((-1.0, 1.0), last.shape[of_input])
    together = _folded(last, signs, of_input)
    expected = operation.reference(*given, together)
    scale: Any = operation.scale(expected, *given, together)
    return Sums(of_output % expected.ndim, signs, expected, np.broadcast_to(scale, expected.shape))


def _folded(values: Array, factors: Array, axis: int) -> Array:
    """Return the sums of neighbours along `axis`, each times its factor."""
    lengths = np.ones(values.ndim, int)
    lengths[axis] = -1
    return np.add.reduceat(values * factors.reshape(lengths), np.arange(0, len(factors), TOGETHER), axis=axis)
