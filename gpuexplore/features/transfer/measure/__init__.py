"""Moving data: transfers to and from a GPU, or on a CPU memory copies; the cost of a call; and the work itself.

Nothing here loads torch or Numba before it measures.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any

from gpuexplore.backends.timer import Clock
from gpuexplore.core.errors import Cancelled, InvalidInput
from gpuexplore.core.model import Device, Environment
from gpuexplore.core.serialization import encode
from gpuexplore.features.transfer.measure.contract import SIZES_BYTES, Part, TransferReading, TransferReadings, timed
from gpuexplore.hardware import check_measured_on
from gpuexplore.hardware.nvml import link_of
from gpuexplore.measure.check.guard import check_memory
from gpuexplore.measure.conditions.environment import describe_environment, free_bytes
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.together import measured_together
from gpuexplore.operations import operation_named

LIBRARIES = {"cpu": ("numpy", "torch"), "cuda": ("torch", "numba_cuda")}


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Measure and report one `TransferReadings` for each part: moves, calls, work.

    Args:
        arguments: ``operation``, whose work is timed.
        device: where, or to and from where.
        clock: in nanoseconds.
        isolation: of the calls.
        progress: gets each part as JSON as soon as it is measured; polled between rounds.

    Raises:
        Unsupported: a device that only torch finds.
        InvalidInput: other arguments, or a device that is neither a CPU nor a CUDA GPU.
        TooLarge: the memory is not enough.
        Cancelled: the user asked to stop.
        IncorrectOutput: what was moved is not what arrived.
    """
    if set(arguments) != {"operation"}:
        raise InvalidInput.of("arguments", ", ".join(arguments), ("operation",))
    check_measured_on(device.id, "measuring transfers")
    if device.kind not in LIBRARIES:
        raise InvalidInput.of("kind of device", device.kind, LIBRARIES)
    operation = operation_named(arguments["operation"])
    # all ways of one size need so many buffers of the largest size together at most
    check_memory(12 * max(SIZES_BYTES), free_bytes(device), device)
    environment = describe_environment(device, LIBRARIES[device.kind], threads=device.cores or 1)

    def report(part: Part, readings: Iterable[TransferReading]) -> None:
        link = link_of(device) if device.kind == "cuda" else None
        progress.report(encode(TransferReadings(part, operation.name, tuple(readings), environment, link)))

    measured = partial(_measured, environment=environment, clock=clock, isolation=isolation, progress=progress)
    ways: Any = import_module("gpuexplore.features.transfer.measure.ways")
    by_size = (measured(tuple(ways.moves(size_bytes, device, clock))) for size_bytes in SIZES_BYTES)
    report("moves", chain.from_iterable(by_size))
    report("calls", measured(tuple(ways.calls(device, clock))))
    report("work", ways.measure_work(operation, device, clock=clock, isolation=isolation, progress=progress))


def _measured(
    ways: Sequence[Any], *, environment: Environment, clock: Clock, isolation: Isolation, progress: ProgressHooks
) -> Iterable[TransferReading]:
    """Return the ways, timed in the same rounds; each is checked before and after it is timed."""
    if progress.cancelled():
        raise Cancelled("cancelled before it was measured")
    candidates = [(way.candidate, way.check) for way in ways]
    _, found = measured_together(candidates, environment, clock=clock, isolation=isolation, progress=progress)
    return [
        timed(way.reading, measurement, calls=way.calls, flags=flags)
        for way, (measurement, flags) in zip(ways, found, strict=True)
    ]
