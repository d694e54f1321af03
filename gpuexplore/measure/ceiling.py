"""A measured ceiling that a result exceeds was measured on a disturbed machine: it is measured again."""

from collections.abc import Callable
from functools import partial

from gpuexplore.devices import ensure_ceiling
from gpuexplore.dtypes import dtype_named
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.model import Device, Measurement
from gpuexplore.operations import operation_named

ATTEMPTS = 3
HOLDS = 2  # times its size: reading round and round in more leaves next to nothing in a cache
EXCEEDED = 1.1  # times: an operation's mix of loads and stores is not the triad's
_STILL_EXCEEDED: set[tuple[str, int | None]] = set()  # devices and threads whose bandwidths another measurement left


def with_fair_ceiling(candidate: Candidate, measurement: Measurement) -> Device:
    """Return the candidate's device, its ceiling measured again while `measurement` is above it."""
    case, device = candidate.case, candidate.device
    operation = operation_named(case.operation)
    implementation = operation.implementation_named(case.implementation)
    flop_per_s = operation.flop_count(case.shape) / measurement.median_s
    threads = case.options.threads

    def is_computed_faster(device: Device) -> bool:
        peak = implementation.peak(device, case.dtype)
        return peak is not None and peak.kind == "measured_ceiling" and flop_per_s > peak.flop_per_s

    device = _measured_while(is_computed_faster, device, threads, ATTEMPTS)
    byte_count = operation.byte_count(case.shape, dtype_named(case.dtype))
    alone = threads == 1 or operation.uses_one_thread(case.implementation, case.dtype, case.shape)
    is_moved_faster = partial(_is_moved_faster, byte_count, byte_count / measurement.median_s, alone)
    if (device.id, threads) in _STILL_EXCEEDED or not is_moved_faster(device):
        return device
    device = _measured_while(is_moved_faster, device, threads, 1)
    if is_moved_faster(device):
        _STILL_EXCEEDED.add((device.id, threads))
    return device


def _measured_while(is_exceeded: Callable[[Device], bool], device: Device, threads: int | None, most: int) -> Device:
    for _ in range(most):
        if not is_exceeded(device):
            break
        device = ensure_ceiling(device, threads, again=True)
    return device


def _is_moved_faster(byte_count: float, bytes_per_s: float, alone: bool, device: Device) -> bool:
    """Return whether bytes moved faster than the fastest level that can have held them, by what was measured here."""
    roofs = device.one_thread if alone and device.one_thread else device
    held = [cache.bandwidth for cache in roofs.caches if byte_count <= HOLDS * cache.size_bytes]
    behind = [roofs.bandwidth] if roofs.bandwidth else []
    measured = [roof.bytes_per_s for roof in (*held, *behind) if roof.kind == "measured_ceiling"]
    return bool(measured) and bytes_per_s > EXCEEDED * max(measured)
