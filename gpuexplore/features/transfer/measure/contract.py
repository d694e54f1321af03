"""Observations on moving data: times of moves, calls and work. Loads neither torch nor Numba."""

from dataclasses import dataclass
from typing import Literal

from gpuexplore.activity import Activity, of_kind
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import CacheState, Environment, Flag, Measurement
from gpuexplore.hardware.nvml import Link
from gpuexplore.operations.contract import Operation

Part = Literal["moves", "calls", "work"]
PARTS: tuple[Part, ...] = ("moves", "calls", "work")
DTYPE = "fp32"
CACHE: CacheState = "warm"
SIZES_BYTES = tuple(4**power for power in range(8, 14))  # 64 KiB to 64 MiB


@dataclass(frozen=True, slots=True)
class TransferReading:
    """One way of moving, calling or computing, timed.

    Attributes:
        name: the way, e.g. ``torch host to device, pinned``.
        library: the implementation or library that did it.
        byte_count: bytes of the array that was copied, of each array of a kernel; 0 for a call on one element.
        moved_bytes: bytes through the link or the memory: a copy within memory reads and writes each byte.
        size: of the operation, the one number its shape stands for; None for moves and calls.
        median_s: seconds of one call.
        ci95_s: 95 % interval of the median; None under six samples.
        n: samples.
        first_call_s: seconds of the first call in its process, once for each way.
        flags: what casts doubt on it.
        reason: why there is no time; None where there is one.
    """

    name: str
    library: str
    byte_count: int = 0
    moved_bytes: int = 0
    size: int | None = None
    median_s: float | None = None
    ci95_s: tuple[float, float] | None = None
    n: int = 0
    first_call_s: float | None = None
    flags: tuple[Flag, ...] = ()
    reason: str | None = None

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second through the link or the memory."""
        return self.moved_bytes / self.median_s if self.median_s and self.moved_bytes else None


@dataclass(frozen=True, slots=True)
class TransferReadings:
    """One part of what `gpuexplore.features.transfer.measure` reports.

    Attributes:
        part: which.
        operation: the one whose work is timed.
        readings: its times.
        environment: the device and what could explain the times.
        link: between the host and a GPU; None on a CPU, or where it is unknown.
    """

    part: Part
    operation: str
    readings: tuple[TransferReading, ...]
    environment: Environment
    link: Link | None = None

    @property
    def on_gpu(self) -> bool:
        """True for transfers; on a CPU they are copies within its memory."""
        return self.environment.device.kind != "cpu"


def activity_of(operation: str, device_id: str) -> Activity:
    """Return the work for the queue that measures moves, calls and the work of `operation` on a device."""
    return of_kind("transfer", {"operation": operation}, device=device_id, expected_s=30.0)


def timed(
    reading: TransferReading, measurement: Measurement, *, calls: int = 1, flags: tuple[Flag, ...] = ()
) -> TransferReading:
    """Return `reading` with its time.

    Args:
        calls: how many calls one sample is of.
    """
    interval = measurement.ci95_s
    return TransferReading(
        reading.name,
        reading.library,
        reading.byte_count,
        reading.moved_bytes,
        reading.size,
        median_s=measurement.median_s / calls,
        ci95_s=None if interval is None else (interval[0] / calls, interval[1] / calls),
        n=len(measurement.samples_s),
        first_call_s=measurement.first_call_s,
        flags=flags,
    )


def sizes_of(operation: Operation) -> tuple[int, ...]:
    """Return the sizes at which a CPU and a GPU are compared: powers of two whose arrays fit a GPU's memory."""
    return tuple(size for size in (2**power for power in range(3, 31)) if _is_possible(operation, size))


def _is_possible(operation: Operation, size: int) -> bool:
    shape = operation.shape_of_size(size)
    lengths = zip(operation.axes, shape, strict=True)
    if any(length > operation.limits[axis] for axis, length in lengths) or operation.problem(shape):
        return False
    return operation.byte_count(shape, dtype_named(DTYPE)) <= 8 * 2**30
