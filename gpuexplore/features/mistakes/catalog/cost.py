"""Mistakes in what a time is divided by: FLOPs and peaks."""

from math import prod

from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import Case, Device, Environment, Measurement, Shape
from gpuexplore.core.units import format_flop_per_s
from gpuexplore.features.mistakes.catalog.contract import (
    Detection,
    Factor,
    Mistake,
    MistakeObservation,
    Sign,
    Stage,
    WayReading,
)
from gpuexplore.features.mistakes.catalog.subject import no_sign
from gpuexplore.hardware import accelerator_named, as_device, peaks_of
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.operations import operation_named

SHAPE = Shape.of(b=16384, d=32768, k=8192)
CARD = "Tesla T4"


# A product's multiplications are counted, and its additions forgotten.
PRODUCT_SHAPE = Shape.of(m=1000, k=500, n=200)


def _demonstrate_flops_n3(_: Stage) -> MistakeObservation:
    """Count the FLOPs of the notebook's product without and with its additions."""
    wrong = prod(PRODUCT_SHAPE)
    right = operation_named("matmul").flop_count(PRODUCT_SHAPE)
    return MistakeObservation(
        mistake=FLOPS_N3.name,
        quantity=FLOPS_N3.quantity,
        what="FLOPs of (1000 × 500) @ (500 × 200)",
        how="computed",
        wrong=WayReading(wrong),
        right=WayReading(right),
        detection=no_sign(FLOPS_N3),
        factor=Factor(wrong / right),
    )


FLOPS_N3 = Mistake(
    name="flops-n3",
    title="How many FLOPs has a product?",
    rows=("A4", "E5"),
    wrong="The FLOPs of a product are counted as m·n·k, n³ for a square one.",
    right="Count a multiplication and an addition as two: 2·m·n·k, as every datasheet does.",
    wrong_code="flops = m * n * k",
    right_code="flops = 2 * m * n * k",
    why=(
        "A multiplier-adder does both in one instruction, and peaks count two for it. "
        "With half the FLOPs every rate and every MFU is half of what it is, and two benchmarks cannot be compared."
    ),
    quantity="count",
    why_none=(
        "Half the rate is as plausible as the rate itself. Every operation here has an example that was counted by "
        "hand, which its formula is tested with"
    ),
    demonstrate=_demonstrate_flops_n3,
)


# An MFU relative to a peak that counts FLOPs that are not done.
REACHED = 788e12  # FLOP/s, of its row's notes: bf16 on random data


def _demonstrate_sparse_peak(_: Stage) -> MistakeObservation:
    """Divide a published rate by the sparse peak and by the dense one."""
    row = accelerator_named("h200-sxm-141gb")
    dense = next(peak for peak in (peaks_of(row) if row else ()) if (peak.dtype, peak.unit) == ("bf16", "matrix"))
    sparse_flop_per_s = 2 * dense.flop_per_s  # two of four weights are zero and skipped, and counted all the same
    rates = format_flop_per_s(sparse_flop_per_s), format_flop_per_s(dense.flop_per_s)
    return MistakeObservation(
        mistake=SPARSE_PEAK.name,
        quantity=SPARSE_PEAK.quantity,
        what=f"{format_flop_per_s(REACHED)} of dense bf16 products on an H200, over {rates[0]} and over {rates[1]}",
        how="computed",
        wrong=WayReading(REACHED / sparse_flop_per_s),
        right=WayReading(REACHED / dense.flop_per_s),
        detection=no_sign(SPARSE_PEAK),
        factor=Factor(dense.flop_per_s / sparse_flop_per_s),
        source=dense.source,
    )


SPARSE_PEAK = Mistake(
    name="sparse-peak",
    title="Is the printed peak one for dense matrices?",
    rows=("E6", "E7"),
    wrong="A dense product is compared with the peak that the datasheet prints in large, which is for sparse matrices.",
    right="Compare it with the dense peak of the units and of the sums that computed it.",
    wrong_code="mfu = rate / 1979e12  # with sparsity",
    right_code="mfu = rate / 989e12  # dense",
    why=(
        "With structured sparsity two of four weights are zero: tensor cores skip them, and datasheets count them. "
        "A dense product can reach half of that figure at most, so its MFU is halved."
    ),
    quantity="share",
    why_none="Every MFU between 0 and 1 is plausible. Peaks here are dense, and each says so with its source",
    demonstrate=_demonstrate_sparse_peak,
)


# An MFU relative to a peak that was rounded from memory.
ROUNDED = 8e12


def _demonstrate_rounded_peak(_: Stage) -> MistakeObservation:
    """Divide the notebook's rate by its own peak and by the datasheet's."""
    row = accelerator_named(CARD)
    peak = next(peak for peak in (peaks_of(row) if row else ()) if (peak.dtype, peak.unit) == ("fp32", "matrix"))
    flop_per_s = operation_named("linear").flop_count(SHAPE) / 1.73267  # seconds, as printed
    peaks = f"over {format_flop_per_s(ROUNDED)} and over {format_flop_per_s(peak.flop_per_s)}"
    return MistakeObservation(
        mistake=ROUNDED_PEAK.name,
        quantity=ROUNDED_PEAK.quantity,
        what=f"the notebook's {format_flop_per_s(flop_per_s)} in fp32 on a T4, {peaks}",
        how="computed",
        wrong=WayReading(flop_per_s / ROUNDED),
        right=WayReading(flop_per_s / peak.flop_per_s),
        detection=no_sign(ROUNDED_PEAK),
        factor=Factor(peak.flop_per_s / ROUNDED),
        source=peak.source,
    )


ROUNDED_PEAK = Mistake(
    name="rounded-peak",
    title="Where does the peak come from?",
    rows=("E6",),
    wrong="The peak is written from memory, rounded.",
    right="Take it from the datasheet, with all its digits, and name the source.",
    wrong_code="mfu = rate / 8e12",
    right_code="mfu = rate / 8.1e12  # T4 datasheet",
    why=(
        "A rounded peak moves every MFU by as much as it was rounded, here 1.2 %. "
        "That is more than the interval of a careful measurement, and it hits every result in the same direction."
    ),
    quantity="share",
    why_none="The error is smaller than anything that a rule could object to. Every peak here names its source",
    demonstrate=_demonstrate_rounded_peak,
)


# An MFU relative to the peak of another format on other units.
BF16_PRINTED_S = 3.87376
FOREIGN = 16e12  # what the notebook took: the T4's fp16 on vector units


def _demonstrate_foreign_peak(_: Stage) -> MistakeObservation:
    """Divide the notebook's rate in bf16 by the peak it took; the right one does not exist."""
    row = accelerator_named(CARD)
    device = as_device(row) if row else Device("table", "table", CARD)
    flop_per_s = operation_named("linear").flop_count(SHAPE) / BF16_PRINTED_S
    peak = device.peak("bf16", "matrix")
    return MistakeObservation(
        mistake=FOREIGN_PEAK.name,
        quantity=FOREIGN_PEAK.quantity,
        what=f"the notebook's {format_flop_per_s(flop_per_s)} in bf16 on a T4, over {format_flop_per_s(FOREIGN)}",
        how="computed",
        wrong=WayReading(flop_per_s / FOREIGN),
        right=WayReading(flop_per_s / peak.flop_per_s)
        if peak
        else WayReading(None, text="unknown: it has no bf16 units"),
        detection=emulated(device),
        note="16 TFLOP/s are the T4's fp16 on vector units; its tensor cores do 65 TFLOP/s in fp16, and no bf16.",
        source=row.source_url if row else None,
    )


def emulated(device: Device) -> Detection:
    """Return whether a result in bf16 on this device carries the flag emulated."""
    case = Case("linear", SHAPE, "bf16", "torch", device.id)
    environment = Environment(device, "", "", None, "", "", {})
    measurement = Measurement((BF16_PRINTED_S,), BF16_PRINTED_S)
    measured = MeasuredCase(case, measurement, environment, operation_named("linear"), dtype_named("bf16"))
    flag = next((flag for flag in find_flags(measured) if flag.name == "emulated"), None)
    return Detection(flag is not None, flag.evidence if flag else "bf16 has units of its own there")


FOREIGN_PEAK = Mistake(
    name="foreign-peak",
    title="Whose peak is it?",
    rows=("E7",),
    wrong="A rate in bf16 is divided by the peak of fp16, on a card that has no units for bf16.",
    right="Compare it with the peak of the format and of the units that computed; without one the MFU is unknown.",
    wrong_code="mfu = rate / 16e12   # fp16, vector units",
    right_code="mfu = None           # no bf16 units",
    why=(
        "A format without units is converted and computed in another one, at the cost of the conversions. "
        "Its rate then says nothing about units it never used, and there is no peak it could come near."
    ),
    quantity="share",
    gives_away=Sign("flag", "emulated"),
    demonstrate=_demonstrate_foreign_peak,
)


MISTAKES = (FLOPS_N3, SPARSE_PEAK, ROUNDED_PEAK, FOREIGN_PEAK)
