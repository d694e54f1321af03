"""What an implementation can reach on a device: its limits, as far as the threads and stores it uses can use them.

In the words of the roofline model these are the ceilings below the roof: one thread has the units, the caches and the
memory accesses of one core; an ordinary store reads its line before it writes it; additions alone are half a
multiply-add. MFU and bandwidth utilization stay relative to the device; a diagnosis compares with these.
"""

from collections.abc import Iterable
from dataclasses import replace

from gpuexplore.analysis.model import ImplementationLimits
from gpuexplore.analysis.utilization.rates import byte_count
from gpuexplore.analysis.utilization.utilization import arithmetic_of, device_of, is_cache_resident, smallest_cache
from gpuexplore.model import Bandwidth, CacheRoof, Device, Peak, Result, ThreadRoofs
from gpuexplore.operations import operation_named


def implementation_limits(result: Result, peak: Peak | None, memory: Bandwidth | None) -> ImplementationLimits:
    """Return what bounds this result; unknown where it ran on one of several cores and one was not measured.

    Args:
        peak: the default one of its arithmetic.
        memory: the default bandwidth of the memory.
    """
    device = device_of(result)
    if device is None:
        return ImplementationLimits(peak, memory, memory)
    if not runs_on_one_thread(result):
        bandwidth = _with_its_stores(result, memory, device.ordinary_stores)
        serving = _serving(result, device.caches, bandwidth)
        return ImplementationLimits(_of_its_mix(result, peak), bandwidth, serving)
    roofs = _roofs_of_one_thread(result, device)
    if roofs is None:
        return ImplementationLimits(None, None, None, one_thread=True)
    bandwidth = _with_its_stores(result, roofs.bandwidth, roofs.ordinary_stores)
    one_peak = _of_its_mix(result, roofs.peak(*arithmetic_of(result)))
    return ImplementationLimits(one_peak, bandwidth, _serving(result, roofs.caches, bandwidth), one_thread=True)


def runs_on_one_thread(result: Result) -> bool:
    """Return whether its implementation uses one of several cores of a CPU, as it is declared."""
    device, case = device_of(result), result.case
    if device is None or device.kind != "cpu" or device.cores == 1:
        return False
    return operation_named(case.operation).uses_one_thread(case.implementation, case.dtype, case.shape)


def _roofs_of_one_thread(result: Result, device: Device) -> ThreadRoofs | Device | None:
    threads = result.environment.threads if result.environment else None
    return device.one_thread or (device if threads == 1 else None)


def _of_its_mix(result: Result, peak: Peak | None) -> Peak | None:
    """Return the peak of its mix of instructions: half where no addition comes with a multiplication."""
    if peak is None or operation_named(result.case.operation).multiply_adds:
        return peak
    source = f"{peak.source}; half of it, as it counts multiply-adds"
    return replace(peak, flop_per_s=peak.flop_per_s / 2, source=source)


def _with_its_stores(result: Result, streaming: Bandwidth | None, ordinary: Bandwidth | None) -> Bandwidth | None:
    """Return the bandwidth of its mix of reads and writes, by what both triads took for a byte read and one written.

    A triad reads two bytes for one that it writes: 3 / streaming rate = 3 reads, 3 / ordinary rate = 2 reads + 1 write.
    """
    operation = operation_named(result.case.operation)
    implementation = operation.implementation_named(result.case.implementation)
    if streaming is None or ordinary is None or streaming.kind == "own" or implementation.streaming_stores:
        return streaming
    if ordinary.bytes_per_s >= streaming.bytes_per_s:
        return ordinary
    written, read_s = operation.written_share(result.case.shape), 1 / streaming.bytes_per_s
    write_s = 3 / ordinary.bytes_per_s - 2 * read_s
    return replace(ordinary, bytes_per_s=1 / ((1 - written) * read_s + written * write_s))


def _serving(result: Result, caches: Iterable[CacheRoof], memory: Bandwidth | None) -> Bandwidth | None:
    """Return the bandwidth of what delivers its data: the smallest cache that holds them, where one does, else memory.

    None where that is unknown.
    """
    if not is_cache_resident(result):
        return memory
    cache = smallest_cache(caches, byte_count(result.case))
    return cache.bandwidth if cache else None
