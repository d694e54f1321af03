"""Mistakes in what a time is divided by: FLOPs and peaks."""

from collections.abc import Mapping
from math import prod

from gpuexplore.core import Case, Device, Environment, Measurement, Shape, format_flop_per_s
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.mistakes.catalog import (
    Demonstrate,
    Detection,
    Factor,
    MistakeObservation,
    Stage,
    WayReading,
    no_sign,
    observed,
)
from gpuexplore.hardware import accelerator_named, as_device, peaks_of
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.operations import operation_named

SHAPE = Shape.of(b=16384, d=32768, k=8192)
CARD = "Tesla T4"


# A product's multiplications are counted, and its additions forgotten.


def _demonstrate_flops_n3(_: Stage) -> MistakeObservation:
    """Count the FLOPs of the notebook's product without and with its additions."""
    shape = Shape.of(m=1000, k=500, n=200)
    wrong = prod(shape)
    right = operation_named("matmul").flop_count(shape)
    return observed(
        "flops-n3",
        what="FLOPs of (1000 × 500) @ (500 × 200)",
        how="computed",
        wrong=WayReading(wrong),
        right=WayReading(right),
        detection=no_sign("flops-n3"),
        factor=Factor(wrong / right),
    )


# An MFU relative to a peak that counts FLOPs that are not done.


def _demonstrate_sparse_peak(_: Stage) -> MistakeObservation:
    """Divide a published rate by the sparse peak and by the dense one."""
    row = accelerator_named("h200-sxm-141gb")
    reached = 788e12  # FLOP/s, of its notes: bf16 on random data
    dense = next(peak for peak in (peaks_of(row) if row else ()) if (peak.dtype, peak.unit) == ("bf16", "matrix"))
    sparse_flop_per_s = 2 * dense.flop_per_s  # two of four weights are zero and skipped, and counted all the same
    rates = format_flop_per_s(sparse_flop_per_s), format_flop_per_s(dense.flop_per_s)
    return observed(
        "sparse-peak",
        what=f"{format_flop_per_s(reached)} of dense bf16 products on an H200, over {rates[0]} and over {rates[1]}",
        how="computed",
        wrong=WayReading(reached / sparse_flop_per_s),
        right=WayReading(reached / dense.flop_per_s),
        detection=no_sign("sparse-peak"),
        factor=Factor(dense.flop_per_s / sparse_flop_per_s),
        source=dense.source,
    )


# An MFU relative to a peak that was rounded from memory.


def _demonstrate_rounded_peak(_: Stage) -> MistakeObservation:
    """Divide the notebook's rate by its own peak and by the datasheet's."""
    row = accelerator_named(CARD)
    peak = next(peak for peak in (peaks_of(row) if row else ()) if (peak.dtype, peak.unit) == ("fp32", "matrix"))
    flop_per_s = operation_named("linear").flop_count(SHAPE) / 1.73267  # seconds, as printed
    rounded = 8e12
    peaks = f"over {format_flop_per_s(rounded)} and over {format_flop_per_s(peak.flop_per_s)}"
    return observed(
        "rounded-peak",
        what=f"the notebook's {format_flop_per_s(flop_per_s)} in fp32 on a T4, {peaks}",
        how="computed",
        wrong=WayReading(flop_per_s / rounded),
        right=WayReading(flop_per_s / peak.flop_per_s),
        detection=no_sign("rounded-peak"),
        factor=Factor(peak.flop_per_s / rounded),
        source=peak.source,
    )


# An MFU relative to the peak of another format on other units.
BF16_PRINTED_S = 3.87376


def _demonstrate_foreign_peak(_: Stage) -> MistakeObservation:
    """Divide the notebook's rate in bf16 by the peak it took; the right one does not exist."""
    foreign = 16e12  # what the notebook took: the T4's fp16 on vector units
    row = accelerator_named(CARD)
    device = as_device(row) if row else Device("table", "table", CARD)
    flop_per_s = operation_named("linear").flop_count(SHAPE) / BF16_PRINTED_S
    peak = device.peak("bf16", "matrix")
    return observed(
        "foreign-peak",
        what=f"the notebook's {format_flop_per_s(flop_per_s)} in bf16 on a T4, over {format_flop_per_s(foreign)}",
        how="computed",
        wrong=WayReading(flop_per_s / foreign),
        right=WayReading(flop_per_s / peak.flop_per_s)
        if peak
        else WayReading(None, text="unknown: it has no bf16 units"),
        detection=_emulated(device),
        note="16 TFLOP/s is the T4's fp16 peak on vector units; its tensor cores reach 65 in fp16, and have no bf16.",
        source=row.source_url if row else None,
    )


def _emulated(device: Device) -> Detection:
    """Return whether a result in bf16 on this device carries the flag emulated."""
    case = Case("linear", SHAPE, "bf16", "torch", device.id)
    environment = Environment(device, "", "", None, "", "", {})
    measurement = Measurement((BF16_PRINTED_S,), BF16_PRINTED_S)
    measured = MeasuredCase(case, measurement, environment, operation_named("linear"), dtype_named("bf16"))
    flag = next((flag for flag in find_flags(measured) if flag.name == "emulated"), None)
    return Detection(flag is not None, flag.evidence if flag else "bf16 has units of its own there")


DEMONSTRATIONS: Mapping[str, Demonstrate] = {
    "flops-n3": _demonstrate_flops_n3,
    "sparse-peak": _demonstrate_sparse_peak,
    "rounded-peak": _demonstrate_rounded_peak,
    "foreign-peak": _demonstrate_foreign_peak,
}
