"""Moving data: transfers to and from a GPU, or on a CPU memory copies; the cost of a call; and the work itself.

Nothing here loads torch or Numba before it measures.

Ways to move data and to call a library, and the work itself, each ready to be timed.

Between a host and a GPU torch moves from pageable and pinned memory, and Numba where it is asked to or implicitly; on a
machine without a GPU copies within the CPU's memory are timed. The cost of a call is a vector addition of one element,
which is launch and nothing else: of a GPU launches one after another with a wait at the end, and a launch with its own
wait. Every call ends with a wait for the device and is timed by the host's clock: what the host does is part of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from gpuexplore.backends import Call, Clock, HostTimer, load_backend
from gpuexplore.backends.cuda_driver import index_in_this_process
from gpuexplore.core import (
    Accuracy,
    Cancelled,
    Case,
    Device,
    Environment,
    IncorrectOutput,
    InvalidInput,
    Options,
    Result,
    Shape,
    Status,
    check_known,
    encode,
)
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.transfer.measure.contract import (
    CACHE,
    DTYPE,
    SIZES_BYTES,
    Part,
    TransferReading,
    TransferReadings,
    sizes_of,
    timed,
)
from gpuexplore.hardware import check_measured_on, link_of
from gpuexplore.measure.candidates.candidate import Candidate, build_candidate, device_for, unsupported
from gpuexplore.measure.check import check_memory, make_inputs
from gpuexplore.measure.conditions.environment import describe_environment, free_bytes
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.runner import measure_group, measured_together
from gpuexplore.operations import Operation, operation_named

BUDGET_S = 0.3
IN_A_ROW = 100  # launches; a GPU's queue takes about a thousand before a launch has to wait


@dataclass(frozen=True, slots=True)
class _Way:
    """One way of moving data or of calling a library, built and ready to be timed in the same rounds as others.

    Attributes:
        reading: what is known of it before it is timed.
        candidate: how it is called; its call returns when the data are there.
        is_right: whether the last call did what it should.
        calls: launches in one call of the candidate.
    """

    reading: TransferReading
    candidate: Candidate
    is_right: Callable[[], bool]
    calls: int = 1

    def check(self) -> None:
        """Compare what the call left with what it should be.

        Raises:
            IncorrectOutput: it is something else.
        """
        if not self.is_right():
            raise IncorrectOutput(f"{self.reading.name} wrote wrong values", Accuracy(None, 0.0))


def way(reading: TransferReading, run: Call, is_right: Callable[[], bool], *, device: Device, clock: Clock) -> _Way:
    """Return a way that is timed by the host's clock, so that what the host does for it counts.

    Args:
        run: returns when the work is done.
    """
    library = load_backend(reading.library.replace("-", "_"))
    options = Options(cache="warm", budget_s=BUDGET_S)
    case = Case("transfer", Shape.of(n=max(1, reading.byte_count)), DTYPE, reading.name, device.id, options)
    candidate = Candidate(
        case, device_for(library, device), library, dtype_named(DTYPE), run, None, HostTimer(clock), None
    )
    return _Way(reading, candidate, is_right)


def calls(device: Device, clock: Clock) -> Iterator[_Way]:
    """Yield the call of each library that runs here on one element; on a GPU in a row and alone."""
    operation = operation_named("vector_add")
    dtype = dtype_named(DTYPE)
    shape = Shape.of(n=1)
    inputs = make_inputs(operation, shape, dtype, "normal")
    expected = sum(float(array[0]) for array in inputs)
    for implementation in operation.usual:
        if unsupported(operation, implementation, dtype, device):
            continue
        name = implementation.name
        case = Case("vector_add", shape, DTYPE, name, device.id, Options(cache="warm", budget_s=BUDGET_S))
        candidate = build_candidate(case, operation, device, inputs=inputs, clock=clock)
        on_gpu = {f"launch, {IN_A_ROW} in a row": IN_A_ROW, "launch and wait": 1}
        for spoken, count in ({"call": 1} if device.kind == "cpu" else on_gpu).items():
            yield _way(f"{name} {spoken}", candidate, expected, count=count, clock=clock)


def _way(name: str, candidate: Candidate, expected: float, *, count: int, clock: Clock) -> _Way:
    library = candidate.case.implementation
    timed = replace(
        candidate,
        case=replace(candidate.case, implementation=name),
        run=candidate.run if candidate.device.kind == "cpu" else _awaited(candidate, count),
        timer=HostTimer(clock),
        flush=None,
    )
    return _Way(TransferReading(name, library), timed, lambda: bool(np.isclose(candidate.output()[0], expected)), count)


def _awaited(candidate: Candidate, count: int) -> Call:
    """Return a call that launches `count` times and waits for the device."""
    run = candidate.run
    synchronize = partial(candidate.backend.synchronize, candidate.case.device)

    def launch() -> None:
        for _ in range(count):
            run()
        synchronize()

    return launch


def _measure_work(
    operation: Operation, device: Device, *, clock: Clock, isolation: Isolation, progress: ProgressHooks
) -> tuple[TransferReading, ...]:
    """Return the time of a call without transfers, by the vendor's library, at each size that is cheap enough.

    Where there is none there is the reason.

    Raises:
        Cancelled: the user asked to stop.
    """
    found: list[TransferReading] = []
    library = operation.vendor_library.name
    for size in _work_sizes_of(operation):
        shape = operation.shape_of_size(size)
        case = Case(operation.name, shape, DTYPE, library, device.id, Options(cache=CACHE, budget_s=BUDGET_S))
        events: list[Case | Result] = []
        reporting = replace(progress, report=events.append)
        measure_group([case], device, clock=clock, isolation=isolation, progress=reporting)
        found += [_reading(event, size) for event in events if isinstance(event, Result)]
    return tuple(found)


def _work_sizes_of(operation: Operation) -> tuple[int, ...]:
    """Return those of the sizes that are measured: calls that take some tenths of a second at most, evenly spread."""
    shapes = {size: operation.shape_of_size(size) for size in sizes_of(operation)}
    cheap = [
        size
        for size, shape in shapes.items()
        if operation.byte_count(shape, dtype_named(DTYPE)) <= 2**26 and operation.flop_count(shape) <= 5e9
    ]
    step = max(1, -(-len(cheap) // 8))
    return tuple(reversed(cheap[::-1][::step]))


def _reading(result: Result, size: int) -> TransferReading:
    if result.status is Status.CANCELLED:
        raise Cancelled(result.reason or "cancelled")
    name = f"{result.case.operation}, size {size:,}"
    library = result.case.implementation
    if result.measurement is None:
        return TransferReading(name, library, size=size, reason=f"{result.status.value}: {result.reason}")
    return timed(TransferReading(name, library, size=size), result.measurement, flags=tuple(result.flags))


Floats = np.typing.NDArray[np.float32]
Move = tuple[str, int, Call, Callable[[], bool]]  # name, copies of the array, the call, and whether it was right


def moves(size_bytes: int, device: Device, clock: Clock) -> Iterator[_Way]:
    """Yield every way to move `size_bytes` on this kind of device; of a GPU those whose library is installed."""
    values = np.random.default_rng(0).standard_normal(size_bytes // np.float32().itemsize, np.float32)
    ways: dict[str, dict[str, Callable[[Floats, str], Iterator[Move]]]] = {
        "cpu": {"numpy": _within_numpy, "torch": _within_torch},
        "cuda": {"torch": _by_torch, "numba_cuda": _by_numba},
    }
    for library, built in ways[device.kind].items():
        backend = load_backend(library)
        if device.kind == "cpu":
            backend.set_threads(device.cores or 1)
        elif not backend.is_available():
            continue
        for name, copies, run, is_right in built(values, device.id):
            spoken = library.replace("_", "-")
            reading = TransferReading(f"{spoken} {name}", spoken, size_bytes, copies * size_bytes)
            yield way(reading, run, is_right, device=device, clock=clock)


def _within_numpy(source: Floats, _: str) -> Iterator[Move]:
    out = np.zeros_like(source)
    yield "memory copy", 2, lambda: np.copyto(out, source), lambda: bool(np.array_equal(out, source))


def _within_torch(source: Floats, _: str) -> Iterator[Move]:
    import torch

    given = torch.from_numpy(source)
    target = torch.zeros_like(given)
    yield "memory copy", 2, lambda: target.copy_(given), lambda: bool(torch.equal(target, given))


def _by_torch(values: Floats, device: str) -> Iterator[Move]:
    import torch

    gpu = torch.device("cuda", index_in_this_process(device))
    for memory, pinned in {"pageable": False, "pinned": True}.items():
        host = torch.from_numpy(values.copy())
        host = host.pin_memory() if pinned else host
        there = torch.zeros(host.shape, dtype=host.dtype, device=gpu)
        yield f"host to device, {memory}", 1, *_torch_copy(there, host, gpu)
        back = torch.zeros(host.shape, dtype=host.dtype, pin_memory=pinned)
        yield f"device to host, {memory}", 1, *_torch_copy(back, host.to(gpu), gpu)


def _torch_copy(target: Any, source: Any, gpu: Any) -> tuple[Call, Callable[[], bool]]:
    import torch

    def run() -> None:
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize(gpu)

    return run, lambda: bool(torch.equal(target.cpu(), source.cpu()))


def _by_numba(values: Floats, device: str) -> Iterator[Move]:
    from gpuexplore.features.transfer.measure.numba_copies import copies_by_numba

    return copies_by_numba(values, device)


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
    check_known("kind of device", device.kind, LIBRARIES)
    operation = operation_named(arguments["operation"])
    # all ways of one size need so many buffers of the largest size together at most
    check_memory(12 * max(SIZES_BYTES), free_bytes(device), device)
    environment = describe_environment(device, LIBRARIES[device.kind], threads=device.cores or 1)

    def report(part: Part, readings: Iterable[TransferReading]) -> None:
        link = link_of(device) if device.kind == "cuda" else None
        progress.report(encode(TransferReadings(part, operation.name, tuple(readings), environment, link)))

    measured = partial(_measured, environment=environment, clock=clock, isolation=isolation, progress=progress)
    by_size = (measured(tuple(moves(size_bytes, device, clock))) for size_bytes in SIZES_BYTES)
    report("moves", chain.from_iterable(by_size))
    report("calls", measured(tuple(calls(device, clock))))
    report("work", _measure_work(operation, device, clock=clock, isolation=isolation, progress=progress))


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
