"""The reference of a large product, made on the device from inputs that it draws itself, and proved on the host.

On the host the inputs of a product of 32768 would be drawn for tens of seconds, and take 17 GB in float64. Compared is
what `Reference` compares: a random row of each block of 32, and sums of neighbours with random signs. The device makes
them in float64, whatever library is measured; the host then draws the inputs of some random elements and sums itself,
and computes these in NumPy: a device, or a library of it, that computes wrongly is not believed.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import DType
from gpuexplore.errors import GpuExploreError
from gpuexplore.measure.arrays.on_device import device_arrays
from gpuexplore.measure.arrays.sums import TOGETHER, Sums
from gpuexplore.operations.contract import Array, Operation
from gpuexplore.operations.sampling import EVERY, lines

PROVED_ROWS, PROVED_SUMS = 8, 4  # on the host, of each reference
PROVED_TO = 64 * 2.0**-53  # of √Σt², for the square root of the length: what float64 sums differ by, and no more


@dataclass(frozen=True)
class DeviceReference:
    """What `inputs.Reference` tells of a product (m, k) @ (k, n), made on `place` by torch."""

    operation: Operation
    dtype: DType
    inputs: tuple[Any, ...]  # two that are `DrawnInput`
    seed: int
    place: str

    @property
    def parts(self) -> tuple[tuple[Any, Array], ...]:
        """The index of the rows that are compared, and the expected values there."""
        return (((self._rows, EVERY), self._expected[0]),)

    @property
    def scales(self) -> tuple[npt.NDArray[np.float32], ...]:
        """√Σt² of the elements of these rows."""
        return (self._expected[1],)

    @property
    def leeways(self) -> tuple[float, ...]:
        """None: a product has no kinks."""
        return (0.0,)

    @cached_property
    def sums(self) -> Sums:
        """What checks all other elements."""
        signs = np.random.default_rng((self.seed, TOGETHER)).choice((-1.0, 1.0), self.inputs[1].shape[1])
        expected, rows, columns = device_arrays().sums_of_product(self.inputs, signs, self.place)
        scale = rows[:, None] / np.sqrt(self.inputs[0].shape[1]) * columns
        made = Sums(1, signs, expected, scale)
        self._prove_sums(made)
        return made

    @cached_property
    def _rows(self) -> npt.NDArray[np.int64]:
        return np.asarray(lines(self.inputs[0].shape[0], np.random.default_rng(self.seed)), np.int64)

    @cached_property
    def _expected(self) -> tuple[Array, npt.NDArray[np.float32]]:
        expected, rows, columns = device_arrays().rows_of_product(self.inputs, self._rows, self.place)
        scale = np.asarray(rows[:, None] / np.sqrt(self.inputs[0].shape[1]) * columns, np.float32)
        chosen, columns_chosen = self._chosen(len(self._rows)), self._chosen(len(columns))
        right = self._on_host(self._rows[chosen], columns_chosen)
        believe(self, expected[np.ix_(chosen, columns_chosen)], right, scale[np.ix_(chosen, columns_chosen)])
        return expected, scale

    def _prove_sums(self, sums: Sums) -> None:
        rows = self._chosen(len(sums.expected))
        for number in self._chosen(sums.expected.shape[1])[:PROVED_SUMS]:
            columns = np.arange(sums.starts[number], sums.ends[number])
            right = self._on_host(rows, columns) @ sums.signs[columns]
            believe(self, sums.expected[rows, number], right, sums.scale[rows, number])

    def _on_host(self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> Array:
        """Return elements of the product by NumPy, from inputs that the host draws."""
        left, right = self.inputs
        length, width = right.shape
        a = left.at(rows[:, None] * length + np.arange(length))
        b = right.at(np.arange(length)[:, None] * width + columns)
        return np.asarray(self.dtype.widen(a) @ self.dtype.widen(b))

    @staticmethod
    def _chosen(count: int) -> npt.NDArray[np.int64]:
        """Return some of `count` places, the last one too; others in each run, which no kernel can know."""
        generator = np.random.default_rng()
        return np.unique(np.append(generator.integers(0, count, PROVED_ROWS - 1), count - 1))


def believe(reference: Any, found: Array, right: Array, scale: Any) -> None:
    """Believe the device of a reference what it computed: the host computes what is `right` of some of it.

    Raises:
        GpuExploreError: they differ by more than float64 rounds, relative to what was summed: `scale`.
    """
    length = reference.inputs[0].shape[-1]  # no sum is longer
    allowed = PROVED_TO * np.sqrt(length) * (np.abs(right) + scale * TOGETHER)
    if not np.all(np.abs(found - right) <= allowed):
        raise GpuExploreError(
            f"torch's float64 {reference.operation.name} on {reference.place} is not what the host computes from the "
            f"same inputs: off by {float(np.nanmax(np.abs(found - right))):.2g}; nothing can be checked with it"
        )
