"""The operation itself on this device without any transfer, by the library of the device's vendor."""

from collections.abc import Callable, Iterator

from gpuexplore.errors import Cancelled
from gpuexplore.features.transfer.measure.calls import BUDGET_S
from gpuexplore.features.transfer.measure.contract import CACHE, DTYPE, TransferReading, timed, work_sizes_of
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.runner import measure_cases
from gpuexplore.model import Case, Device, Options, Result, Status
from gpuexplore.operations.contract import Operation


def measure_work(
    operation: Operation, device: Device, *, cancelled: Callable[[], bool], time: Timekeeper
) -> tuple[TransferReading, ...]:
    """Return the time of a call at each size that is cheap enough; of others the reason why there is none.

    Raises:
        Cancelled: the user asked to stop.
    """
    return tuple(_readings(operation, device, cancelled, time))


def _readings(
    operation: Operation, device: Device, cancelled: Callable[[], bool], time: Timekeeper
) -> Iterator[TransferReading]:
    library = operation.vendor_library.name
    for size in work_sizes_of(operation):
        case = Case(
            operation.name,
            operation.shape_of_size(size),
            DTYPE,
            library,
            device.id,
            Options(cache=CACHE, budget_s=BUDGET_S),
        )
        yield from (_reading(result, size) for result in _results(case, device, cancelled, time))


def _results(case: Case, device: Device, cancelled: Callable[[], bool], time: Timekeeper) -> list[Result]:
    found: list[Result] = []

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result) and not event.provisional:
            found.append(event)

    measure_cases([case], device, report=keep, cancelled=cancelled, time=time)
    return found


def _reading(result: Result, size: int) -> TransferReading:
    if result.status is Status.CANCELLED:
        raise Cancelled(result.reason or "cancelled")
    name = f"{result.case.operation}, size {size:,}"
    library = result.case.implementation
    if result.measurement is None:
        return TransferReading(name, library, size=size, reason=f"{result.status.value}: {result.reason}")
    return timed(TransferReading(name, library, size=size), result.measurement, flags=tuple(result.flags))
