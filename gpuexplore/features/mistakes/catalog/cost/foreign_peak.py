"""An MFU relative to the peak of another format on other units."""

from gpuexplore.devices import accelerator_named, as_device
from gpuexplore.dtypes import dtype_named
from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation, Reading, Sign, Stage
from gpuexplore.measure.flags import MeasuredCase, find_flags
from gpuexplore.model import Case, Device, Environment, Measurement, Shape
from gpuexplore.operations import operation_named
from gpuexplore.units import format_flop_per_s

CARD = "Tesla T4"
SHAPE = Shape.of(b=16384, d=32768, k=8192)
PRINTED_S = 3.87376
FOREIGN = 16e12  # what the notebook took: the T4's fp16 on vector units


def demonstrate(_: Stage) -> Observation:
    """Divide the notebook's rate in bf16 by the peak it took; the right one does not exist."""
    row = accelerator_named(CARD)
    device = as_device(row) if row else Device("table", "table", CARD)
    flop_per_s = operation_named("linear").flop_count(SHAPE) / PRINTED_S
    peak = device.peak("bf16", "matrix")
    return Observation(
        mistake=MISTAKE.name,
        quantity=MISTAKE.quantity,
        what=f"the notebook's {format_flop_per_s(flop_per_s)} in bf16 on a T4, over {format_flop_per_s(FOREIGN)}",
        how="computed",
        wrong=Reading(flop_per_s / FOREIGN),
        right=Reading(flop_per_s / peak.flop_per_s) if peak else Reading(None, text="unknown: it has no bf16 units"),
        detection=detection(device),
        note="16 TFLOP/s are the T4's fp16 on vector units; its tensor cores do 65 TFLOP/s in fp16, and no bf16.",
        source=row.source_url if row else None,
    )


def detection(device: Device) -> Detection:
    """Return whether a result in bf16 on this device carries the flag emulated."""
    case = Case("linear", SHAPE, "bf16", "torch", device.id)
    environment = Environment(device, "", "", None, "", "", {})
    measured = MeasuredCase(case, Measurement((PRINTED_S,), PRINTED_S), environment, None)
    flags = find_flags(measured, operation_named("linear"), dtype_named("bf16"))
    flag = next((flag for flag in flags if flag.name == "emulated"), None)
    return Detection(flag is not None, flag.evidence if flag else "bf16 has units of its own there")


MISTAKE = Mistake(
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
    demonstrate=demonstrate,
)
