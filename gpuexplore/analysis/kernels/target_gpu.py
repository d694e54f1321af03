"""The GPU that a kernel is looked at for: a row of the table, or one of the visitor's own by two numbers."""

from dataclasses import dataclass

from gpuexplore.devices import Accelerator
from gpuexplore.devices.capabilities import ComputeCapability, capability_named
from gpuexplore.errors import InvalidInput
from gpuexplore.units import read_whole

OWN = "own"  # stands for the visitor's own among the keys of the table
MOST_MULTIPROCESSORS = 1024  # several times as many as any GPU has


@dataclass(frozen=True, slots=True)
class TargetGpu:
    """What decides registers, occupancy and waves.

    Attributes:
        key: of the table of accelerators, or OWN.
        name: what a reader sees.
        compute_capability: e.g. `7.5`.
        multiprocessors: None where the table lists none.
    """

    key: str
    name: str
    compute_capability: str
    multiprocessors: int | None

    @property
    def limits(self) -> ComputeCapability:
        """What a multiprocessor can hold."""
        return capability_named(self.compute_capability)


def of_the_table(row: Accelerator) -> TargetGpu:
    """Return a row of the table of accelerators as a target."""
    return TargetGpu(row.key, row.name, row.compute_capability, row.multiprocessors)


def own_gpu(compute_capability: str, multiprocessors: str) -> TargetGpu:
    """Return the GPU with these numbers, as typed.

    Raises:
        InvalidInput: no such compute capability is known, or no GPU has so many multiprocessors.
    """
    capability, count = capability_named(compute_capability), read_multiprocessors(multiprocessors)
    name = f"GPU of {count} multiprocessor{'s'[: count > 1]}, compute capability {capability.compute_capability}"
    return TargetGpu(OWN, name, capability.compute_capability, count)


def read_multiprocessors(text: str) -> int:
    """Return the number of multiprocessors that was typed.

    Raises:
        InvalidInput: it is no number, or no GPU has so many.
    """
    count = read_whole(text)
    if count is None or not 1 <= count <= MOST_MULTIPROCESSORS:
        raise InvalidInput.of("multiprocessors", text, f"whole numbers from 1 to {MOST_MULTIPROCESSORS}")
    return count
