"""The registers of a kernel that was launched, as the driver tells them, beside those of the kernel that is shown."""

from collections.abc import Iterator
from typing import Any

from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import Unsupported
from gpuexplore.measure.candidates.candidate import build_candidate
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.model import Case, Device
from gpuexplore.operations import operation_named
from gpuexplore.operations.compiled import recorded
from gpuexplore.operations.kernel_targets import compile_for, kernel_of

SIZE = 64


def probe(
    device: Device, time: Timekeeper, *, operation: str, implementation: str, dtype: str
) -> Iterator[dict[str, Any]]:
    """Yield the registers of a thread: launched, shown on this machine, and recorded with the package.

    Raises:
        Unsupported: nobody knows what the device's code is compiled for.
    """
    if device.compute_capability is None:
        raise Unsupported(f"the compute capability of {device.name} is unknown: its code cannot be shown")
    known, kind = operation_named(operation), dtype_named(dtype)
    row, shape = known.implementation_named(implementation), known.shape_of_size(SIZE)
    case = Case(operation, shape, dtype, implementation, device.id)
    inputs = make_inputs(known, shape, kind, "normal")
    candidate = build_candidate(case, known, device, inputs=inputs, clock=time.clock)
    candidate.first_call_s(time.clock)
    launched = kernel_of(known, row).launched_registers(kind)
    shown = compile_for(known, row, kind, None, device.compute_capability)
    kept = recorded(operation, implementation, dtype, device.compute_capability)
    yield {
        "launched": launched,
        "shown": shown.registers_per_thread,
        "toolkit": shown.toolkit,
        "recorded": kept.registers_per_thread if kept else None,
    }
