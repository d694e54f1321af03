"""The inputs of a case, random normal numbers rounded to its dtype, and the reference computed from them.

The references of large outputs, made on their device from inputs that it draws itself, and proved on the host.

On the host the inputs of a product of 32768 would be drawn for tens of seconds, and take 17 GB in float64. Compared is
what `Reference` compares: of a large product a random row of each block of 32, and sums of neighbours with random
signs; other outputs block by block, each of which is freed then. `Operation.cut` says along which axes. The device
computes the expected values in float64, whatever library is measured. The host draws the inputs of some random
positions, other ones each time, and computes these in NumPy: a device, or a library of it, that computes wrongly is
detected.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from gpuexplore.core import DataMode, GpuExploreError, Shape
from gpuexplore.core.dtypes import FP32_SIGNIFICAND_BITS, DType, Stored
from gpuexplore.measure.arrays.large import CONSTANTS, TOGETHER, BlockLayout, DrawnInput, Lengths, Sums, layout, sums_of
from gpuexplore.measure.candidates.candidate import device_arrays
from gpuexplore.measure.check.correctness import rounded_error, summed_error
from gpuexplore.operations.contract import Array, Arrays, Operation
from gpuexplore.operations.sampling import EVERY, lines

Expected = tuple[
    Any, np.typing.NDArray[np.float64], np.typing.NDArray[np.float32]
]  # index, values and what they were summed of
SEED = 20  # where the same numbers are wanted in every run, on every machine


def make_inputs(
    operation: Operation, shape: Shape, dtype: DType, data: DataMode, *, seed: int = SEED
) -> tuple[Stored, ...]:
    """Return the inputs of one case in the dtype's storage: random normal, all zeros or all ones."""
    generator = np.random.default_rng(seed)
    wide = dtype.significand_bits > FP32_SIGNIFICAND_BITS

    def fill(lengths: tuple[int, ...]) -> np.typing.NDArray[np.floating[Any]]:
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
    def parts(self) -> tuple[tuple[Any, np.typing.NDArray[np.float64]], ...]:
        """Pairs of an index into the output and the expected values there."""
        return tuple((index, expected) for index, expected, _ in self._computed[0])

    @cached_property
    def scales(self) -> tuple[np.typing.NDArray[np.float32], ...]:
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


def _scale(
    operation: Operation, expected: np.typing.NDArray[np.float64], inputs: Arrays
) -> np.typing.NDArray[np.float32]:
    scale: Any = operation.scale(expected, *inputs)
    return np.asarray(scale, np.float32) if isinstance(scale, np.ndarray | float) else scale


PROVED_ROWS = 8  # rows of a product's reference that the host verifies
PROVED_POSITIONS = 8  # positions of other references that the host verifies: at least one
PROVED_ELEMENTS = 2**20


@dataclass(frozen=True)
class DeviceReference:
    """The reference of a product (m, k) @ (k, n), made on a device by torch; as `inputs.Reference`."""

    operation: Operation
    dtype: DType
    inputs: tuple[Any, ...]  # two that are `DrawnInput`
    seed: int
    torch_device: str

    @property
    def parts(self) -> tuple[tuple[Any, Array], ...]:
        """The index of the rows that are compared, and the expected values there."""
        return (((self._rows, EVERY), self._expected[0]),)

    @property
    def scales(self) -> tuple[np.typing.NDArray[np.float32], ...]:
        """√Σt² of the elements of these rows."""
        return (self._expected[1],)

    @property
    def leeways(self) -> tuple[float, ...]:
        """None: a product has no kinks."""
        return (0.0,)

    @cached_property
    def sums(self) -> Sums:
        """The sums that check all other elements."""
        signs = np.random.default_rng((self.seed, TOGETHER)).choice((-1.0, 1.0), self.inputs[1].shape[1])
        expected, rows, columns = device_arrays().sums_of_product(self.inputs, signs, self.torch_device)
        scale = rows[:, None] / np.sqrt(self.inputs[0].shape[1]) * columns
        made = Sums(1, signs, expected, scale)
        self._prove_sums(made)
        return made

    @cached_property
    def _rows(self) -> np.typing.NDArray[np.int64]:
        return np.asarray(lines(self.inputs[0].shape[0], np.random.default_rng(self.seed)), np.int64)

    @cached_property
    def _expected(self) -> tuple[Array, np.typing.NDArray[np.float32]]:
        expected, rows, columns = device_arrays().rows_of_product(self.inputs, self._rows, self.torch_device)
        scale = np.asarray(rows[:, None] / np.sqrt(self.inputs[0].shape[1]) * columns, np.float32)
        chosen = self._chosen(len(self._rows))
        columns_chosen = self._chosen(len(columns))
        right = self._on_host(self._rows[chosen], columns_chosen)
        _check_device(self, expected[np.ix_(chosen, columns_chosen)], right, scale[np.ix_(chosen, columns_chosen)])
        return expected, scale

    def _prove_sums(self, sums: Sums) -> None:
        rows = self._chosen(len(sums.expected))
        for number in self._chosen(sums.expected.shape[1])[:4]:
            columns = np.arange(sums.starts[number], sums.ends[number])
            right = self._on_host(rows, columns) @ sums.signs[columns]
            _check_device(self, sums.expected[rows, number], right, sums.scale[rows, number])

    def _on_host(self, rows: np.typing.NDArray[np.int64], columns: np.typing.NDArray[np.int64]) -> Array:
        """Return elements of the product by NumPy, from inputs that the host draws."""
        left, right = self.inputs
        length, width = right.shape
        a = left.at(rows[:, None] * length + np.arange(length))
        b = right.at(np.arange(length)[:, None] * width + columns)
        return np.asarray(self.dtype.widen(a) @ self.dtype.widen(b))

    @staticmethod
    def _chosen(count: int) -> np.typing.NDArray[np.int64]:
        """Return some of `count` indices, the last one too; others in each run, which no kernel can know."""
        generator = np.random.default_rng()
        return np.unique(np.append(generator.integers(0, count, PROVED_ROWS - 1), count - 1))


def _check_device(reference: Any, found: Array, right: Array, scale: Any) -> None:
    """Check values that the device of a reference computed against those that the host computes, `right`.

    Raises:
        GpuExploreError: they differ by more than float64 rounds, relative to the size of the terms: `scale`.
    """
    length = reference.inputs[0].shape[-1]  # no sum is longer
    rounded = 64 * 2.0**-53  # of √Σt², for the square root of the length: what float64 sums differ by, and no more
    allowed = rounded * np.sqrt(length) * (np.abs(right) + scale * TOGETHER)
    if not np.all(np.abs(found - right) <= allowed):
        raise GpuExploreError(
            f"torch's float64 {reference.operation.name} on {reference.torch_device} differs from the host's result "
            f"for the same inputs: off by {float(np.nanmax(np.abs(found - right))):.2g}; "
            "it cannot be used as a reference"
        )


Index = tuple[Any, ...]


# A part of an output that stays on its device: its values; the reference of the part; what returns the index of an
# element in the whole output from its index in the part; and what has the host compute some of the reference, before an
# output is called wrong, and raises as `_check_device`.
OutputBlock = tuple[Any, Reference | DeviceReference, Callable[[Sequence[Any]], Index], Callable[[], object]]


@dataclass(frozen=True)
class BlockedReference:
    """The reference of an output, which a device makes of drawn inputs by torch, a block at a time."""

    operation: Operation
    shape: Shape
    dtype: DType
    inputs: tuple[Any, ...]  # `DrawnInput`
    seed: int
    torch_device: str

    def blocks(self, out: Any) -> Iterator[OutputBlock]:
        """Yield the blocks of `out`, which do not fit into memory all at once.

        Raises:
            GpuExploreError: the device computes other values than the host.
        """
        if self._cut.by_lines:
            yield from (self._product(out, number) for number in range(self._cut.count))
            return
        proved = self._chosen(range(self._cut.count))
        shared = [None if is_cut else self._made(source) for source, is_cut in self._sources]
        for positions in self._cut.blocks():
            cut = [self._part(source, positions) if is_cut else None for source, is_cut in self._sources]
            inputs = tuple(self._made(own) if own else common for own, common in zip(cut, shared, strict=True))
            reference = Reference(self.operation, self.dtype, inputs, self.seed + positions.start)
            prove = partial(self._prove, reference, positions.start)
            prove(proved[(positions.start <= proved) & (proved < positions.stop)])
            yield (
                out.block(positions, self._cut.output),
                reference,
                partial(_in_block, self._cut.leading, positions.start),
                partial(prove, self._chosen(range(positions.start, positions.stop))),
            )

    @cached_property
    def _cut(self) -> BlockLayout:
        return layout(self.operation, self.shape)

    @property
    def _sources(self) -> Iterator[tuple[DrawnInput, bool]]:
        return zip(self.inputs, self._cut.is_cut, strict=True)

    def _product(self, out: Any, number: int) -> OutputBlock:
        inputs = tuple(
            source.part(lengths, number * prod(lengths)) if is_cut else source
            for (source, is_cut), lengths in zip(self._sources, self._cut.inputs, strict=True)
        )
        return (
            out.product(number, self._cut.output),
            DeviceReference(self.operation, self.dtype, inputs, self.seed + number, self.torch_device),
            partial(_in_product, self._cut.leading, number),
            lambda: None,  # its reference proves itself
        )

    def _part(self, source: DrawnInput, positions: slice) -> DrawnInput:
        """Return `positions` along the leading axes of an input that is cut."""
        lengths = source.shape[len(self._cut.leading) :]
        return source.part((positions.stop - positions.start, *lengths), positions.start * prod(lengths))

    def _made(self, source: DrawnInput) -> Any:
        return device_arrays().made(source, self.torch_device)

    def _prove(self, reference: Reference, start: int, positions: np.typing.NDArray[np.int64]) -> None:
        """Compute `positions` of a block that begins at `start` on the host as well."""
        if not len(positions):
            return
        inputs = tuple(self._on_host(source, positions if is_cut else None) for source, is_cut in self._sources)
        right = self.operation.reference(*inputs)
        scale = np.broadcast_to(self.operation.scale(right, *inputs), right.shape)
        for index, expected in reference.parts:
            _check_device(self, _on_host(expected[positions - start]), right[index], scale[index])
        if sums := reference.sums:
            found = _on_host(sums.expected[positions - start])
            of = sums.of(right)
            _check_device(self, found, of, _on_host(sums.scale[positions - start]))

    def _on_host(self, source: DrawnInput, positions: np.typing.NDArray[np.int64] | None) -> Array:
        """Return an input, or `positions` along its leading axes, as the host draws it."""
        if positions is None:
            return self.dtype.widen(source.at(np.arange(source.size)).reshape(source.shape))
        lengths = source.shape[len(self._cut.leading) :]
        flat = positions[:, None] * prod(lengths) + np.arange(prod(lengths))
        return self.dtype.widen(source.at(flat).reshape(len(positions), *lengths))

    def _chosen(self, among: range) -> np.typing.NDArray[np.int64]:
        """Return some positions along the leading axes, the last of these too where there is more than one."""
        most = max(1, min(PROVED_POSITIONS, PROVED_ELEMENTS // self._cut.own))
        found = np.random.default_rng().integers(among.start, among.stop, most)
        return np.unique(found if most == 1 else np.append(found[1:], among[-1]))


AnyReference = Reference | DeviceReference | BlockedReference


def _in_block(leading: Lengths, start: int, index: Sequence[Any]) -> Index:
    return (*map(int, np.unravel_index(start + index[0], leading)), *index[1:])


def _in_product(leading: Lengths, number: int, index: Sequence[Any]) -> Index:
    return (*map(int, np.unravel_index(number, leading)), *index)


def _on_host(values: Any) -> Array:
    return np.asarray(values.tensor.cpu().numpy())
