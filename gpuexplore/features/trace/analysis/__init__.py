"""Traces of torch.profiler as tables of operations; here the device one was taken on, and the least time by its roofs.

Nothing is measured, and torch is not imported: a trace is a file, and the rest is arithmetic on its events.

A trace names its GPUs. It names no CPU: a roof of this machine's is used where the user says that it was taken here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpuexplore.analysis.utilization.utilization import cached_bytes, smallest_cache
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Peak, PeakKind
from gpuexplore.features.trace.analysis.events import Kernel, ProfilerTrace
from gpuexplore.hardware import Accelerator, as_device, gpu_named, readings
from gpuexplore.hardware.variants import choose

CPU = "cpu"
FP4_RATE = "fp4_tensor"  # of products of block-scaled numbers


@dataclass(frozen=True, slots=True)
class TracedOn:
    """Where a trace was taken.

    Attributes:
        name: of the device, as the trace or the user says; None where neither does.
        device: with its peaks; None where they are unknown.
        source: who says that it was this device, or why its roof is unknown.
    """

    name: str | None
    device: Device | None
    source: str


@dataclass(frozen=True, slots=True)
class LeastTime:
    """The least time that a device needs for some work, by what bounds it."""

    time_s: float
    bound: Literal["compute", "memory", "cache"]


def traced_on(trace: ProfilerTrace, *, gpu: str = "", device: str = "", here: Iterable[Device] = ()) -> TracedOn:
    """Return the device of a trace.

    Args:
        trace: what was read.
        gpu: the GPU it was taken on by a name of `specs`, where the trace does not say or the user knows better.
        device: `cpu`, where the trace was taken on this machine's CPU.
        here: this machine's devices, the CPU with its peaks.

    Raises:
        InvalidInput: no such device, or none that such a trace can be of.
    """
    if device not in ("", CPU):
        raise InvalidInput.of("device", device, f"{CPU}, where the trace was taken on this machine; a GPU by --gpu")
    if trace.kernels:
        if device:
            raise InvalidInput("device cpu: this trace has kernels of a GPU; expected the GPU's name, by --gpu")
        if not gpu.strip():
            return _in_trace(trace)
        row = gpu_named(gpu)
        return TracedOn(row.name, _as_device(row), "; ".join(("as was chosen", *readings([gpu]))))
    if gpu.strip():
        raise InvalidInput(f"gpu {gpu[:60]!r}: this trace has no kernels of a GPU; expected --device cpu")
    if not device:
        return TracedOn(None, None, "a trace does not name its CPU, so no roof is known unless it was taken here")
    cpu = next((each for each in here if each.kind == CPU), None)
    if cpu is None:
        return TracedOn(None, None, "no CPU of this machine is known")
    if not cpu.peaks:
        return TracedOn(cpu.title, cpu, "this machine's CPU, whose peaks are not measured yet")
    return TracedOn(cpu.title, cpu, "this machine's CPU with all of its cores, as was chosen")


def _in_trace(trace: ProfilerTrace) -> TracedOn:
    names = tuple(dict.fromkeys(gpu.name for _, gpu in trace.gpus))
    if not names:
        return TracedOn(None, None, "the trace does not name its GPU, so no roof is known unless it is chosen")
    if len(names) > 1:
        return TracedOn(" and ".join(names), None, "unlike GPUs in one trace have no common roof")
    number, gpu = trace.gpus[0]
    row, doubt = choose(gpu)
    if row is None:
        return TracedOn(gpu.name, None, f"{doubt}, so no roof is known unless it is chosen")
    is_numbered = any(kernel.device in (None, number) for kernel in trace.kernels)
    said = "as the trace says" if is_numbered else "as the trace says, which numbers it otherwise than its kernels do"
    return TracedOn(row.name, _as_device(row), "; ".join(filter(None, (said, doubt))))


def _as_device(row: Accelerator) -> Device:
    """Return a row as a device, with its peak of products of fp4, which is traced and not measured."""
    device = as_device(row)
    rate = row.rates.get(FP4_RATE)
    if rate is None:
        return device
    kind: PeakKind = "formula" if FP4_RATE in row.derived else "datasheet"
    return replace(device, peaks=(*device.peaks, Peak("fp4", "matrix", rate, kind, row.source_url)))


def arithmetic(dtype: str | None, kernels: Sequence[Kernel]) -> str | None:
    """Return the dtype that products of `dtype` are computed in: names of kernels show where it is TF32 for fp32."""
    names = [kernel.name.casefold() for kernel in kernels]
    marks = ("tf32", "tensorop_s1688gemm", "tensorop_c1688gemm")  # in names of kernels of cuBLAS and CUTLASS
    uses_tf32 = any(mark in name for name in names for mark in marks)
    return "tf32" if dtype == "fp32" and uses_tf32 else dtype


def least_time(
    device: Device | None, dtype: str | None, flop_count: int | None, byte_count: int | None
) -> LeastTime | None:
    """Return the least time of a call; None where a roof that could decide it is unknown.

    Products of unknown bytes, or of bytes that come from a cache of unknown bandwidth, may be bound by either: the
    latter are by arithmetic where they would be with the memory's bandwidth.

    Args:
        device: where it ran.
        dtype: of its products.
        flop_count: of its products; None where it has none.
        byte_count: that it moves at least; None is unknown.
    """
    if device is None:
        return None
    moving = _moving(device, byte_count)
    if flop_count is None:
        return moving
    peak = device.peak(dtype, "matrix") if dtype else None
    if peak is None or not byte_count:
        return None
    computing = LeastTime(flop_count / peak.flop_per_s, "compute")
    if moving is None:  # no cache delivers slower than the memory behind it
        by_memory = _by_memory(device, byte_count)
        return computing if by_memory and by_memory.time_s <= computing.time_s else None
    return moving if moving.time_s > computing.time_s else computing


def _moving(device: Device, byte_count: int | None) -> LeastTime | None:
    """Return the least time of moving so many bytes; what fits a cache is not bounded by memory."""
    if not byte_count:
        return None
    if byte_count <= (cached_bytes(device) or 0):
        cache = smallest_cache(device.caches, byte_count)
        return LeastTime(byte_count / cache.bandwidth.bytes_per_s, "cache") if cache else None
    return _by_memory(device, byte_count)


def _by_memory(device: Device, byte_count: int) -> LeastTime | None:
    memory = device.bandwidth
    return LeastTime(byte_count / memory.bytes_per_s, "memory") if memory else None
