"""The rate that the machine code of each rung of a ladder allows at most on a GPU, as recorded when it was compiled."""

from dataclasses import dataclass
from math import prod

from gpuexplore.analysis.kernels.instruction_bound import InstructionBound, flop_per_byte, instruction_bound
from gpuexplore.analysis.kernels.ladder import kernels
from gpuexplore.analysis.kernels.occupancy import occupancy
from gpuexplore.devices import Accelerator
from gpuexplore.devices.capabilities import capability_of
from gpuexplore.model import Shape
from gpuexplore.operations.compiled import Recorded, recorded
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation


@dataclass(frozen=True, slots=True)
class RungBound:
    """One kernel in its default block on one GPU; the bound is of its machine code, and no measurement."""

    implementation: Implementation
    bound: InstructionBound


def rung_bounds(
    operation: Operation, backend: str, shape: Shape, *, dtype: str, gpu: Accelerator
) -> tuple[RungBound, ...]:
    """Return the rungs that are recorded for the compute capability of `gpu`, from the naive one up."""
    found = (
        (row, recorded(operation.name, row.name, dtype, gpu.compute_capability)) for row in kernels(operation, backend)
    )
    intensity = flop_per_byte(operation, shape, dtype)
    return tuple(_rung(row, compiled, gpu, intensity) for row, compiled in found if compiled)


def _rung(row: Implementation, compiled: Recorded, gpu: Accelerator, intensity: float | None) -> RungBound:
    full = occupancy(
        capability_of(gpu),
        threads_per_block=prod(row.geometry.blocks[0]) if row.geometry else 1,
        registers_per_thread=compiled.registers_per_thread,
        shared_bytes_per_block=compiled.shared_bytes,
    )
    return RungBound(row, instruction_bound(compiled.main_loop, gpu, full, intensity))
