"""Which units would do a case's arithmetic on a device: its own, another format's, or none."""

from dataclasses import dataclass
from typing import Literal

from gpuexplore.devices.capabilities import CAPABILITIES
from gpuexplore.dtypes import DType, format_named
from gpuexplore.model import Case, Device, Peak, Unit
from gpuexplore.operations import operation_named
from gpuexplore.operations.implementation import Implementation

Support = Literal["native", "emulated", "unsupported"]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a case would be computed.

    Attributes:
        support: whether the device has units for the dtype.
        reason: why it has none, or why no peak is known; None for native arithmetic with a known peak.
        peak: of the units that do the work; None where it is unknown, or there are none.
    """

    support: Support
    reason: str | None = None
    peak: Peak | None = None


def arithmetic(case: Case, device: Device) -> Arithmetic:
    """Return which units of `device` would compute `case`."""
    operation, dtype = operation_named(case.operation), format_named(case.dtype)
    implementation = operation.implementation_named(case.implementation)
    if reason := operation.unsupported(dtype) or _elsewhere(implementation, device):
        return Arithmetic("unsupported", reason)
    if not operation.is_matrix_product:
        return _element_wise(dtype, device)
    computed, unit = implementation.computes_in(dtype.name, device)
    if computed != dtype.name:
        reason = f"{implementation.name} computes {dtype.name} in {computed}"
        return _with_peak(Arithmetic("emulated", reason, device.peak(computed, unit)), device)
    return _product(dtype, unit, device)


def _elsewhere(implementation: Implementation, device: Device) -> str | None:
    """Return why a CUDA kernel of ours has nothing to run on, or None."""
    if implementation.geometry is None or device.compute_capability in CAPABILITIES or device.kind == "cuda":
        return None
    return f"{implementation.name} is a CUDA kernel, and {device.name} has no compute capability that CUDA compiles for"


def _element_wise(dtype: DType, device: Device) -> Arithmetic:
    """Return the arithmetic of an operation without products: narrow formats are widened for it, which costs little.

    Its roof is the faster of the two: what computes narrow formats at a fraction of fp32's rate is passed by.
    """
    known = filter(None, (device.peak(name, "vector") for name in (dtype.name, dtype.accumulate)))
    peak = max(known, key=lambda each: each.flop_per_s, default=None)
    if peak is None and device.native and dtype.accumulate not in device.native:
        return Arithmetic("unsupported", f"{device.name} has no {dtype.accumulate} units")
    return _with_peak(Arithmetic("native", None, peak), device)


def _product(dtype: DType, unit: Unit, device: Device) -> Arithmetic:
    wider = device.peak(dtype.accumulate, "matrix") or device.peak(dtype.accumulate, "vector")
    if not device.native or dtype.name in device.native:  # a driver that states nothing denies nothing
        own = device.peak(dtype.name, unit) or device.peak(dtype.name, "vector")
        if own is None or wider is None or own.flop_per_s >= wider.flop_per_s:
            return _with_peak(Arithmetic("native", None, own), device)
        slow = f"{device.name} is slower in {dtype.name} than in {dtype.accumulate}, so libraries compute in that"
        return Arithmetic("emulated", slow, wider)
    if dtype.matrix_only:
        return Arithmetic(
            "unsupported", f"{dtype.name} exists only inside matrix units, and {device.name} has none for it"
        )
    missing = f"{device.name} has no {dtype.name} units"
    if dtype.accumulate == dtype.name:
        return Arithmetic("unsupported", missing)
    return _with_peak(Arithmetic("emulated", f"{missing}: {dtype.accumulate} does the arithmetic", wider), device)


def _with_peak(found: Arithmetic, device: Device) -> Arithmetic:
    if found.peak is not None:
        return found
    unknown = f"no peak is known for it on {device.name}"
    return Arithmetic(found.support, f"{found.reason}; {unknown}" if found.reason else unknown)
