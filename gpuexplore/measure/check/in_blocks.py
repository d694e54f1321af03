"""The reference of a large output, made on its device block by block: each is compared and forgotten.

`Operation.cut` says along which axes. What a block has to hold `Reference` tells by the contract's own functions, which
torch computes in float64 from inputs that the device draws; of a large product `DeviceReference` tells it. The host
draws the inputs of some random places, other ones each time, computes them in NumPy, and where it finds something else
the device is not believed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpuexplore.dtypes import DType
from gpuexplore.measure.arrays.drawn import DrawnInput
from gpuexplore.measure.arrays.large import BlockLayout, Lengths, layout
from gpuexplore.measure.arrays.on_device import device_arrays
from gpuexplore.measure.check.device_reference import DeviceReference, believe
from gpuexplore.measure.check.inputs import Reference
from gpuexplore.model import Shape
from gpuexplore.operations.contract import Array, Operation

PROVED_PLACES, PROVED_ELEMENTS = 8, 2**20  # on the host, of a reference: one place at least
Place = tuple[Any, ...]


class OutputBlock(NamedTuple):
    """A part of an output that stays on its device.

    Attributes:
        out: what it holds.
        reference: what it has to hold.
        in_output: tells from the place of an element in it that in the whole output.
        prove: lets the host compute some of the reference, before an output is called wrong; raises as `believe` does.
    """

    out: Any
    reference: Reference | DeviceReference
    in_output: Callable[[Sequence[Any]], Place]
    prove: Callable[[], object]


@dataclass(frozen=True)
class BlockedReference:
    """What an output has to be, which `place` makes of drawn inputs by torch, a block at a time."""

    operation: Operation
    shape: Shape
    dtype: DType
    inputs: tuple[Any, ...]  # `DrawnInput`
    seed: int
    place: str

    def blocks(self, out: Any) -> Iterator[OutputBlock]:
        """Yield the blocks of `out`, of which there are more than memory has room for at once.

        Raises:
            GpuExploreError: the device computes something else than the host.
        """
        if self._cut.by_lines:
            yield from (self._product(out, number) for number in range(self._cut.count))
            return
        proved = self._chosen(range(self._cut.count))
        shared = [None if is_cut else self._made(source) for source, is_cut in self._sources]
        for places in self._cut.blocks():
            cut = [self._part(source, places) if is_cut else None for source, is_cut in self._sources]
            inputs = tuple(self._made(mine) if mine else ours for mine, ours in zip(cut, shared, strict=True))
            reference = Reference(self.operation, self.dtype, inputs, self.seed + places.start)
            prove = partial(self._prove, reference, places.start)
            prove(proved[(places.start <= proved) & (proved < places.stop)])
            yield OutputBlock(
                out.block(places, self._cut.output),
                reference,
                partial(_in_block, self._cut.leading, places.start),
                partial(prove, self._chosen(range(places.start, places.stop))),
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
        reference = DeviceReference(self.operation, self.dtype, inputs, self.seed + number, self.place)
        return OutputBlock(
            out.product(number, self._cut.output),
            reference,
            partial(_in_product, self._cut.leading, number),
            prove=lambda: None,  # it proves all that it tells
        )

    def _part(self, source: DrawnInput, places: slice) -> DrawnInput:
        """Return what is at `places` along the leading axes of an input that is cut."""
        lengths = source.shape[len(self._cut.leading) :]
        return source.part((places.stop - places.start, *lengths), places.start * prod(lengths))

    def _made(self, source: DrawnInput) -> Any:
        return device_arrays().made(source, self.place)

    def _prove(self, reference: Reference, start: int, places: npt.NDArray[np.int64]) -> None:
        """Compute `places` of a block that begins at `start` on the host as well."""
        if not len(places):
            return
        inputs = tuple(self._on_host(source, places if is_cut else None) for source, is_cut in self._sources)
        right = self.operation.reference(*inputs)
        scale = np.broadcast_to(self.operation.scale(right, *inputs), right.shape)
        for index, expected in reference.parts:
            believe(self, _on_host(expected[places - start]), right[index], scale[index])
        if sums := reference.sums:
            found, of = _on_host(sums.expected[places - start]), sums.of(right)
            believe(self, found, of, _on_host(sums.scale[places - start]))

    def _on_host(self, source: DrawnInput, places: npt.NDArray[np.int64] | None) -> Array:
        """Return an input, or what is at `places` along its leading axes, as the host draws it."""
        if places is None:
            return self.dtype.widen(source.at(np.arange(source.size)).reshape(source.shape))
        lengths = source.shape[len(self._cut.leading) :]
        flat = places[:, None] * prod(lengths) + np.arange(prod(lengths))
        return self.dtype.widen(source.at(flat).reshape(len(places), *lengths))

    def _chosen(self, among: range) -> npt.NDArray[np.int64]:
        """Return some places along the leading axes, the last of these too where there is more than one."""
        most = max(1, min(PROVED_PLACES, PROVED_ELEMENTS // self._cut.own))
        found = np.random.default_rng().integers(among.start, among.stop, most)
        return np.unique(found if most == 1 else np.append(found[1:], among[-1]))


AnyReference = Reference | DeviceReference | BlockedReference


def _in_block(leading: Lengths, start: int, place: Sequence[Any]) -> Place:
    return (*map(int, np.unravel_index(start + place[0], leading)), *place[1:])


def _in_product(leading: Lengths, number: int, place: Sequence[Any]) -> Place:
    return (*map(int, np.unravel_index(number, leading)), *place)


def _on_host(values: Any) -> Array:
    return np.asarray(values.there.cpu().numpy())
